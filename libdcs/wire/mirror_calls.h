#pragma once
// How the backup comes to hold a running copy of the scheduler's store (docs/BACKUP.md): over a connection of its own
// that the backup opens to the scheduler, beside the one for reports. Kinds of messages from 75 on.
#include <cstdint>
#include <string>

#include "wire/backup_calls.h"

namespace dcs::wire {

// backup -> scheduler, first message on that connection: what its copy is of (name and epoch of the store) and its last
// turn. No name: it has no whole copy, and wants one. seen: to this epoch a copy of store `seen_name` has been promoted.
struct MirrorCall {
    std::uint16_t protocol = opening_form;
    std::uint64_t name = 0, epoch = 0, turn = 0, seen_name = 0, seen = 0;
};
// backup -> scheduler, after it: the contents that lie beside the copy, 32 bytes each, in pieces; the last says so.
struct MirrorContents { std::string bytes; bool last = false; };

enum class MirrorStep : std::uint8_t {
    begin,    // a new copy, of store `name` in epoch `epoch`, begins with nothing; the one of before stays until it is whole
    file,     // of the copy that is being made: cut the file `path` to `offset`, append `bytes`
    removed,  // of it: what lies at and below `path` goes
    whole,    // it is what the store is after `turn`
    turn,     // the root of `turn`: `bytes` at `offset`, `size` in all
    content,  // a content of the library, `key` its SHA-256: the same
    forget    // that content goes
};
constexpr MirrorStep last_of(MirrorStep) { return MirrorStep::forget; }
// scheduler -> backup: what to do to the copy, numbered 1, 2, 3 ... on each connection, in that order.
struct MirrorPage {
    std::uint64_t number = 0;
    MirrorStep step = MirrorStep::begin;
    std::uint64_t name = 0, epoch = 0, turn = 0;
    std::string path, key;
    std::uint64_t offset = 0, size = 0;
    std::string bytes;
};
// backup -> scheduler: all pages up to `number` are done, and the whole copy (if there is one) is durable up to `turn`.
struct MirrorHas { std::uint64_t number = 0; bool whole = false; std::uint64_t turn = 0; };

// To the scheduler, by its socket for grain servers, and to the backup by its own: for people. detach: to the scheduler,
// let commits go on without the copy until it is there again.
struct AskMirror { std::uint16_t protocol = opening_form; bool detach = false; };  // -> MirrorStatus
struct MirrorStatus {
    std::string mode, state;       // off, lagging, sync; none, copying, behind, current, away
    std::uint64_t name = 0, epoch = 0, turn = 0;  // of the store that answers; the backup: of its copy
    std::uint64_t copied = 0;      // last turn that is durable in the copy
    std::uint64_t lag_turns = 0, lag_bytes = 0;
    double lag_s = 0;              // age of the oldest turn that is not in the copy
    bool attached = false;         // commits wait for the copy
    bool detached = false;         // an order let them go on without
    double waiting_s = 0;          // so long a commit has been waiting for it
    std::string text;              // why not, in words
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
