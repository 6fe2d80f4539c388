#pragma once
// What a grain has besides its words: files that go with it and files that come back. Their bytes lie in
// the scheduler's library under their SHA-256; here are only their names.
#include <cstdint>
#include <string>

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

// clang-format off
template <class A> void serialize(A &a, GrainFile &x, unsigned) {
    a & DCS_FIELD(role) & at_most(limits::path_bytes, DCS_FIELD(name))
      & at_most(limits::digest_bytes, DCS_FIELD(digest)) & DCS_FIELD(size)
      & at_most(limits::name_bytes, DCS_FIELD(binary_class));
}
// clang-format on

}  // namespace dcs::wire
