#include "scheduler/record/codec_0_1.h"

namespace dcs::record {
namespace {

template <std::size_t n> void get(ByteReader &r, std::array<std::uint8_t, n> &bytes) {
    for (std::uint8_t &b : bytes) b = r.u8();
}
std::string get_text(ByteReader &r) { return std::string(r.raw(r.var())); }

template <class Enum> void get_enum(ByteReader &r, Enum &out, int last) {
    const std::uint8_t read = r.u8();
    if (read > last) r.spoil();
    out = static_cast<Enum>(read);
}
// So many as a number in front of them says, of `most`.
template <class Read> void each(ByteReader &r, std::uint64_t most, Read read) {
    const std::uint64_t count = r.var();
    if (count > most) r.spoil();
    for (std::uint64_t i = 0; i < count && r.good(); ++i) read();
}

void get_usage(ByteReader &r, wire::Usage &u) {
    for (std::int64_t *v :
         {&u.user_us, &u.system_us, &u.max_rss_kb, &u.minor_faults, &u.major_faults, &u.in_blocks, &u.out_blocks})
        *v = r.svar();
}

void get_files(ByteReader &r, core::GrainFiles &files) {
    each(r, limits::grain_files, [&] { files.digests.emplace_back(r.raw(limits::digest_bytes)); });
    each(r, limits::grain_files, [&] { files.binary_classes.push_back(get_text(r)); });
    each(r, limits::grain_files, [&] {
        wire::GrainFile &file = files.outputs.emplace_back();
        file.name = get_text(r);
        file.digest = get_text(r);
        file.size = r.var();
        if (!Fields<wire::GrainFile>::valid(file)) r.spoil();
    });
    if (!Fields<core::GrainFiles>::valid(files)) r.spoil();
}

template <class Length> void get_content(ByteReader &r, Length &length, std::uint32_t &sum) {
    r.get_var(length);
    sum = r.u32();
}

// A record has a word of these; what is not in it has its default.
struct GrainParts {
    ByteReader &r;
    const std::uint32_t parts;
    bool has(int bit) const { return (parts >> bit & 1) != 0; }

    void wishes(wire::Demands &d) const {
        if (has(0)) {
            d.attempts = r.u8();
            r.get_svar(d.thrash);
            r.get_svar(d.notice);
            r.get_var(d.host_class);
        }
    }
    void course(core::DurableGrain &g) const {
        if (has(1)) g.course.edit().failures = r.u8();
        if (has(2)) {
            r.get_var(g.incarnation);
            r.get_var(g.course.edit().sequence);
        }
        // Fields of phases that a grain has left were written, too.
        core::Finished end;
        if (has(3)) {
            r.get_svar(end.exit_code);
            r.get_svar(end.signal);
        }
        if (has(4)) r.get_svar(end.result_index);
        if (auto *finished = std::get_if<core::Finished>(&g.phase)) *finished = end;
        const std::int64_t position = has(5) ? r.svar() : 0;
        if (auto *ready = std::get_if<core::Ready>(&g.phase)) ready->queue_position = position;
        if (has(6)) g.course.edit().input_position = r.var();
        if (has(7)) get_content(r, g.course.edit().checkpoint_length, g.course.edit().checkpoint_sum);
        if (has(8)) get_content(r, g.course.edit().message_length, g.course.edit().message_sum);
        if (has(9)) get_content(r, g.course.edit().out_length, g.course.edit().out_sum);
        if (has(10)) get_content(r, g.course.edit().err_length, g.course.edit().err_sum);
        if (has(11)) g.course.edit().result_offset = r.var();
        if (has(12)) get_usage(r, g.course.edit().past.edit());
        if (has(13)) get_usage(r, g.course.edit().current);
        if (has(16)) g.program = r.u32();
    }
    void rest(core::DurableGrain &g) const {
        Incarnation behind = 0;
        if (has(18)) r.get_var(behind);
        if (behind > g.incarnation) r.spoil();
        g.lease = g.incarnation - behind;
        if (has(19)) get_usage(r, g.course.edit().before.edit());
        if (has(22)) get_files(r, g.files.edit());
        if (has(23)) r.get_var(g.known);
        core::Killed killed;
        if (has(24)) r.get_var(killed.after);
        if (g.status() == core::GrainStatus::killed) g.phase = killed;
        if (has(25)) r.get_var(g.course.edit().told);
        if (!has(26)) return;
        core::Kept &kept = g.course.edit().kept.edit();
        for (std::int64_t *v : {&kept.held, &kept.start, &kept.before, &kept.saved})
            if ((*v = r.svar()) < 0) r.spoil();
    }
    void hosts(core::DurableGrain &g, const HostIds &ids) const {
        const auto host = [&] {
            const std::string name = get_text(r);
            return name.empty() ? core::no_host : ids(name);
        };
        if (has(14)) g.lessee = host();
        if (has(15))
            each(r, UINT64_MAX, [&] {
                if (const core::HostId id = host(); id != core::no_host) g.course.edit().nogo.edit().push_back(id);
            });
        if (has(20)) {
            g.course.edit().old_lease.host = host();
            r.get_var(g.course.edit().old_lease.lease);
        }
        if (!has(21)) return;
        each(r, limits::moves_kept, [&] {
            core::Move &move = g.course.edit().moves.edit().emplace_back();
            get_enum(r, move.reason, core::move_reasons - 1);
            move.host = host();
            r.get_var(move.incarnation);
            move.detail = get_text(r);
        });
    }
};

}  // namespace

void get_0_1(ByteReader &r, core::DurableGrain &g, const HostIds &ids) {
    std::uint32_t parts = 0;
    r.get_var(parts);
    const std::uint8_t first = r.u8();
    if (parts >= 1u << 27 || first >= 32) r.spoil();
    const GrainParts there{r, parts};
    wire::Demands demands;
    g.phase = core::phase_of(static_cast<core::GrainStatus>(first & 3));
    g.own_tree = (first & 4) != 0;
    demands.urgent = (first & 8) != 0;
    g.params_own_file = (first & 16) != 0;
    get(r, g.fingerprint);
    g.request = core::RequestId{r.u64()};
    g.params_offset = r.var();
    r.get_var(g.params_length);
    g.params_sum = r.u32();
    g.input_length = r.var();
    there.wishes(demands);
    there.course(g);
    if (there.has(17))
        for (std::int32_t *v : {&demands.cores, &demands.memory_mb, &demands.wall_s}) r.get_svar(*v);
    if (!Fields<wire::Demands>::valid(demands)) r.spoil();
    g.demands = demands;
    there.rest(g);
    there.hosts(g, ids);
}

void get_0_1(ByteReader &r, core::SessionInfo &info) {
    get_enum(r, info.status, static_cast<int>(core::SessionStatus::terminated));
    info.seniority = r.u64();
    info.ident = std::string(r.text());
    get(r, info.token);
    info.open_request = core::RequestId{r.u64()};
    info.resumable = r.u8() != 0;
    for (std::int32_t *v : {&info.sent, &info.shown, &info.result_count}) *v = static_cast<std::int32_t>(r.u32());
    for (std::int64_t *v : {&info.queue_front, &info.queue_back}) *v = static_cast<std::int64_t>(r.u64());
    for (std::uint64_t *v : {&info.inputs_length, &info.results_length, &info.grains_length, &info.events_length})
        *v = r.u64();
}

void get_0_1(ByteReader &r, AuthTable &table) {
    const std::uint32_t count = r.u32();
    for (std::uint32_t i = 0; i < count && r.good(); ++i) {
        TokenHash hash{};
        get(r, hash);
        core::AuthEntry &entry = table.tokens[hash];
        entry.user = std::string(r.text());
        entry.ident = std::string(r.text());
        entry.stamp_s = static_cast<std::int64_t>(r.u64());
        entry.host = std::string(r.text());
        if (!entry.host.empty()) get(r, entry.key);
    }
    if (table.tokens.size() != count) r.spoil();
}

void get_0_1(ByteReader &r, HostsTable &table) {
    while (r.good() && !r.at_end()) {
        core::DurableHost &host = table.hosts[get_text(r)];
        core::HostTotals &t = host.totals;
        for (std::uint64_t *v : {&t.launched, &t.finished, &t.failed, &t.given_back, &t.blamed}) *v = r.var();
        t.cpu_us = r.svar();
        if (r.u8() == 0) continue;
        core::HostSetting &s = host.setting;
        r.get_svar(s.slots);
        for (Duration *d : {&s.interval, &s.alert, &s.limit, &s.extended}) d->ns = r.svar();
        r.get_var(s.host_class);
        s.drained = r.u8() != 0;
    }
}

void get_0_1(ByteReader &r, core::Trust &trust) {
    each(r, UINT64_MAX, [&] {
        TokenHash hash{};
        get(r, hash);
        core::JoinCode &code = trust.codes[hash];
        code.host = get_text(r);
        code.by = get_text(r);
        code.expires_s = static_cast<std::int64_t>(r.u64());
        code.used = r.u8() != 0;
        if (r.u8() != 0) get(r, code.key.emplace());
        get_enum(r, code.role, static_cast<int>(core::HostRole::backup));
    });
    const std::uint64_t clients = r.var(), backups = r.var();
    const auto key_of = [&](std::map<std::string, TokenHash> &keys) {
        const std::string host = get_text(r);
        get(r, keys[host]);
    };
    for (std::uint64_t i = 0; i < clients && r.good(); ++i) key_of(trust.clients);
    for (std::uint64_t i = 0; i < backups && r.good(); ++i) key_of(trust.backups);
    while (r.good() && !r.at_end()) key_of(trust.keys);
}

void get_0_1(ByteReader &r, HandedOverTable &table) {
    while (r.good() && !r.at_end()) {
        core::HandedOver &up_to = table.hosts[get_text(r)];
        up_to.store = r.u64();
        up_to.number = r.var();
    }
}

}  // namespace dcs::record
