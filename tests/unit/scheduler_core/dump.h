#pragma once
// The whole State as text, entities and everything derived: equal text, equal State.
#include <sstream>

#include "scheduler/state/decision.h"

namespace dcs::core {

class Dump {
public:
    static std::string of(const State &s) {
        Dump d;
        d.state(s);
        return d.out_.str();
    }

private:
    template <class... T> void put(const T &...x) { (one(x), ...); }
    void one(HostId id) { out_ << static_cast<int>(id) << ' '; }
    void one(ConnId id) { out_ << to_text(id) << ' '; }
    void one(RequestId id) { out_ << static_cast<std::uint64_t>(id) << ' '; }
    template <class T> void one(const T &x) { out_ << x << ' '; }
    template <class C> void bytes(const C &c) {
        for (const auto b : c) out_ << static_cast<int>(b) << '.';
        out_ << ' ';
    }
    void usage(const wire::Usage &u) {
        put(u.user_us, u.system_us, u.max_rss_kb, u.minor_faults, u.major_faults, u.in_blocks, u.out_blocks);
    }
    void grain(const Grain &g) {
        put(static_cast<int>(g.status()), g.own_tree, g.demands->urgent, g.params_own_file, g.demands->attempts,
            int{g.course->failures});
        put(g.demands->thrash, g.demands->notice, g.demands->host_class, g.incarnation, g.lessee, g.course->sequence);
        if (const auto *end = std::get_if<Finished>(&g.phase)) put(end->exit_code, end->signal, end->result_index);
        if (const auto *ready = std::get_if<Ready>(&g.phase)) put(ready->queue_position);
        if (const auto *killed = std::get_if<Killed>(&g.phase)) put(killed->after);
        bytes(g.fingerprint);
        put(g.request, g.params_offset, g.params_length, g.input_length, g.course->input_position);
        put(g.course->checkpoint_length, g.course->message_length, g.course->out_length, g.course->err_length,
            g.course->result_offset);
        usage(g.course->past);
        usage(g.course->current);
        bytes(g.course->nogo.get());
        put(g.params_sum, g.course->checkpoint_sum, g.course->message_sum, g.course->out_sum, g.course->err_sum);
        put(g.recent->checkpoint_time.ns, g.launched, g.recent->failed_on, int{g.recent->failures_there},
            g.course->skipped, int{g.course->returns}, int{g.recent->refusals}, g.recent->rest_until.ns);
        usage(g.course->before);
        put(g.course->kept->held, g.course->kept->start, g.course->kept->before, g.course->kept->saved);
        put(g.known, g.course->told);
        put(g.program, g.lease, g.course->old_lease.host, g.course->old_lease.lease);
        put(g.demands->cores, g.demands->memory_mb, g.demands->wall_s);
        for (const std::string &digest : g.files->digests) put("content", digest);
        for (const std::string &name : g.files->binary_classes) put("class", name);
        for (const wire::GrainFile &file : g.files->outputs) put("output", wire::to_text(file));
        for (const Move &m : g.course->moves.get()) put("moved", name_of(m.reason), m.host, m.incarnation, m.detail);
        for (const Instant at : g.recent->moved) put(at.ns);
    }
    void session(const Session &s) {
        const SessionInfo &i = s.info;
        put(static_cast<int>(i.status), i.seniority, i.ident, i.open_request, i.resumable, i.sent, i.shown);
        bytes(i.token);
        put(i.result_count, i.queue_front, i.queue_back, i.inputs_length, i.results_length, i.grains_length);
        put(i.events_length);
        for (const auto &[n, g] : s.grains) {
            put("\n  grain", n);
            grain(g);
        }
        put("\n  ready");
        for (const auto &[shape, queue] : s.ready) {
            this->shape(shape);
            for (const auto &[program, count] : queue.programs) put("program", program, count);
            for (const auto &[p, n] : queue.grains) put(p, n);
        }
        put("\n  results");
        bytes(s.results.grains());
        bytes(s.counts);
        put("waiters");
        for (const Waiter &w : s.waiters) put(w.conn, w.request, w.next, w.most, w.acknowledges);
    }
    void shape(const Shape &s) {
        put("\n  shape", s.host_class, int{s.thrash_bits}, int{s.memory_bits}, int{s.program_group}, s.cores);
        for (const std::string &name : s.binary_classes) put("class", name);
    }
    void config(const HostConfig &c) {
        put(c.name, c.binary_class, c.host_class, c.slots, c.interval.ns, c.alert.ns, c.limit.ns, c.extended.ns,
            c.cores, c.memory_mb, c.require_confinement, c.pilot);
        for (const auto *list : {&c.users, &c.check, &c.file_server, &c.gateway}) {
            put("list");
            for (const std::string &item : *list) put(item);
        }
    }
    void host(const Host &h) {
        config(h.config);
        config(h.table);
        put(h.setting.slots, h.setting.interval.ns, h.setting.alert.ns, h.setting.limit.ns, h.setting.extended.ns,
            h.setting.host_class, h.setting.drained, h.totals.blamed, h.blamed_lately);
        put(static_cast<int>(h.checked), h.checked_at.ns, h.probe);
        for (const Usurpation &u : h.usurping)
            put("usurps", to_text(u.by), u.incarnation, to_text(u.displaced), u.displaced_lease);
        for (const auto &[program, until] : h.missing) put("missing", program.user, program.program, until.ns);
        put(h.configured, static_cast<int>(h.status), h.conn, h.last_contact.ns, h.binary_class, h.load,
            h.free_memory_kb, h.total_memory_kb, h.fence, h.confinement, h.last_call.ns, h.left, h.ended.ns);
        put(h.claimed.ns, h.limits.memory_mb, h.limits.processes, h.limits.cpu_s, h.limits.file_mb, h.limits.disk_mb);
        put(h.totals.launched, h.totals.finished, h.totals.failed, h.totals.given_back, h.totals.cpu_us);
        for (const HeldBack &b : h.held_back) put(to_text(b.key), b.until.ns);
    }
    void state(const State &s) {
        put(s.next_seniority, s.epoch);
        for (const auto &[key, x] : s.sessions) {
            put("\nsession", to_text(key));
            session(x);
        }
        for (const Host &h : s.hosts) {
            put("\nhost");
            host(h);
        }
        for (const auto &[hash, code] : s.trust.codes) {
            put("\ncode", code.host, code.by, code.expires_s, code.used, code.key.has_value());
            bytes(hash);
            if (code.key) bytes(*code.key);
        }
        for (const auto &[host, key] : s.trust.keys) {
            put("\nkey", host);
            bytes(key);
        }
        for (const auto &[host, up_to] : s.handed_over) put("\nhanded over", host, up_to.store, up_to.number);
        put("\nbackup", s.backup.conn, s.backup.store, s.backup.patience.ns);
        for (const auto &[host, call] : s.waiting_calls) put("waits", host, call->conn);
        for (const auto &[hash, entry] : s.auth) {
            put("\nauth", entry.user, entry.ident, entry.stamp_s);
            bytes(hash);
        }
        put("\nseniority");
        for (const auto &[n, key] : s.by_seniority) put(n, to_text(key));
        put("\nwaiting");
        for (const auto &[kind, users] : s.waiting) {
            shape(kind);
            for (const auto &[user, sessions] : users)
                for (const auto &[n, key] : sessions) put(user, n, to_text(key));
        }
        for (const auto &there : s.running) {
            put("\nrunning");
            for (const GrainKey &key : there) put(to_text(key));
        }
        put("\nids");
        for (const auto &[name, id] : s.host_ids) put(name, id);
        put("\nopen");
        for (const auto &[host_class, hosts] : s.open_hosts) {
            put("class", host_class);
            for (const HostId id : hosts) put(id);
        }
        put("\ndeadlines");
        for (const auto &[t, id] : s.deadlines) put(t.ns, id);
        put("\nconnections");
        for (const auto &[conn, id] : s.host_of_conn) put(conn, id);
        for (const auto &[conn, keys] : s.waiting_conns)
            for (const SessionKey &key : keys) put("parked", conn, to_text(key));
        put("\nusers");
        for (const auto &[user, n] : s.users) put(user, n.sessions, n.unfinished, n.running);
        for (const Used &u : s.used) put("used", u.cores, u.memory_mb);
        for (const SessionKey &key : s.unpacked) put("unpacked", to_text(key));
        for (const auto &[digest, grains] : s.contents) put("content", digest, grains);
        const Policy &p = s.policy;
        put("\npolicy", p.fair_share, p.sessions_per_user, p.grains_per_user, p.running_per_user, p.probation,
            p.stored_mb_per_user, p.stored_share);
        for (const auto &[user, has] : s.stored.users()) put("stored", user, has.sessions, has.contents);
        for (const auto &[user, calls] : s.parked) put("parked calls", user, calls);
        for (const std::string &user : p.users) put(user);
    }
    std::ostringstream out_;
};

}  // namespace dcs::core
