#pragma once
// What the records hold: of each type one list, and of each field its number, name, place and meaning. The list writes
// the record, reads it, and makes the tables of docs/STATE_FORMAT.md.
//
// A new field gets the next free number at the end of its list, and the release that brings it. A number is never used
// again, and a field never gets another type. An older release skips what it does not know. If it must not, see
// docs/STATE_FORMAT.md, "Versions and upgrades".
#include <algorithm>

#include "base/limits.h"
#include "scheduler/record/tables.h"

namespace dcs::record {

template <class T> struct Fields;  // list(a): a.field(number, name, member, meaning, since) for each field

template <> struct Fields<wire::Usage> {
    static void list(auto &a) {
        using U = wire::Usage;
        a.field(1, "user_us", &U::user_us, "processor time in user mode, microseconds");
        a.field(2, "system_us", &U::system_us, "the same in the kernel");
        a.field(3, "max_rss_kb", &U::max_rss_kb, "largest resident size, KiB");
        a.field(4, "minor_faults", &U::minor_faults, "page faults without a read");
        a.field(5, "major_faults", &U::major_faults, "page faults with a read");
        a.field(6, "in_blocks", &U::in_blocks, "blocks read");
        a.field(7, "out_blocks", &U::out_blocks, "blocks written");
    }
};

// Numbers, names and kinds are those of the messages: the one list is in wire/demands.h.
template <> struct Fields<wire::Demands> {
    static bool valid(const wire::Demands &d) { return wire::out_of_range(d).empty(); }
};

template <> struct Fields<core::Kept> {
    static void list(auto &a) {
        using K = core::Kept;
        a.field(1, "held", &K::held, "in the newest checkpoint, microseconds");
        a.field(2, "start", &K::start, "that this incarnation began with");
        a.field(3, "before", &K::before, "that the incarnation before it began with");
        a.field(4, "saved", &K::saved, "sum over the incarnations that did not begin at nothing");
        a.field(5, "goes_on", &K::goes_on, "it failed, and may go on from its newest checkpoint", "0.2");
        a.field(6, "out_length", &K::out_length, "of its output at that checkpoint", "0.2");
        a.field(7, "out_sum", &K::out_sum, "CRC-32C of that output", "0.2");
        a.field(8, "err_length", &K::err_length, "of its error output at that checkpoint", "0.2");
        a.field(9, "err_sum", &K::err_sum, "CRC-32C of that error output", "0.2");
    }
    static bool valid(const core::Kept &k) { return k.held >= 0 && k.start >= 0 && k.before >= 0 && k.saved >= 0; }
};

template <> struct Fields<wire::GrainFile> {
    static void list(auto &a) {
        using F = wire::GrainFile;
        a.field(1, "name", &F::name, "in the grain's directory");
        a.field(2, "digest", &F::digest, "SHA-256; none: it was not made");
        a.field(3, "size", &F::size, "bytes");
    }
    static bool valid(wire::GrainFile &file) {
        file.role = wire::FileRole::output;  // the others are in the grain's parameters
        return file.digest.empty() || file.digest.size() == limits::digest_bytes;
    }
};

template <> struct Fields<core::GrainFiles> {
    static void list(auto &a) {
        using F = core::GrainFiles;
        a.field(1, "digests", &F::digests, "contents that its submission names, ascending");
        a.field(2, "binary_classes", &F::binary_classes, "for which it has a program, ascending; none: any");
        a.field(3, "outputs", &F::outputs, "files that it brings back: output");
    }
    static bool valid(const core::GrainFiles &f) {
        const auto whole = [](const std::string &digest) { return digest.size() == limits::digest_bytes; };
        return std::max({f.digests.size(), f.binary_classes.size(), f.outputs.size()}) <= limits::grain_files &&
               std::all_of(f.digests.begin(), f.digests.end(), whole) &&
               std::is_sorted(f.digests.begin(), f.digests.end());
    }
};

template <> struct Fields<core::OldLease> {
    static void list(auto &a) {
        a.field(1, "host", &core::OldLease::host, "that had it");
        a.field(2, "lease", &core::OldLease::lease, "its number");
    }
};

template <> struct Fields<core::Move> {
    static void list(auto &a) {
        using M = core::Move;
        a.field(1, "reason", &M::reason, "place in the list of scheduler/state/statuses.h");
        a.field(2, "host", &M::host, "that it left");
        a.field(3, "incarnation", &M::incarnation, "that ended there");
        a.field(4, "detail", &M::detail, "in words");
    }
};

template <> struct Fields<core::DurableGrain> {
    static void list(auto &a) {
        using G = core::DurableGrain;
        a.field(1, "status", &G::phase, "0 ready, 1 running, 2 finished, 3 killed");
        a.field(2, "fingerprint", &G::fingerprint, "of its parameters");
        a.field(3, "request", &G::request, "id of the call that submitted it");
        a.field(4, "params_offset", &G::params_offset, "of its parameters in `inputs`");
        a.field(5, "params_length", &G::params_length, "of its parameters");
        a.field(6, "params_sum", &G::params_sum, "CRC-32C of its parameters");
        a.field(7, "input_length", &G::input_length, "of its input");
        a.field(8, "queue_position", &core::Ready::queue_position, "while it is ready");
        a.field(9, "incarnation", &G::incarnation, "highest number of a lease of it");
        a.field(10, "lease", &G::lease, "the lease that counts");
        a.field(11, "host", &G::lessee, "where it runs, or ran last; ready: whose lease may be forgiven");
        a.field(12, "sequence", &core::Course::sequence, "last increment that was taken in");
        a.field(13, "program", &G::program, "digest of its program's path");
        a.field(14, "demands", &G::demands, "what its submission asks for: demands");
        a.field(15, "result_index", &core::Finished::result_index, "place in the order of results");
        a.field(16, "result_offset", &core::Course::result_offset, "of what it left in `results`");
        a.field(17, "out_length", &core::Course::out_length, "of its output");
        a.field(18, "out_sum", &core::Course::out_sum, "CRC-32C of its output");
        a.field(19, "err_length", &core::Course::err_length, "of its error output");
        a.field(20, "err_sum", &core::Course::err_sum, "CRC-32C of its error output");
        a.field(21, "exit_code", &core::Finished::exit_code, "of its end");
        a.field(22, "signal", &core::Finished::signal, "that ended it");
        a.field(23, "past", &core::Course::past, "usage of earlier incarnations");
        a.field(24, "current", &core::Course::current, "usage of this one");
        a.field(25, "before", &core::Course::before, "usage of the one before this one");
        a.field(26, "known", &G::known, "results handed out before it was submitted");
        a.field(27, "killed_after", &core::Killed::after, "results handed out when it was killed");
        a.field(28, "told", &core::Course::told, "increment of which its control program was shown something");
        a.field(29, "failures", &core::Course::failures, "ends by its own fault");
        a.field(30, "returns", &core::Course::returns, "innocent ends in a row without a new checkpoint", "0.2");
        a.field(31, "skipped", &core::Course::skipped, "numbers of leases under which it never ran", "0.2");
        a.field(32, "own_tree", &G::own_tree, "it has a tree of its own");
        a.field(33, "params_own_file", &G::params_own_file, "its parameters are in its tree");
        a.field(34, "input_position", &core::Course::input_position, "first byte of input that a restart needs");
        a.field(35, "checkpoint_length", &core::Course::checkpoint_length, "of its checkpoint");
        a.field(36, "checkpoint_sum", &core::Course::checkpoint_sum, "CRC-32C of its checkpoint");
        a.field(37, "message_length", &core::Course::message_length, "of its message");
        a.field(38, "message_sum", &core::Course::message_sum, "CRC-32C of its message");
        a.field(39, "kept", &core::Course::kept, "processor time in checkpoints: kept");
        a.field(40, "files", &G::files, "contents that it names: files");
        a.field(41, "nogo", &core::Course::nogo, "hosts where it must not run");
        a.field(42, "old_lease", &core::Course::old_lease, "of a host that was not heard of: old lease");
        a.field(43, "moves", &core::Course::moves, "why it left hosts, oldest first: move");
        a.field(44, "second_checkpoint", &core::Course::second_checkpoint, "its checkpoint is in `checkpoint2`", "0.2");
        a.field(45, "other_checkpoint", &core::Course::other_checkpoint, "bytes in the file of the one before", "0.2");
    }
    static bool valid(const core::DurableGrain &g) {
        return g.lease <= g.incarnation && g.course->skipped <= g.incarnation &&
               g.course->moves->size() <= limits::moves_kept &&
               std::count(g.course->nogo->begin(), g.course->nogo->end(), core::no_host) == 0 &&
               (!g.course->kept->goes_on || (g.own_tree && g.course->kept->out_length <= g.course->out_length &&
                                             g.course->kept->err_length <= g.course->err_length));
    }
};

template <> struct Fields<core::SessionInfo> {
    static void list(auto &a) {
        using S = core::SessionInfo;
        a.field(1, "status", &S::status, "0 active, 1 terminated");
        a.field(2, "seniority", &S::seniority, "smaller goes first: its nice value times 2^48, and its age");
        a.field(3, "ident", &S::ident, "of its control program");
        a.field(4, "token", &S::token, "SHA-256 of the token that holds it");
        a.field(5, "open_request", &S::open_request, "id of the call that opened it last");
        a.field(6, "resumable", &S::resumable, "a submission of before may come again");
        a.field(7, "sent", &S::sent, "results acknowledged");
        a.field(8, "shown", &S::shown, "results handed out");
        a.field(9, "result_count", &S::result_count, "places in the order of results");
        a.field(10, "queue_front", &S::queue_front, "queue positions given out: from here");
        a.field(11, "queue_back", &S::queue_back, "to before here");
        a.field(12, "inputs_length", &S::inputs_length, "of `inputs`");
        a.field(13, "results_length", &S::results_length, "of `results`");
        a.field(14, "grains_length", &S::grains_length, "of `grains`");
        a.field(15, "events_length", &S::events_length, "of `events`");
        a.field(16, "command", &S::command, "what was typed", "0.2");
        a.field(17, "label", &S::label, "a word of the user's", "0.2");
        a.field(18, "opened_ms", &S::opened_ms, "wall clock of its first event; 0: not known", "0.2");
        a.field(19, "settled_ms", &S::settled_ms, "wall clock of a grain's last end; 0: none", "0.2");
        a.field(20, "closed_ms", &S::closed_ms, "wall clock of its end; 0: active, or not known", "0.2");
    }
};

template <> struct Fields<core::AuthEntry> {
    static void list(auto &a) {
        using E = core::AuthEntry;
        a.field(1, "user", &E::user, "whose it is");
        a.field(2, "ident", &E::ident, "of the control program");
        a.field(3, "stamp_s", &E::stamp_s, "wall clock since when it holds no session; 0: it holds one");
        a.field(4, "host", &E::host, "of the control program; none: the scheduler's");
        a.field(5, "key", &E::key, "SHA-256 of the control program's key, on another host");
    }
};
template <> struct Fields<AuthTable> {
    static void list(auto &a) {
        a.field(1, "tokens", &AuthTable::tokens, "SHA-256 of a token: token");
        a.field(2, "last_numbers", &AuthTable::last_numbers, "user: highest number of a removed session", "0.2");
        a.field(3, "last_leases", &AuthTable::last_leases, "user: highest incarnation of a removed grain", "0.2");
    }
};

template <> struct Fields<core::HostTotals> {
    static void list(auto &a) {
        using T = core::HostTotals;
        a.field(1, "launched", &T::launched, "grains that it was given");
        a.field(2, "finished", &T::finished, "that finished there");
        a.field(3, "failed", &T::failed, "that failed there");
        a.field(4, "given_back", &T::given_back, "that it gave back");
        a.field(5, "blamed", &T::blamed, "that failed there and finished elsewhere");
        a.field(6, "cpu_us", &T::cpu_us, "processor time of those that ended there, microseconds");
    }
};
template <> struct Fields<core::HostSetting> {
    static void list(auto &a) {
        using S = core::HostSetting;
        a.field(1, "slots", &S::slots, "negative, as all of these: as in the host table");
        a.field(2, "interval", &S::interval, "between reports, nanoseconds");
        a.field(3, "alert", &S::alert, "silence after which it is delinquent");
        a.field(4, "limit", &S::limit, "silence after which it is dead");
        a.field(5, "extended", &S::extended, "the same while it could be alive");
        a.field(6, "host_class", &S::host_class, "0: as in the host table");
        a.field(7, "drained", &S::drained, "nothing new is started there");
        a.field(8, "drain_reason", &S::drain_reason, "why, for display");
    }
};
template <> struct Fields<core::DurableHost> {
    static void list(auto &a) {
        a.field(1, "totals", &core::DurableHost::totals, "its statistics: totals");
        a.field(2, "setting", &core::DurableHost::setting, "what was set of it: setting");
    }
};
template <> struct Fields<HostsTable> {
    static void list(auto &a) { a.field(1, "hosts", &HostsTable::hosts, "name of a host: host"); }
};

template <> struct Fields<core::JoinCode> {
    static void list(auto &a) {
        using C = core::JoinCode;
        a.field(1, "host", &C::host, "that may use it; none: any");
        a.field(2, "by", &C::by, "who made it");
        a.field(3, "expires_s", &C::expires_s, "wall clock of its end");
        a.field(4, "used", &C::used, "a host has joined with it");
        a.field(5, "key", &C::key, "SHA-256 of the only key that may use it");
        a.field(6, "role", &C::role, "0 grain server, 1 control programs, 2 backup");
    }
};
template <> struct Fields<core::Member> {
    static void list(auto &a) {
        a.field(1, "joined_s", &core::Member::joined_s, "wall clock since when");
        a.field(2, "expires_s", &core::Member::expires_s, "wall clock of the end of its certificate");
    }
};
template <> struct Fields<core::Trust> {
    static void list(auto &a) {
        using T = core::Trust;
        a.field(1, "codes", &T::codes, "SHA-256 of a code, or of the key of a host that was approved: code");
        a.field(2, "keys", &T::keys, "host: SHA-256 of its grain server's key");
        a.field(3, "clients", &T::clients, "host of control programs: SHA-256 of its key");
        a.field(4, "backups", &T::backups, "host of a backup: SHA-256 of its key");
        a.field(5, "members", &T::members, "SHA-256 of such a key: member", "0.2");
        a.field(6, "removed", &T::removed,
                "SHA-256 of a key that is refused: wall clock of the end of its certificates; 0: not known", "0.2");
    }
};

template <> struct Fields<core::HandedOver> {
    static void list(auto &a) {
        a.field(1, "store", &core::HandedOver::store, "name of the backup's store");
        a.field(2, "number", &core::HandedOver::number, "last report that was taken in");
    }
};
template <> struct Fields<HandedOverTable> {
    static void list(auto &a) { a.field(1, "hosts", &HandedOverTable::hosts, "name of a host: handed over"); }
};

}  // namespace dcs::record
