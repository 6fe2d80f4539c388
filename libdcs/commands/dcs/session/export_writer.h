#pragma once
// Writes an export: into a directory beside the wanted one, renamed when it is complete and
// synced, so that what has the wanted name is whole.
#include <cstdint>
#include <cstdio>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "base/status.h"
#include "client/streams.h"
#include "wire/event_log.h"
#include "wire/session_text.h"

namespace dcs::commands {

struct ExportStyle {
    bool files = false;  // every stream that is not empty in a file of its own
    bool pack = false;   // short streams that do not fit in their line go into one file together
};
// Sessions with more grains than this are packed.
inline constexpr std::uint64_t pack_above = 1000;

// Its name below files/.
std::string content_file(const std::string &digest);

class ExportWriter {
public:
    // Fails (refused) if `directory` is there and not empty.
    static Result<std::unique_ptr<ExportWriter>> create(const std::string &directory, ExportStyle style);
    ~ExportWriter();  // removes what did not become whole
    ExportWriter(const ExportWriter &) = delete;
    ExportWriter &operator=(const ExportWriter &) = delete;

    // Where a stream went. `name`: "17.out".
    Result<wire::StreamPlace> keep(const std::string &name, std::string_view bytes);
    Result<wire::StreamPlace> keep(const std::string &name, std::FILE *from);
    // A content of the library, into files/content-HEX; once.
    bool has_content(const std::string &digest) const { return contents_.count(digest) != 0; }
    Status keep_content(const std::string &digest, std::FILE *from);
    Status add(const wire::GrainLine &line);
    Status add_events(const std::vector<wire::Event> &events);  // all of them
    std::uint64_t lines() const { return lines_; }
    Status finish(const wire::ExportedSession &head);

private:
    ExportWriter(std::string directory, std::string temporary, ExportStyle style)
        : directory_(std::move(directory)), temporary_(std::move(temporary)), style_(style) {}
    Result<wire::StreamPlace> pack(std::string_view bytes);
    Result<client::File> new_file(const std::string &name);
    Status failed(const std::string &name) const;
    Status put(std::FILE *to, std::string_view bytes, const std::string &name);
    Status close(client::File &file, const std::string &name);

    const std::string directory_;
    std::string temporary_;  // removed unless it became whole
    const ExportStyle style_;
    bool has_files_ = false, whole_ = false;
    std::set<std::string> contents_;
    client::File grains_, packed_;
    std::uint64_t lines_ = 0, packed_length_ = 0;
};

}  // namespace dcs::commands
