#pragma once
// What a grain has besides its words: files that go with it and files that come back. Their bytes lie in
// the scheduler's library under their SHA-256; here are only their names.
#include <cstdint>
#include <string>
#include <vector>

#include "base/limits.h"
#include "wire/archive_rules.h"

namespace dcs::wire {

enum class FileRole : std::uint8_t {
    data,        // lies in the working directory before the grain starts
    executable,  // the same, and may be executed
    program,     // what argv[0] means, on hosts of one binary class
    input,       // its standard input; the submission has none in line then
    output,      // it makes this one, and it comes back with the result
    image        // the root file system of the container in which it runs
};
struct GrainFile {
    FileRole role = FileRole::data;
    std::string name;    // below the working directory, such as "a/b.txt"; program, input, image: empty
    std::string digest;  // SHA-256, 32 bytes; output: empty as long as it was not made
    std::uint64_t size = 0;
    std::string binary_class;  // program: hosts of this class run it; empty: all do. Others: empty
    bool operator==(const GrainFile &) const = default;
};
constexpr FileRole last_of(FileRole) { return FileRole::image; }
const char *name_of(FileRole role);                  // "program"
std::string digest_text(const std::string &digest);  // "sha256:2c26b4..."
std::string to_text(const GrainFile &file);          // "program sha256:2c26b4... (3 bytes) for x86_64-linux-gnu"

// The scheduler's library: contents named by their SHA-256, of programs, staged files, inputs and outputs.
// Control programs and grain servers send and fetch them in pieces; a piece is independent and may
// be repeated. A content is present when it is complete, its digest matches and it is durable.

// Of a control program, before a submission that names contents.
struct AskContents {
    std::vector<std::string> digests;
};  // -> MissingContents
struct MissingContents {
    std::vector<std::string> digests;
};  // of the requested ones

// One piece of a content. Pieces of one content come in order on one connection; offset 0 starts again.
struct PutContent {  // of a control program -> Done, of a grain server -> ContentTaken
    std::string digest;
    std::uint64_t total = 0, offset = 0;
    std::string bytes;
};
// To a grain server. code 0: bytes up to `next` have arrived.
struct ContentTaken {
    std::string digest;
    std::uint64_t next = 0;
    std::int32_t code = 0;
    std::string text;
};

// Of a grain server, for a grain that is leased to it; answered by ContentPiece.
struct WantContent {
    std::string digest;
    std::uint64_t offset = 0;
    std::uint32_t max = 0;
};
struct ContentPiece {
    std::string digest;
    std::uint64_t total = 0, offset = 0;
    std::string bytes;
    std::int32_t code = 0;  // not 0: the error; not_found: the scheduler does not have the content
    std::string text;
};

// clang-format off
template <class A> void serialize(A &a, GrainFile &x, unsigned) {
    a & DCS_FIELD(role) & at_most(limits::path_bytes, DCS_FIELD(name))
      & at_most(limits::digest_bytes, DCS_FIELD(digest)) & DCS_FIELD(size)
      & at_most(limits::name_bytes, DCS_FIELD(binary_class));
}
template <class A> void serialize(A &a, AskContents &x, unsigned) {
    a & at_most(limits::grain_files, DCS_FIELD(digests));
}
template <class A> void serialize(A &a, MissingContents &x, unsigned) {
    a & at_most(limits::grain_files, DCS_FIELD(digests));
}
template <class A> void serialize(A &a, PutContent &x, unsigned) {
    a & at_most(limits::digest_bytes, DCS_FIELD(digest)) & DCS_FIELD(total) & DCS_FIELD(offset)
      & at_most(limits::fetch_chunk_bytes, DCS_FIELD(bytes));
}
template <class A> void serialize(A &a, ContentTaken &x, unsigned) {
    a & at_most(limits::digest_bytes, DCS_FIELD(digest)) & DCS_FIELD(next) & DCS_FIELD(code) & DCS_FIELD(text);
}
template <class A> void serialize(A &a, WantContent &x, unsigned) {
    a & at_most(limits::digest_bytes, DCS_FIELD(digest)) & DCS_FIELD(offset) & DCS_FIELD(max);
}
template <class A> void serialize(A &a, ContentPiece &x, unsigned) {
    a & at_most(limits::digest_bytes, DCS_FIELD(digest)) & DCS_FIELD(total) & DCS_FIELD(offset)
      & at_most(limits::fetch_chunk_bytes, DCS_FIELD(bytes)) & DCS_FIELD(code) & DCS_FIELD(text);
}
// clang-format on

}  // namespace dcs::wire
