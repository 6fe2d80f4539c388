#pragma once
// Whole sessions between a pool and its users: out page by page (`dcs session export`), in as one
// packed stream (`dcs session import`), and what `dcs doctor` asks.
//
// An import is uploaded in pieces over one connection and belongs to it; ImportSession makes a
// session of it, whole or not at all. The stream is records, each a 32-bit length and that many
// bytes: first an ExportedSession, then its ExportedGrains in ascending order, with every stream
// whole.
#include <cstdint>
#include <string>
#include <vector>

#include "wire/user_calls.h"

namespace dcs::wire {

struct ExportedStream {
    std::uint64_t length = 0;
    bool whole = false;  // `content` is complete; otherwise it is fetched separately
    std::string content;
};
struct ExportedGrain {
    std::int32_t grain = 0;
    GrainSpec spec;     // its `input` stays empty: see below
    std::string state;  // ready running finished killed
    std::string host;   // on which it ran last; empty: none
    std::vector<std::string> nogo;
    std::uint32_t incarnation = 0, sequence = 0;
    std::int32_t failures = 0, exit_code = 0, signal = 0;
    std::int32_t result_index = -1;    // finished only
    bool queued = false;               // ready only: its place in the queue is known
    std::int64_t queue = 0;            // smaller first
    std::uint64_t input_position = 0;  // first byte of the input that the checkpoint leaves unread
    Usage usage;                       // of all incarnations
    ExportedStream input, out, err, checkpoint, message;
};
struct ExportedSession {
    std::string user;
    std::int32_t session = 0;
    std::string ident, state;  // state: active terminated
    std::int32_t results = 0;  // indices given out, holes of killed grains included
    std::int32_t acknowledged = 0, handed_out = 0;
    std::uint64_t grains = 0;
    std::string log;  // of an import: its event log (event_log.h), or nothing
};

// Grains after `after` in ascending order, as many as fit into an answer.
struct ExportPage {  // -> ExportReply
    std::string user;
    std::int32_t session = 0;
    std::int32_t after = -1;
    std::int32_t most = 0;  // grains; 0: as many as an answer holds
};
struct ExportReply {
    ExportedSession head;
    std::vector<ExportedGrain> grains;
    bool more = false;  // ask again with `after` = the last grain's number
};

// offset 0 starts an upload and drops this user's previous one; otherwise it is the end of the last
// piece on the same connection.
struct ImportPiece {
    std::uint64_t offset = 0, total = 0;
    std::string bytes;
};  // -> Done
// A terminated session of the caller. replace: in the place of a terminated or damaged one.
struct ImportSession {  // -> Done
    std::int32_t number = 0;
    bool replace = false;
    std::uint64_t total = 0;
    std::uint32_t crc = 0;  // CRC-32C of the stream
};

struct Doctor {};  // -> DoctorReply
struct ProblemRow {
    std::string entity, file;  // "session ann/3"; below the state directory, may be empty
    std::string problem, affects, advice;
};
struct DoctorReply {
    std::vector<ProblemRow> problems;
};

// clang-format off
template <class A> void serialize(A &a, ExportedStream &x, unsigned) { a & DCS_FIELD(length) & DCS_FIELD(whole) & DCS_FIELD(content); }
template <class A> void serialize(A &a, ExportedGrain &x, unsigned) {
    a & DCS_FIELD(grain) & DCS_FIELD(spec) & at_most(limits::name_bytes, DCS_FIELD(state))
      & at_most(limits::name_bytes, DCS_FIELD(host)) & at_most(limits::nogo_items, DCS_FIELD(nogo))
      & DCS_FIELD(incarnation)
      & DCS_FIELD(sequence) & DCS_FIELD(failures) & DCS_FIELD(exit_code) & DCS_FIELD(signal) & DCS_FIELD(result_index)
      & DCS_FIELD(queued) & DCS_FIELD(queue) & DCS_FIELD(input_position) & DCS_FIELD(usage) & DCS_FIELD(input)
      & DCS_FIELD(out) & DCS_FIELD(err) & DCS_FIELD(checkpoint) & DCS_FIELD(message);
}
template <class A> void serialize(A &a, ExportedSession &x, unsigned) {
    a & at_most(limits::name_bytes, DCS_FIELD(user)) & DCS_FIELD(session)
      & at_most(limits::name_bytes, DCS_FIELD(ident)) & at_most(limits::name_bytes, DCS_FIELD(state))
      & DCS_FIELD(results)
      & DCS_FIELD(acknowledged) & DCS_FIELD(handed_out) & DCS_FIELD(grains) & DCS_FIELD(log);
}
template <class A> void serialize(A &a, ExportPage &x, unsigned) {
    a & at_most(limits::name_bytes, DCS_FIELD(user)) & DCS_FIELD(session) & DCS_FIELD(after) & DCS_FIELD(most);
}
template <class A> void serialize(A &a, ExportReply &x, unsigned) { a & DCS_FIELD(head) & DCS_FIELD(grains) & DCS_FIELD(more); }
template <class A> void serialize(A &a, ImportPiece &x, unsigned) {
    a & DCS_FIELD(offset) & DCS_FIELD(total) & at_most(limits::fetch_chunk_bytes, DCS_FIELD(bytes));
}
template <class A> void serialize(A &a, ImportSession &x, unsigned) {
    a & DCS_FIELD(number) & DCS_FIELD(replace) & DCS_FIELD(total) & DCS_FIELD(crc);
}
template <class A> void serialize(A &, Doctor &, unsigned) {}
template <class A> void serialize(A &a, ProblemRow &x, unsigned) {
    a & DCS_FIELD(entity) & at_most(limits::path_bytes, DCS_FIELD(file)) & DCS_FIELD(problem) & DCS_FIELD(affects)
      & DCS_FIELD(advice);
}
template <class A> void serialize(A &a, DoctorReply &x, unsigned) { a & DCS_FIELD(problems); }
// clang-format on

}  // namespace dcs::wire
