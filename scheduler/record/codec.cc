#include "scheduler/record/codec.h"

#include "base/limits.h"
#include "scheduler/record/frame.h"

namespace dcs::record {
namespace {

// 5: without part_starts; 4: without part_kept; 3: without the parts from part_known on
constexpr std::uint8_t grain_version = 6;

void put_usage(ByteWriter &w, const wire::Usage &u) {
    for (const std::int64_t v : {u.user_us, u.system_us, u.max_rss_kb, u.minor_faults,
                                 u.major_faults, u.in_blocks, u.out_blocks})
        w.svar(v);
}
void get_usage(ByteReader &r, wire::Usage &u) {
    for (std::int64_t *v : {&u.user_us, &u.system_us, &u.max_rss_kb, &u.minor_faults,
                            &u.major_faults, &u.in_blocks, &u.out_blocks})
        *v = r.svar();
}

// First byte of a grain: its status and these.
enum Flag : std::uint8_t { flag_own_tree = 4, flag_urgent = 8, flag_params_own_file = 16 };

// What a grain has beyond its parameters; what is not there has its default. The word of them has a
// variable length: what most grains have stands in front.
enum Field : std::uint32_t {
    part_wishes = 1u << 0,      // attempts, thrash, notice, host class
    part_failures = 1u << 1,
    part_lease = 1u << 2,       // incarnation, sequence
    part_end = 1u << 3,         // exit code, signal
    part_result = 1u << 4,      // result index
    part_queue = 1u << 5,       // queue position
    part_position = 1u << 6,    // input position
    part_checkpoint = 1u << 7,  // length and checksum, as of the next three
    part_message = 1u << 8,
    part_out = 1u << 9,
    part_err = 1u << 10,
    part_place = 1u << 11,      // offset in the session's results
    part_past = 1u << 12,
    part_current = 1u << 13,
    part_host = 1u << 14,
    part_nogo = 1u << 15,
    part_program = 1u << 16,
    part_demand = 1u << 17,     // cores, memory, wall time
    part_taken_back = 1u << 18, // by how much the lease is behind the incarnation
    part_before = 1u << 19,
    part_old_lease = 1u << 20,  // its host and number
    part_moves = 1u << 21,
    part_files = 1u << 22,      // contents that it names, and outputs
    part_known = 1u << 23,      // results that were handed out before it was submitted
    part_killed_after = 1u << 24,
    part_told = 1u << 25,
    part_kept = 1u << 26,       // processor time that its checkpoints hold
    part_starts = 1u << 27,     // numbers under which it never ran, and how often it came back in a row
    parts_known = 1u << 28
};

std::uint32_t parts_of(const core::Grain &g) {
    const core::Grain none;
    const auto differs = [&](auto... members) { return (... || (g.*members != none.*members)); };
    using G = core::Grain;
    unsigned parts = 0;
    const auto add = [&](Field part, bool there) { if (there) parts |= part; };
    add(part_wishes, differs(&G::attempts, &G::thrash, &G::notice, &G::host_class));
    add(part_failures, differs(&G::failures));
    add(part_lease, differs(&G::incarnation, &G::sequence));
    add(part_end, differs(&G::exit_code, &G::signal));
    add(part_result, differs(&G::result_index));
    add(part_queue, differs(&G::queue_position));
    add(part_position, differs(&G::input_position));
    add(part_checkpoint, differs(&G::checkpoint_length, &G::checkpoint_sum));
    add(part_message, differs(&G::message_length, &G::message_sum));
    add(part_out, differs(&G::out_length, &G::out_sum));
    add(part_err, differs(&G::err_length, &G::err_sum));
    add(part_place, differs(&G::result_offset));
    add(part_past, g.past.get() != wire::Usage());
    add(part_current, g.current.get() != wire::Usage());
    add(part_host, g.host != core::no_host);
    add(part_nogo, !g.nogo->empty());
    add(part_program, g.program != 0);
    add(part_demand, g.demand.get() != core::Demand());
    add(part_taken_back, g.lease != g.incarnation);
    add(part_before, g.before.get() != wire::Usage());
    add(part_old_lease, g.old_lease != core::OldLease());
    add(part_moves, !g.moves->empty());
    add(part_files, g.files.get() != core::GrainFiles());
    add(part_known, differs(&G::known));
    add(part_killed_after, differs(&G::killed_after));
    add(part_told, differs(&G::told));
    add(part_kept, g.kept.get() != core::Kept());
    add(part_starts, differs(&G::skipped, &G::returns));
    return parts;
}

void put_files(ByteWriter &w, const core::GrainFiles &files) {
    w.var(files.digests.size());
    for (const std::string &digest : files.digests) w.raw(digest);
    w.var(files.binary_classes.size());
    for (const std::string &name : files.binary_classes) put_text(w, name);
    w.var(files.outputs.size());
    for (const wire::GrainFile &file : files.outputs) {
        put_text(w, file.name);
        put_text(w, file.digest);
        w.var(file.size);
    }
}

void get_files(ByteReader &r, core::GrainFiles &files) {
    const auto each = [&r](auto read) {
        const std::uint64_t count = r.var();
        if (count > limits::grain_files) r.spoil();
        for (std::uint64_t i = 0; i < count && r.good(); ++i) read();
    };
    each([&] { files.digests.emplace_back(r.raw(limits::digest_bytes)); });
    each([&] { files.binary_classes.push_back(get_text(r)); });
    each([&] {
        wire::GrainFile file;
        file.role = wire::FileRole::output;
        file.name = get_text(r);
        file.digest = get_text(r);
        file.size = r.var();
        if (!file.digest.empty() && file.digest.size() != limits::digest_bytes) r.spoil();
        files.outputs.push_back(std::move(file));
    });
    if (!std::is_sorted(files.digests.begin(), files.digests.end())) r.spoil();
}

void put_content(ByteWriter &w, bool there, std::uint64_t length, std::uint32_t sum) {
    if (!there) return;
    w.var(length);
    w.u32(sum);
}
template <class Length>
void get_content(ByteReader &r, bool there, Length &length, std::uint32_t &sum) {
    if (!there) return;
    const std::uint64_t read = r.var();
    length = static_cast<Length>(read);
    if (length != read) r.spoil();
    sum = r.u32();
}

void put_grain(ByteWriter &w, const core::Grain &g, unsigned parts) {
    const auto has = [&](Field part) { return (parts & part) != 0; };
    w.u8(static_cast<std::uint8_t>(static_cast<unsigned>(g.status) |
                                   g.own_tree * flag_own_tree | g.urgent * flag_urgent |
                                   g.params_own_file * flag_params_own_file));
    put(w, g.fingerprint);
    w.u64(g.request);
    w.var(g.params_offset);
    w.var(g.params_length);
    w.u32(g.params_sum);
    w.var(g.input_length);
    if (has(part_wishes)) {
        w.u8(g.attempts);
        w.svar(g.thrash);
        w.svar(g.notice);
        w.var(g.host_class);
    }
    if (has(part_failures)) w.u8(g.failures);
    if (has(part_lease)) {
        w.var(g.incarnation);
        w.var(g.sequence);
    }
    if (has(part_end)) {
        w.svar(g.exit_code);
        w.svar(g.signal);
    }
    if (has(part_result)) w.svar(g.result_index);
    if (has(part_queue)) w.svar(g.queue_position);
    if (has(part_position)) w.var(g.input_position);
    put_content(w, has(part_checkpoint), g.checkpoint_length, g.checkpoint_sum);
    put_content(w, has(part_message), g.message_length, g.message_sum);
    put_content(w, has(part_out), g.out_length, g.out_sum);
    put_content(w, has(part_err), g.err_length, g.err_sum);
    if (has(part_place)) w.var(g.result_offset);
    if (has(part_past)) put_usage(w, g.past);
    if (has(part_current)) put_usage(w, g.current);
    if (has(part_program)) w.u32(g.program);
    if (has(part_demand))
        for (const std::int32_t v : {g.demand->cores, g.demand->memory_mb, g.demand->wall_s}) w.svar(v);
    if (has(part_taken_back)) w.var(g.incarnation - g.lease);
    if (has(part_before)) put_usage(w, g.before);
    if (has(part_files)) put_files(w, g.files);
    if (has(part_known)) w.var(static_cast<std::uint32_t>(g.known));
    if (has(part_killed_after)) w.var(static_cast<std::uint32_t>(g.killed_after));
    if (has(part_told)) w.var(g.told);
    if (has(part_kept))
        for (const std::int64_t v : {g.kept->held, g.kept->start, g.kept->before, g.kept->saved}) w.svar(v);
    if (!has(part_starts)) return;
    w.var(g.skipped);
    w.u8(g.returns);
}

// A number that is too large for its field spoils the reader.
template <class Number> void get_var(ByteReader &r, Number &out) {
    const std::uint64_t read = r.var();
    out = static_cast<Number>(read);
    if (static_cast<std::uint64_t>(out) != read) r.spoil();
}
template <class Number> void get_svar(ByteReader &r, Number &out) {
    const std::int64_t read = r.svar();
    out = static_cast<Number>(read);
    if (out != read) r.spoil();
}

void get_grain(ByteReader &r, core::Grain &g, unsigned parts) {
    const auto has = [&](Field part) { return (parts & part) != 0; };
    const std::uint8_t first = r.u8();
    if (first >= 2 * flag_params_own_file) r.spoil();
    g.status = static_cast<core::GrainStatus>(first & 3);
    g.own_tree = (first & flag_own_tree) != 0;
    g.urgent = (first & flag_urgent) != 0;
    g.params_own_file = (first & flag_params_own_file) != 0;
    get(r, g.fingerprint);
    g.request = r.u64();
    g.params_offset = r.var();
    get_var(r, g.params_length);
    g.params_sum = r.u32();
    g.input_length = r.var();
    if (has(part_wishes)) {
        g.attempts = r.u8();
        get_svar(r, g.thrash);
        get_svar(r, g.notice);
        get_var(r, g.host_class);
    }
    if (has(part_failures)) g.failures = r.u8();
    if (has(part_lease)) {
        get_var(r, g.incarnation);
        get_var(r, g.sequence);
    }
    if (has(part_end)) {
        get_svar(r, g.exit_code);
        get_svar(r, g.signal);
    }
    if (has(part_result)) get_svar(r, g.result_index);
    if (has(part_queue)) g.queue_position = r.svar();
    if (has(part_position)) g.input_position = r.var();
    get_content(r, has(part_checkpoint), g.checkpoint_length, g.checkpoint_sum);
    get_content(r, has(part_message), g.message_length, g.message_sum);
    get_content(r, has(part_out), g.out_length, g.out_sum);
    get_content(r, has(part_err), g.err_length, g.err_sum);
    if (has(part_place)) g.result_offset = r.var();
    if (has(part_past)) get_usage(r, g.past.edit());
    if (has(part_current)) get_usage(r, g.current.edit());
    if (has(part_program)) g.program = r.u32();
    if (has(part_demand))
        for (std::int32_t *v : {&g.demand.edit().cores, &g.demand.edit().memory_mb, &g.demand.edit().wall_s})
            get_svar(r, *v);
    Incarnation behind = 0;
    if (has(part_taken_back)) get_var(r, behind);
    if (behind > g.incarnation) r.spoil();
    g.lease = g.incarnation - behind;
    if (has(part_before)) get_usage(r, g.before.edit());
    if (has(part_files)) get_files(r, g.files.edit());
    if (has(part_known)) get_var(r, g.known);
    if (has(part_killed_after)) get_var(r, g.killed_after);
    if (has(part_told)) get_var(r, g.told);
    if (has(part_kept))
        for (std::int64_t *v : {&g.kept.edit().held, &g.kept.edit().start, &g.kept.edit().before, &g.kept.edit().saved})
            if ((*v = r.svar()) < 0) r.spoil();
    if (!has(part_starts)) return;
    get_var(r, g.skipped);
    g.returns = r.u8();
    if (g.skipped > g.incarnation) r.spoil();
}

// Parts that name hosts come last.
void put_hosts(ByteWriter &w, const core::State &state, const core::Grain &g, unsigned parts) {
    if (parts & part_host) put_text(w, state.host_name(g.host));
    if (parts & part_nogo) {
        w.var(g.nogo->size());
        for (const core::HostId id : g.nogo.get()) put_text(w, state.host_name(id));
    }
    if (parts & part_old_lease) {
        put_text(w, state.host_name(g.old_lease.host));
        w.var(g.old_lease.lease);
    }
    if (!(parts & part_moves)) return;
    w.var(g.moves->size());
    for (const core::Move &move : g.moves.get()) {
        w.u8(static_cast<std::uint8_t>(move.reason));
        put_text(w, state.host_name(move.host));
        w.var(move.incarnation);
        put_text(w, move.detail);
    }
}

void get_hosts(ByteReader &r, GrainRecord &record, unsigned parts) {
    if (parts & part_host) record.host = get_text(r);
    const std::uint64_t count = parts & part_nogo ? r.var() : 0;
    for (std::uint64_t i = 0; i < count && r.good(); ++i) record.nogo.push_back(get_text(r));
    if (parts & part_old_lease) {
        record.old_host = get_text(r);
        get_var(r, record.grain.old_lease.lease);
    }
    const std::uint64_t moves = parts & part_moves ? r.var() : 0;
    if (moves > limits::moves_kept) r.spoil();
    for (std::uint64_t i = 0; i < moves && r.good(); ++i) {
        core::Move move;
        const std::uint8_t reason = r.u8();
        if (reason >= core::move_reasons) r.spoil();
        move.reason = static_cast<core::MoveReason>(reason);
        record.move_hosts.push_back(get_text(r));
        get_var(r, move.incarnation);
        move.detail = get_text(r);
        record.grain.moves.edit().push_back(std::move(move));
    }
}

}  // namespace

std::string encode_grain(const core::State &state, GrainNumber number, const core::Grain &grain) {
    const std::uint32_t parts = parts_of(grain);
    ByteWriter w;
    w.bytes().reserve(160);
    w.u8(grain_version);
    w.var(static_cast<std::uint32_t>(number));
    w.var(parts);
    put_grain(w, grain, parts);
    put_hosts(w, state, grain, parts);
    return framed(w.bytes());
}

namespace {
struct Beginning { std::uint8_t version = 0; GrainNumber number = 0; };

// What every grain record begins with; leaves the reader behind it.
Result<Beginning> begin_grain(ByteReader &r) {
    Beginning b;
    b.version = r.u8();
    if (auto s = check_version(b.version, grain_version); !s) return s;
    get_var(r, b.number);
    if (!r.good() || b.number < 0) return damaged("a record does not decode");
    return b;
}

// Format 1 had sixteen parts in a word of fixed length.
std::uint32_t get_parts(ByteReader &r, std::uint8_t version) {
    if (version == 1) return r.u16();
    std::uint32_t parts = 0;
    get_var(r, parts);
    if (parts >= parts_known) r.spoil();
    return parts;
}
}  // namespace

Result<GrainEntry> next_grain(std::string_view &log) {
    const std::string_view all = log;
    auto body = next_body(log);
    if (!body) return body.status();
    ByteReader r(*body);
    const auto beginning = begin_grain(r);
    if (!beginning) return beginning.status();
    return GrainEntry{beginning->number, all.substr(0, all.size() - log.size())};
}

Result<GrainRecord> decode_grain(std::string_view file) {
    auto body = next_body(file);
    if (!body) return body.status();
    if (!file.empty()) return damaged("bytes follow its record");
    ByteReader r(*body);
    const auto beginning = begin_grain(r);
    if (!beginning) return beginning.status();
    GrainRecord record;
    record.number = beginning->number;
    const std::uint32_t parts = get_parts(r, beginning->version);
    get_grain(r, record.grain, parts);
    get_hosts(r, record, parts);
    if (!r.at_end()) return damaged("a record does not decode");
    return record;
}

}  // namespace dcs::record
