#include "support/about.h"
#include "wire/message.h"

#include <cstring>
#include <set>

#include <boost/core/demangle.hpp>

#include "base/bytes.h"
#include "base/limits.h"
#include "samples.h"
#include "support/catch.h"

using namespace dcs;
using namespace dcs::wire;

namespace {

Result<AnyMessage> decode(std::string_view frame) {
    auto header = decode_header(frame.substr(0, header_bytes), limits::server_frame_bytes);
    if (!header) return header.status();
    return decode_payload(*header, frame.substr(header_bytes));
}

// A frame of the right shape around any payload: length and checksum agree.
FrameHeader header_for(std::uint16_t kind, std::string_view payload, Form form) {
    FrameHeader h;
    h.kind = kind, h.protocol = form;
    h.length = static_cast<std::uint32_t>(payload.size());
    h.crc = crc32c(payload);
    return h;
}

std::string le32(std::uint32_t v) {
    ByteWriter w;
    w.u32(v);
    return w.bytes();
}

constexpr Form both[] = {positional_form, newest_form};

// Those that the form can say.
std::vector<AnyMessage> sayable(Form form) {
    std::vector<AnyMessage> all = samples::all();
    std::erase_if(all, [&](const AnyMessage &m) { return !encode(m, 5, form); });
    return all;
}

std::string frame_in(Form form, const AnyMessage &m) { return *encode(m, 5, form); }
Form form_in(std::string_view frame) { return decode_header(frame.substr(0, header_bytes), 1u << 30)->protocol; }
std::string old_payload(const AnyMessage &m) { return frame_in(positional_form, m).substr(header_bytes); }

}  // namespace

TEST_CASE("every message survives the way there and back") {
    const auto messages = samples::all();
    REQUIRE(messages.size() == std::variant_size_v<AnyMessageOf>);
    std::set<std::string> names;
    for (std::size_t i = 0; i < messages.size(); ++i) {
        INFO(kind_name(messages[i]));
        CHECK(messages[i].index() == i);  // one of each kind
        CHECK(names.insert(kind_name(messages[i])).second);
        const std::string frame = encode(messages[i], 1000 + i);
        auto header = decode_header(std::string_view(frame).substr(0, header_bytes), frame.size());
        REQUIRE(header);
        const bool first = opens(header->kind);
        CHECK(header->request == (first ? offer_of(our_forms) : 1000 + i));
        CHECK(header->protocol == (first ? opening_form : newest_form));
        CHECK(header->kind == kind_of(messages[i]));
        CHECK(header->kind == i + 1);
        auto back = decode(frame);
        REQUIRE(back);
        CHECK(back->index() == i);
        CHECK(encode(*back, 1000 + i) == frame);
    }
}

TEST_CASE("fields arrive in their own places") {
    auto back = decode(encode(Gexec{3, 17, samples::spec()}, 1));
    REQUIRE(back);
    const Gexec &g = std::get<Gexec>(*back);
    const GrainSpec want = samples::spec();
    CHECK(g.session == 3);
    CHECK(g.grain == 17);
    CHECK(g.spec.argv == want.argv);
    CHECK(g.spec.env == want.env);
    CHECK(g.spec.input == want.input);
    CHECK(g.spec.demands == want.demands);
    CHECK(g.spec.demands.attempts == 7);
    CHECK(g.spec.directory == want.directory);
    auto row = decode(encode(QueryReply{{}, {}, {}, {samples::grain_row()}, true}, 1));
    REQUIRE(row);
    const GrainRow &r = std::get<QueryReply>(*row).grains.at(0);
    CHECK(r.cpu_s == 1.5);
    CHECK(r.out_length == 1ull << 40);
    CHECK(r.exit_code == -1);
    CHECK(r.argv == samples::grain_row().argv);
    CHECK(r.demands == samples::demands());
    CHECK(r.starts == 3);
    CHECK(r.nogo == std::vector<std::string>{"local2", "local3"});
    REQUIRE(r.moves.size() == 2);
    CHECK(r.moves[0].reason == "usurped");
    CHECK(r.moves[0].host == "local2");
    CHECK(r.moves[1].incarnation == 2);
    CHECK(r.moves[1].age_s == -1);
    auto result = decode(encode(GrainResult{17, 1, 2, 3, 4, samples::usage(), 5, 6, "o", "e"}, 1));
    REQUIRE(result);
    CHECK(std::get<GrainResult>(*result).usage.system_us == -2);
    CHECK(std::get<GrainResult>(*result).usage.out_blocks == INT64_MAX);
    auto error = decode(encode(ErrorReply{11, "differs", 17}, 1));
    REQUIRE(error);
    CHECK(std::get<ErrorReply>(*error).grain == 17);
    CHECK(ErrorReply{}.grain == -1);
    auto batch = decode(encode(GexecMany{3, {{17, samples::spec()}, {18, {}}}}, 1));
    REQUIRE(batch);
    CHECK(std::get<GexecMany>(*batch).session == 3);
    REQUIRE(std::get<GexecMany>(*batch).orders.size() == 2);
    CHECK(std::get<GexecMany>(*batch).orders[0].spec.demands.wall_s == 3600);
    CHECK(std::get<GexecMany>(*batch).orders[1].grain == 18);
    auto wait = decode(encode(GwaitMany{3, 8, 256, true}, 1));
    REQUIRE(wait);
    CHECK((std::get<GwaitMany>(*wait).next == 8 && std::get<GwaitMany>(*wait).most == 256));
}

TEST_CASE("what people order about hosts arrives in its own places") {
    auto back = decode(encode(samples::set_host(), 1));
    REQUIRE(back);
    const SetHost &s = std::get<SetHost>(*back);
    CHECK(s.host == "local1");
    CHECK(s.slots == 3);
    CHECK(s.interval_s == 1.5);
    CHECK(s.alert_s == 4.5);
    CHECK(s.limit_s == 9);
    CHECK(s.extended_s == 18);
    CHECK(s.host_class == 0x80000001u);
    CHECK(s.drained == 1);
    CHECK(s.reset);
    CHECK(s.clear_nogo);
    CHECK(s.user == "ann");
    CHECK(s.session == 3);
    CHECK(s.grain == 17);
    const SetHost nothing;
    CHECK(nothing.slots == -1);  // 0 would evict
    CHECK(nothing.drained == -1);
    CHECK((nothing.interval_s < 0 && nothing.alert_s < 0 && nothing.limit_s < 0 && nothing.extended_s < 0));
    CHECK((nothing.session < 0 && nothing.grain < 0));
    auto why = decode(encode(samples::explanation(), 1));
    REQUIRE(why);
    const Explanation &e = std::get<Explanation>(*why);
    CHECK(e.state == "ready");
    CHECK(e.summary == "waits for a slot");
    CHECK(!e.can_run);
    CHECK(e.ahead == 7);
    REQUIRE(e.reasons.size() == 2);
    CHECK(e.reasons[0].hosts == 3);
    CHECK(e.reasons[0].names == std::vector<std::string>{"h1", "h2"});
    CHECK(e.reasons[1].hint == "dcs host ls");
    auto hosts = decode(encode(QueryReply{{}, {samples::host_row()}, {}, {}, false}, 1));
    REQUIRE(hosts);
    const HostRow &h = std::get<QueryReply>(*hosts).hosts.at(0);
    CHECK(h.alert_s == 30);
    CHECK(h.extended_s == 120);
    CHECK(h.memory_used_mb == 512);
    CHECK(h.drained);
    CHECK(h.settings == "slots=0");
    CHECK(h.users == std::vector<std::string>{"ann", "bob"});
    CHECK(h.blamed_lately == 2);
    auto query = decode(encode(Query{QueryType::sessions, "", -1, -1, 7, "", "bob"}, 1));
    REQUIRE(query);
    CHECK(std::get<Query>(*query).after == 7);
    CHECK(std::get<Query>(*query).after_user == "bob");
}

TEST_CASE("kind names are those of the structs") {
    for (const AnyMessage &m : samples::all()) {
        const std::string type = std::visit([](const auto &x) { return boost::core::demangle(typeid(x).name()); }, m);
        CHECK("dcs::wire::" + std::string(kind_name(m)) == type);
    }
}

TEST_CASE("golden bytes of a frame") {
    const std::string frame = *encode(Gwait{3, 8, true}, 0x0102030405060708ull, positional_form);
    const unsigned char want[] = {'D', 'C', 'S', '1',  12,   0,    8,    0, 9, 0, 0, 0, 8, 7, 6, 5, 4,
                                  3,   2,   1,   0x18, 0xec, 0x46, 0x95, 3, 0, 0, 0, 8, 0, 0, 0, 1};
    REQUIRE(frame.size() == sizeof want);
    CHECK(std::memcmp(frame.data(), want, sizeof want) == 0);
    const std::string tagged = encode(Gwait{3, 8, true}, 0x0102030405060708ull);
    CHECK(tagged.substr(0, 12) == std::string("DCS1\x0c\0\x09\0\x07\0\0\0", 12));
    CHECK(tagged.substr(header_bytes) == std::string("\x09\x06\x11\x10\x18\x01\0", 7));
    CHECK(crc32c("123456789") == 0xe3069283u);  // the check value of CRC-32C
}

TEST_CASE("golden bytes of the backup's messages") {
    const std::string frame = frame_in(positional_form, HandOverTaken{"h1", 0x0b});
    CHECK(frame.substr(4, 2) == std::string("\x46\0", 2));  // kinds are places: never reordered
    CHECK(frame.substr(header_bytes) == le32(2) + "h1" + le32(0x0b) + le32(0));
    CHECK(frame_in(positional_form, HeldByBackup{1, 2}).substr(4, 2) == std::string("\x40\0", 2));
    CHECK(frame_in(positional_form, HeldByBackup{1, 2}).substr(header_bytes) == le32(1) + le32(0) + le32(2) + le32(0));
    const std::string has = frame_in(positional_form, MirrorHas{1, true, 2});
    CHECK(has.substr(4, 2) == std::string("\x4e\0", 2));
    CHECK(has.substr(header_bytes) == le32(1) + le32(0) + "\1" + le32(2) + le32(0));
}

TEST_CASE("golden bytes of packed parameters") {
    GrainSpec s;
    s.argv = {"a"};
    s.demands.thrash = -2;
    s.label = "L";
    s.demands.cores = 2, s.demands.memory_mb = 3, s.demands.wall_s = 4;
    const std::string want = le32(1) + le32(1) + "a" + le32(0) + le32(0) + le32(0) + le32(0xfffffffeu) +
                             std::string(1, '\0') + le32(0) + le32(3) + le32(0) + le32(1) + "L" + le32(2) + le32(3) +
                             le32(4);
    CHECK(pack(s) == want);
    s.files = {{FileRole::program, "n", std::string(32, 'd'), 5, "c"}};
    const std::string file =
        std::string(1, '\2') + le32(1) + "n" + le32(32) + std::string(32, 'd') + le32(5) + le32(0) + le32(1) + "c";
    CHECK(pack(s) == want + le32(1) + file);
    CHECK(unpack_spec(pack(s))->files == s.files);
    s.demands.cores = s.demands.memory_mb = s.demands.wall_s = 0;
    CHECK(unpack_spec(pack(s))->files == s.files);
    s.files.clear();
    CHECK(pack(s) == want.substr(0, want.size() - 12));
    CHECK(unpack_spec(pack(s))->label == "L");
}

TEST_CASE("a frame that is cut anywhere is an error") {
    for (const Form form : both)
        for (const AnyMessage &m : sayable(form)) {
            const std::string frame = frame_in(form, m);
            const std::string_view payload = std::string_view(frame).substr(header_bytes);
            for (std::size_t n = 0; n < payload.size(); ++n) {
                INFO(kind_name(m) << " in form " << form << " cut to " << n);
                const std::string_view cut = payload.substr(0, n);
                auto header = decode_header(std::string_view(frame).substr(0, header_bytes), 1 << 20);
                REQUIRE(header);
                CHECK(!decode_payload(*header, cut));  // length disagrees
                // All agrees but the fields.
                auto fixed = decode_payload(header_for(kind_of(m), cut, header->protocol), cut);
                REQUIRE(!fixed);
                CHECK(fixed.status().code == Code::protocol);
            }
        }
}

TEST_CASE("bytes after the last field are an error") {
    for (const Form form : both)
        for (const AnyMessage &m : sayable(form)) {
            const std::string frame = frame_in(form, m), payload = frame.substr(header_bytes) + "x";
            auto r = decode_payload(header_for(kind_of(m), payload, form_in(frame)), payload);
            REQUIRE(!r);
            CHECK(r.status().text.find("too many") != std::string::npos);
        }
    CHECK(!unpack_spec(pack(samples::spec()) + "x"));
}

TEST_CASE("every flipped bit of a payload is noticed") {
    for (const Form form : both)
        for (const AnyMessage &m : sayable(form)) {
            std::string frame = frame_in(form, m);
            for (std::size_t bit = header_bytes * 8; bit < frame.size() * 8; ++bit) {
                frame[bit / 8] = static_cast<char>(frame[bit / 8] ^ (1 << (bit % 8)));
                auto r = decode(frame);
                REQUIRE(!r);
                REQUIRE(r.status().code == Code::protocol);
                frame[bit / 8] = static_cast<char>(frame[bit / 8] ^ (1 << (bit % 8)));
            }
        }
}

TEST_CASE("a header is checked before its payload is believed") {
    const std::string good = frame_in(positional_form, Gwait{}).substr(0, header_bytes);
    CHECK(decode_header(good, 9));
    CHECK(decode_header(good, 8).status().code == Code::limit);
    auto with = [&](std::size_t at, char value) {
        std::string h = good;
        h[at] = value;
        return decode_header(h, 1 << 20);
    };
    CHECK(with(0, 'd').status().code == Code::protocol);
    CHECK(with(3, '2').status().code == Code::protocol);
    CHECK(!with(4, 0));  // kind 0
    const auto last = static_cast<char>(kind_of(SetSession{}));
    CHECK(!with(4, static_cast<char>(last + 1)));
    CHECK(with(4, last));
    CHECK(!with(5, 1));  // kind 256 + ...
    CHECK(with(6, 9));
    CHECK(with(6, 10).status().text == about("10 8 9"));
    CHECK(with(6, 7).status().text ==
          "the peer speaks protocol version 7, but this program speaks 8 to 9: upgrade "
          "the peer");
    CHECK(with(11, '\x7f').status().code == Code::limit);  // 2 GiB
    CHECK(!decode_payload(FrameHeader{}, ""));             // a header that no party checked
}

TEST_CASE("values that a type does not have are refused") {
    auto refuse = [](std::uint16_t kind, const std::string &payload, const char *field) {
        auto r = decode_payload(header_for(kind, payload, positional_form), payload);
        REQUIRE(!r);
        INFO(r.status().text);
        CHECK(r.status().text.find(field) != std::string::npos);
    };
    std::string open = old_payload(OpenSession{3, OpenMode::open, false});
    open[4] = 3;
    refuse(5, open, "mode");
    open[4] = 2, open[5] = 2;
    refuse(5, open, "sent_reset");
    std::string fetch = old_payload(Fetch{"", 1, 2, Stream::out, 0, 1});
    fetch[12] = 7;
    refuse(14, fetch, "stream");
    std::string query = old_payload(Query{});
    query[0] = 9;
    refuse(16, query, "type");
    std::string set = old_payload(SetHost{});
    set[15] = '\x7f', set[14] = '\xf8';  // the interval is not a number
    refuse(36, set, "interval_s");
    std::string why = old_payload(Explanation{});
    why[8] = 2;
    refuse(35, why, "can_run");
    std::string ack = old_payload(ReportAck{});
    ack.back() = 4;
    refuse(26, ack, "verdict");
    std::string call_in = old_payload(CallIn{});
    call_in[7] = '\x7f', call_in[6] = '\xf8';  // not a number
    refuse(20, call_in, "load");
    std::string report = old_payload(GrainReport{});
    report[report.size() - 5] = 4;  // before the number of its files
    refuse(21, report, "given_back");
}

TEST_CASE("caps of fields hold") {
    auto refused_in = [](const AnyMessage &m, Form form) {
        auto r = decode(frame_in(form, m));
        return !r && r.status().code == Code::protocol;
    };
    auto refused = [&](const AnyMessage &m) {
        CHECK(refused_in(m, newest_form) == refused_in(m, positional_form));
        return refused_in(m, newest_form);
    };
    CHECK(refused(Hello{1, std::string(33, 'x')}));
    CHECK(!refused(Hello{1, std::string(32, 'x')}));
    CHECK(refused(GetAuth{std::string(limits::name_bytes + 1, 'x')}));
    GrainSpec spec;
    spec.argv.assign(limits::argv_items, "a");
    CHECK(!refused(Gexec{1, 1, spec}));
    spec.argv.push_back("a");
    CHECK(refused(Gexec{1, 1, spec}));
    spec = {};
    spec.label.assign(limits::label_bytes + 1, 'x');
    CHECK(refused(Gexec{1, 1, spec}));
    spec = {};
    spec.argv = {std::string(100000, 'x')};  // the cap of argv counts its items
    CHECK(!refused(Gexec{1, 1, spec}));
    CHECK(refused(Piece{1, std::string(limits::fetch_chunk_bytes + 1, 'x')}));
    CHECK(refused(PutContent{"d", 1u << 30, 0, std::string(limits::fetch_chunk_bytes + 1, 'x')}));
    CHECK(refused(WantContent{std::string(limits::digest_bytes + 1, 'x'), 0, 1}));
    spec = {};
    spec.files.resize(limits::grain_files + 1);
    CHECK(refused(Gexec{1, 1, spec}));
    spec.files.resize(1);
    spec.files[0].name.assign(limits::path_bytes + 1, 'x');
    CHECK(refused(Gexec{1, 1, spec}));
    GexecMany batch;
    batch.orders.resize(limits::batch_grains + 1);
    for (GrainOrder &order : batch.orders) order.spec.argv = {"/bin/true"};
    batch.orders.pop_back();
    CHECK(!refused(batch));
    batch.orders.emplace_back();
    CHECK(refused(batch));
    batch.orders.resize(1);
    batch.orders[0].spec.label.assign(limits::label_bytes + 1, 'x');
    CHECK(refused(batch));
}
