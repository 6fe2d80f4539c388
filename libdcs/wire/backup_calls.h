#pragma once
// Messages between the passive backup, grain servers, the scheduler and commands (docs/BACKUP.md). Kinds from
// 64 on. The backup numbers the reports that it takes: 1, 2, 3 ... for each host. A number is valid only together
// with `store`, the name that the backup's store got when it was created: an emptied store gets another one.
#include <cstdint>
#include <string>
#include <vector>

#include "wire/server_calls.h"

namespace dcs::wire {

// server -> scheduler, before its FirstCall: the backup has acknowledged this server's reports up to this number. The
// server has forgotten them, so the scheduler must not act on its FirstCall before the backup has handed them over.
struct HeldByBackup {
    std::uint64_t store = 0, number = 0;
};

// backup -> server: answer to its FirstCall, in which `held` is empty. number: the last that it took from this host.
struct BackupReady {
    std::uint64_t store = 0, number = 0;
};
// Answer to a GrainReport, after the commit. number: the last that it took from this host.
struct BackupHas {
    std::uint64_t store = 0, number = 0;
    ReportAck ack;
};

// backup -> scheduler: first message on the connection that it keeps.
struct BackupCall {
    std::uint16_t protocol = opening_form;
    std::uint64_t store = 0;
};
// scheduler -> backup: answer to it.
struct BackupKnown {
    std::uint64_t epoch = 0;
};
// One report, unchanged. Reports of a host are sent in the order of their numbers; all unanswered ones are sent again
// on the next connection.
struct HandOver {
    std::string host;
    std::uint64_t number = 0;
    GrainReport report;
};
// Committed up to this number of this host: the backup may forget them.
struct HandOverTaken {
    std::string host;
    std::uint64_t number = 0;
};

inline constexpr std::size_t place_bytes = 255;  // of an address of the backup
// scheduler -> server of another host, after Configure and whenever it changes: where the passive backup is, and the name
// and the key's hash of its certificate. No address: there is none.
struct BackupPlace {
    std::string name, address, key;
    bool operator==(const BackupPlace &) const = default;
};
// scheduler -> backup of another host, before BackupKnown and on each change: the keys of all valid certificates.
struct MemberKey {
    std::string host, key;
};
struct MemberKeys {
    std::vector<MemberKey> members;
};

// To the backup, on its own socket.
struct AskBackup {
    std::uint16_t protocol = opening_form;
};  // -> BackupStatus
struct BackupStatus {
    std::uint64_t store = 0;
    std::int32_t hosts = 0;                                 // of which it holds reports
    std::uint64_t reports = 0, bytes = 0, most_bytes = 0;   // held; bytes: on its disk
    std::uint64_t taken = 0, handed_over = 0, refused = 0;  // since it was started
    std::int32_t servers = 0;                               // connected now
    bool scheduler = false;                                 // likewise
    double up_s = 0;
};

// The backup's running copy of the scheduler's store (docs/BACKUP.md): the backup opens a connection for it to the
// scheduler, separate from the one for reports. Kinds of messages from 75 on.

// backup -> scheduler, first message on that connection: the store of its copy (name and epoch) and the copy's last
// turn. No name: it requests a whole copy. seen: a copy of store `seen_name` has been promoted to this epoch.
struct MirrorCall {
    std::uint16_t protocol = opening_form;
    std::uint64_t name = 0, epoch = 0, turn = 0, seen_name = 0, seen = 0;
};
// backup -> scheduler, after it: the digests of the contents beside the copy, in pieces; the last piece says so.
struct MirrorContents {
    std::string bytes;
    bool last = false;
};

enum class MirrorStep : std::uint8_t {
    begin,    // start a new, empty copy of store `name` in epoch `epoch`; keep the previous one until it is whole
    file,     // in the new copy: truncate the file `path` to `offset`, append `bytes`
    removed,  // in the new copy: remove `path` and everything below it
    whole,    // the new copy equals the store after `turn`
    turn,     // the root of `turn`: `bytes` at `offset`, `size` in total
    content,  // a content of the library, `key` its SHA-256: likewise
    forget    // remove that content
};
constexpr MirrorStep last_of(MirrorStep) { return MirrorStep::forget; }
// scheduler -> backup: the next operation on the copy, numbered 1, 2, 3 ... on each connection.
struct MirrorPage {
    std::uint64_t number = 0;
    MirrorStep step = MirrorStep::begin;
    std::uint64_t name = 0, epoch = 0, turn = 0;
    std::string path, key;
    std::uint64_t offset = 0, size = 0;
    std::string bytes;
};
// backup -> scheduler: all pages up to `number` are applied, and the whole copy (if any) is durable up to `turn`.
struct MirrorHas {
    std::uint64_t number = 0;
    bool whole = false;
    std::uint64_t turn = 0;
    std::uint64_t free_bytes = 0;  // on the disk of the copy; 0: it does not say
};

// From commands, to the scheduler by its socket for grain servers, and to the backup by its own. detach: the scheduler
// commits without the copy until the copy is current again.
struct AskMirror {
    std::uint16_t protocol = opening_form;
    bool detach = false;
};  // -> MirrorStatus
struct MirrorStatus {
    std::string mode, state;                      // off, lagging, sync; none, copying, behind, current, away, ahead
    std::uint64_t name = 0, epoch = 0, turn = 0;  // of the store that answers; the backup: of its copy
    std::uint64_t copied = 0;                     // last turn that is durable in the copy
    std::uint64_t lag_turns = 0, lag_bytes = 0;
    double lag_s = 0;       // age of the oldest turn that is not in the copy
    bool attached = false;  // commits wait for the copy
    bool detached = false;  // an operator let commits proceed without it
    double waiting_s = 0;   // time that the current commit has waited for it
    std::string text;       // why there is no current copy
};

// clang-format off
template <class A> void serialize(A &a, HeldByBackup &x, unsigned) { a & DCS_FIELD(store) & DCS_FIELD(number); }
template <class A> void serialize(A &a, BackupReady &x, unsigned) { a & DCS_FIELD(store) & DCS_FIELD(number); }
template <class A> void serialize(A &a, BackupHas &x, unsigned) { a & DCS_FIELD(store) & DCS_FIELD(number) & DCS_FIELD(ack); }
template <class A> void serialize(A &a, BackupCall &x, unsigned) { a & DCS_FIELD(protocol) & DCS_FIELD(store); }
template <class A> void serialize(A &a, BackupKnown &x, unsigned) { a & DCS_FIELD(epoch); }
template <class A> void serialize(A &a, HandOver &x, unsigned) {
    a & at_most(limits::name_bytes, DCS_FIELD(host)) & DCS_FIELD(number) & DCS_FIELD(report);
}
template <class A> void serialize(A &a, HandOverTaken &x, unsigned) {
    a & at_most(limits::name_bytes, DCS_FIELD(host)) & DCS_FIELD(number);
}
template <class A> void serialize(A &a, BackupPlace &x, unsigned) {
    a & at_most(limits::path_bytes, DCS_FIELD(name)) & at_most(limits::path_bytes, DCS_FIELD(address))
      & at_most(limits::digest_bytes, DCS_FIELD(key));
}
template <class A> void serialize(A &a, MemberKey &x, unsigned) {
    a & at_most(limits::name_bytes, DCS_FIELD(host)) & at_most(limits::digest_bytes, DCS_FIELD(key));
}
template <class A> void serialize(A &a, MemberKeys &x, unsigned) {
    a & at_most(limits::connections, DCS_FIELD(members));
}
template <class A> void serialize(A &a, AskBackup &x, unsigned) { a & DCS_FIELD(protocol); }
template <class A> void serialize(A &a, BackupStatus &x, unsigned) {
    a & DCS_FIELD(store) & DCS_FIELD(hosts) & DCS_FIELD(reports) & DCS_FIELD(bytes) & DCS_FIELD(most_bytes) & DCS_FIELD(taken)
      & DCS_FIELD(handed_over) & DCS_FIELD(refused) & DCS_FIELD(servers) & DCS_FIELD(scheduler) & DCS_FIELD(up_s);
}
template <class A> void serialize(A &a, MirrorCall &x, unsigned) {
    a & DCS_FIELD(protocol) & DCS_FIELD(name) & DCS_FIELD(epoch) & DCS_FIELD(turn) & DCS_FIELD(seen_name) & DCS_FIELD(seen);
}
template <class A> void serialize(A &a, MirrorContents &x, unsigned) {
    a & at_most(limits::fetch_chunk_bytes, DCS_FIELD(bytes)) & DCS_FIELD(last);
}
template <class A> void serialize(A &a, MirrorPage &x, unsigned) {
    a & DCS_FIELD(number) & DCS_FIELD(step) & DCS_FIELD(name) & DCS_FIELD(epoch) & DCS_FIELD(turn)
      & at_most(limits::path_bytes, DCS_FIELD(path))
      & at_most(limits::digest_bytes, DCS_FIELD(key)) & DCS_FIELD(offset) & DCS_FIELD(size)
      & at_most(limits::fetch_chunk_bytes, DCS_FIELD(bytes));
}
template <class A> void serialize(A &a, MirrorHas &x, unsigned) {
    a & DCS_FIELD(number) & DCS_FIELD(whole) & DCS_FIELD(turn) & shown_since<9>(DCS_FIELD(free_bytes));
}
template <class A> void serialize(A &a, AskMirror &x, unsigned) { a & DCS_FIELD(protocol) & DCS_FIELD(detach); }
template <class A> void serialize(A &a, MirrorStatus &x, unsigned) {
    a & at_most(limits::name_bytes, DCS_FIELD(mode)) & at_most(limits::name_bytes, DCS_FIELD(state)) & DCS_FIELD(name)
      & DCS_FIELD(epoch) & DCS_FIELD(turn) & DCS_FIELD(copied)
      & DCS_FIELD(lag_turns) & DCS_FIELD(lag_bytes) & DCS_FIELD(lag_s) & DCS_FIELD(attached) & DCS_FIELD(detached)
      & DCS_FIELD(waiting_s) & DCS_FIELD(text);
}
// clang-format on

}  // namespace dcs::wire
