#pragma once
// Reads an export back, all of it, before anything of it is sent anywhere. Files are only opened in
// the export's directory and its `files`, never through a symbolic link.
#include <cstdint>
#include <map>
#include <string>

#include "base/limits.h"
#include "base/status.h"
#include "client/streams.h"
#include "wire/session_calls.h"

namespace dcs::commands {

struct PackedSession {
    wire::ExportedSession head;
    client::File stream;  // as wire/session_calls.h has it, positioned at its beginning
    std::uint64_t length = 0;
    std::uint32_t crc = 0;
    std::map<std::string, wire::GrainFile> contents;  // by digest: what the library must have
};
// An error names file and line: "grains:17: ...". `most`: bytes of the packed stream.
Result<PackedSession> read_export(const std::string &directory, std::uint64_t most = limits::import_bytes);
// A file of its `files`; not_found if there is none.
Result<client::File> open_exported(const std::string &directory, const std::string &name);

}  // namespace dcs::commands
