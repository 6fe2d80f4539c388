#pragma once
// The backup's running copy of the scheduler's store (docs/BACKUP.md): the backup opens a connection for it to the
// scheduler, separate from the one for reports. Kinds of messages from 75 on.
#include <cstdint>
#include <string>

#include "wire/backup_calls.h"

namespace dcs::wire {

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
};

// From commands, to the scheduler by its socket for grain servers, and to the backup by its own. detach: the scheduler
// commits without the copy until the copy is current again.
struct AskMirror {
    std::uint16_t protocol = opening_form;
    bool detach = false;
};  // -> MirrorStatus
struct MirrorStatus {
    std::string mode, state;                      // off, lagging, sync; none, copying, behind, current, away
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
template <class A> void serialize(A &a, MirrorHas &x, unsigned) { a & DCS_FIELD(number) & DCS_FIELD(whole) & DCS_FIELD(turn); }
template <class A> void serialize(A &a, AskMirror &x, unsigned) { a & DCS_FIELD(protocol) & DCS_FIELD(detach); }
template <class A> void serialize(A &a, MirrorStatus &x, unsigned) {
    a & at_most(limits::name_bytes, DCS_FIELD(mode)) & at_most(limits::name_bytes, DCS_FIELD(state)) & DCS_FIELD(name)
      & DCS_FIELD(epoch) & DCS_FIELD(turn) & DCS_FIELD(copied)
      & DCS_FIELD(lag_turns) & DCS_FIELD(lag_bytes) & DCS_FIELD(lag_s) & DCS_FIELD(attached) & DCS_FIELD(detached)
      & DCS_FIELD(waiting_s) & DCS_FIELD(text);
}
// clang-format on

}  // namespace dcs::wire
