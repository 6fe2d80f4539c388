// Records of the backing store, as the scheduler's start meets them: entities, parameters, the small texts.
#include "scheduler/record/codec.h"

#include "base/bytes.h"
#include "fuzz.h"
#include "scheduler/record/paths.h"
#include "store/names.h"
#include "store/stamp.h"
#include "unit/wire/samples.h"
#include "wire/import_rows.h"

namespace dcs::fuzz {
namespace {

enum What : std::uint8_t {
    session,
    grain,
    auth,
    hosts,
    spec,
    exported_session,
    exported_grain,
    stamp,
    format,
    names,
    import_rows,
    last
};

void read_specs(What what, const std::string &bytes) {
    if (what == spec) {
        if (const auto x = wire::unpack_spec(bytes)) {
            const auto again = wire::unpack_spec(wire::pack(*x));
            expect(again && wire::difference(*x, *again).empty(), "a spec is read back as it was");
        }
    } else if (what == exported_session) {
        if (const auto x = wire::unpack_exported_session(bytes)) expect(wire::pack(*x) == bytes, "one encoding");
    } else if (const auto x = wire::unpack_exported_grain(bytes)) {
        expect(wire::pack(*x) == bytes, "one encoding");
    }
}

// What a decoder of imports hands over, which a user may have in hand.
void read_rows(std::string_view bytes) {
    wire::ImportRows rows(bytes);
    const auto head = rows.head();
    for (std::uint32_t i = 0; head && i < rows.count(); ++i)
        if (!rows.grain()) return;
    if (head) (void)rows.known();
}

std::string some_rows() {
    wire::ExportedSession head;
    head.ident = "prog", head.grains = 2;
    wire::ExportedGrain grain;
    grain.spec.argv = {"/bin/p"};
    grain.state = "ready", grain.nogo = {"h1"}, grain.out = {2, true, "ok"};
    ByteWriter stream;
    stream.text(wire::pack(head)), stream.text(wire::pack(grain));
    grain.grain = 1;
    stream.text(wire::pack(grain));
    return *wire::rows_of_import(stream.bytes());
}

core::State some_state() {
    core::State state;
    core::Host host;
    core::HostConfig config;
    config.name = "h1";
    host.config = host.table = config;
    host.setting.slots = 3;
    state.hosts.push_back(host);
    state.host_ids["h1"] = core::HostId{0};
    TokenHash token{};
    token[0] = 7;
    state.auth[token] = {"ann", "prog", 99};
    return state;
}

void read_log(std::string_view log) {
    while (!log.empty()) {
        const auto entry = record::next_grain(log);
        if (!entry) return;
        const auto read = record::decode_grain(entry->record, [](const std::string &) { return core::HostId{0}; });
        if (!read) continue;
        expect(read->number == entry->number, "a record and its entry name one grain");
        const std::string again = record::encode_grain(some_state(), read->number, read->grain);
        expect(static_cast<bool>(record::decode_grain(again, [](const std::string &) { return core::HostId{0}; })),
               "what was read can be written");
    }
}

void read_names(const std::string &text) {
    std::uint64_t turn = 0;
    if (store::parse_root_name(text, turn)) expect(store::root_name(turn) == "turns/" + text, "a root has one name");
    (void)store::turn_of_temporary(text);
    (void)store::valid_tree_directory(text);
    if (const auto login = record::decode_login(text))
        expect(record::encode_login(*login) == text, "a login has one name");
    expect(record::decode_login(record::encode_login(text)) == text, "a login's name is read back");
    if (const auto n = record::number_of(text)) expect(std::to_string(*n) == text, "a number has one name");
}

}  // namespace

void run(std::string_view input) {
    if (input.empty()) return;
    const What what = static_cast<What>((input[0] & 0x7f) % last);
    // Checksums are no fence against who can compute them: by the top bit the body gets a right one.
    const std::string bytes =
        (input[0] & 0x80) != 0 ? record::framed(std::string(input.substr(1))) : std::string(input.substr(1));
    switch (what) {
    case session:
        if (const auto x = record::decode_session(bytes))
            expect(static_cast<bool>(record::decode_session(record::encode_session(*x))),
                   "what was read can be written");
        break;
    case grain: read_log(bytes); break;
    case auth:
        if (const auto x = record::decode_auth(bytes)) {
            const auto again = record::decode_auth(record::encode_auth(*x));
            expect(again && *again == *x, "the table is read back as it was");
        }
        break;
    case hosts: (void)record::decode_hosts(bytes); break;
    case stamp:
        if (const auto x = store::decode_stamp(bytes, true))
            expect(bytes.find(std::to_string(x->turn)) != bytes.npos, "it says so");
        break;
    case format:
        (void)store::decode_format(bytes);
        (void)store::format_line(bytes);
        break;
    case names: read_names(bytes); break;
    case import_rows: read_rows(bytes); break;
    default: read_specs(what, bytes);
    }
}

namespace {

core::Grain some_grain() {
    core::Grain grain;
    grain.lessee = core::HostId{0};
    grain.lease = grain.incarnation = 3;
    grain.phase = core::Finished{.result_index = 2};
    grain.nogo.edit() = {core::HostId{0}};
    grain.past.edit().user_us = 55;
    wire::Demands demands;
    demands.cores = 2;
    grain.demands = demands;
    grain.files.edit().digests = {std::string(32, 'd')};
    grain.files.edit().outputs = {{wire::FileRole::output, "out/x", "", 0, ""}};
    grain.old_lease = {core::HostId{0}, 2};
    grain.moves.edit() = {{core::MoveReason::usurped, core::HostId{0}, 2, "for ann/1:2"}};
    return grain;
}

}  // namespace

std::vector<Seed> seeds() {
    const core::State state = some_state();
    core::SessionInfo info;
    info.ident = "prog", info.result_count = 4, info.resumable = true;
    const std::vector<std::pair<What, std::string>> whole = {
        {session, record::encode_session(info)},
        {grain, record::encode_grain(state, 17, some_grain()) + record::encode_grain(state, 18, core::Grain{})},
        {auth, record::encode_auth({state.auth, {{"ann", 7}}})},
        {hosts, record::encode_hosts(state)},
        {spec, wire::pack(wire::samples::spec())},
        {exported_session, wire::pack(wire::samples::exported_session())},
        {exported_grain, wire::pack(wire::samples::exported_grain())},
        {stamp, store::encode_stamp(77, 64)},
        {format, store::encode_format(64)},
        {names, "00000000000000000017.commit"},
        {names, "a%20b"},
        {import_rows, some_rows()}};
    std::vector<Seed> list;
    for (const auto &[what, bytes] : whole) {
        const std::string name = "what-" + std::to_string(what) + "-" + std::to_string(list.size());
        list.push_back({name, static_cast<char>(what) + bytes});
        std::string_view log = bytes;
        if (const auto body = record::next_body(log); what <= hosts && body)
            list.push_back({name + "-body", static_cast<char>(what | 0x80) + std::string(*body)});
    }
    return list;
}

}  // namespace dcs::fuzz
