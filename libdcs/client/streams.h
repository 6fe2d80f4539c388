#pragma once
// Whole streams of a grain, fetched piece by piece into an unnamed temporary file.
#include <cstdio>
#include <memory>
#include <string>

#include "base/status.h"
#include "client/call.h"

namespace dcs::client {

struct CloseFile {
    void operator()(std::FILE *f) const { std::fclose(f); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

// Unnamed, open for writing and reading.
Result<File> temporary_file();

// `known` is the stream's beginning, already here. Fetches up to `length`, or to the end that the
// scheduler tells if length is UINT64_MAX. The file is positioned at its beginning.
Result<File> fetch_stream(Pool &pool, const std::string &user, int session, int grain, wire::Stream stream,
                          const std::string &known, std::uint64_t length, With with, const std::string &file = {});

// A file that the grain made, to the end of `to`.
Status fetch_file(Pool &pool, int session, int grain, const std::string &name, std::FILE *to);

}  // namespace dcs::client
