#include "export_writer.h"

#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/text.h"

namespace dcs::commands {
namespace {

constexpr std::size_t line_stream_bytes = 4096;  // longer streams have a file
constexpr std::size_t packed_bytes = 64 * 1024;  // longer ones one of their own
constexpr std::size_t copy_bytes = 1u << 20;

Status sync_and_close(const std::string &path, bool whole_disk) {
    const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) return fail_errno(Code::io_error, path, errno);
    const bool synced = (whole_disk ? ::syncfs(fd.get()) : ::fsync(fd.get())) == 0;
    if (synced || errno == EINVAL) return Status::ok();  // EINVAL: a file system on which there is nothing to sync
    return fail_errno(Code::io_error, "cannot sync " + path, errno);
}

Status check_free(const std::string &directory) {
    std::error_code error;
    if (!std::filesystem::exists(std::filesystem::symlink_status(directory, error))) return Status::ok();
    if (std::filesystem::is_directory(std::filesystem::symlink_status(directory, error)) &&
        std::filesystem::is_empty(directory, error) && !error)
        return Status::ok();
    return fail(Code::refused, directory + " exists and is not an empty directory");
}

}  // namespace

std::string content_file(const std::string &digest) { return "content-" + hex_of(digest); }

Result<std::unique_ptr<ExportWriter>> ExportWriter::create(const std::string &directory, ExportStyle style) {
    std::string wanted = directory;
    while (wanted.size() > 1 && wanted.back() == '/') wanted.pop_back();
    if (Status s = check_free(wanted); !s) return s;
    const std::string temporary = wanted + ".tmp-" + std::to_string(::getpid());
    if (::mkdir(temporary.c_str(), 0700) != 0)
        return fail_errno(Code::io_error, "cannot make the directory " + temporary, errno);
    std::unique_ptr<ExportWriter> writer(new ExportWriter(wanted, temporary, style));
    auto grains = writer->new_file("grains");
    if (!grains) return grains.status();
    writer->grains_ = std::move(*grains);
    return writer;
}

ExportWriter::~ExportWriter() {
    std::error_code ignored;
    if (!whole_) std::filesystem::remove_all(temporary_, ignored);
}

Status ExportWriter::failed(const std::string &name) const {
    return fail_errno(errno == ENOSPC || errno == EDQUOT ? Code::no_space : Code::io_error,
                      "cannot write " + temporary_ + "/" + name, errno);
}

Result<client::File> ExportWriter::new_file(const std::string &name) {
    if (name.rfind("files/", 0) == 0 && !has_files_) {
        if (::mkdir((temporary_ + "/files").c_str(), 0700) != 0) return failed("files");
        has_files_ = true;
    }
    // A stream that is written again takes the place of what it was.
    const std::string path = temporary_ + "/" + name;
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) return failed(name);
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    std::FILE *file = fd < 0 ? nullptr : ::fdopen(fd, "w");
    if (file == nullptr) return failed(name);
    return client::File(file);
}

Status ExportWriter::put(std::FILE *to, std::string_view bytes, const std::string &name) {
    if (bytes.empty() || std::fwrite(bytes.data(), 1, bytes.size(), to) == bytes.size()) return Status::ok();
    return failed(name);
}

Status ExportWriter::close(client::File &file, const std::string &name) {
    return std::fclose(file.release()) == 0 ? Status::ok() : failed(name);
}

Result<wire::StreamPlace> ExportWriter::pack(std::string_view bytes) {
    const std::string name = "files/packed";
    if (!packed_) {
        auto file = new_file(name);
        if (!file) return file.status();
        packed_ = std::move(*file);
    }
    if (Status s = put(packed_.get(), bytes, name); !s) return s;
    const std::uint64_t offset = std::exchange(packed_length_, packed_length_ + bytes.size());
    return wire::StreamPlace{
        .in_file = true, .file = name, .offset = offset, .length = bytes.size(), .crc = crc32c(bytes)};
}

Result<wire::StreamPlace> ExportWriter::keep(const std::string &name, std::string_view bytes) {
    if (bytes.empty()) return wire::StreamPlace{};
    if (!style_.files && bytes.size() <= line_stream_bytes && wire::plain_text(bytes))
        return wire::StreamPlace{.text = std::string(bytes)};
    if (style_.pack && !style_.files && bytes.size() <= packed_bytes) return pack(bytes);
    const wire::StreamPlace place{
        .in_file = true, .file = "files/" + name, .length = bytes.size(), .crc = crc32c(bytes)};
    auto file = new_file(place.file);
    if (!file) return file.status();
    if (Status s = put(file->get(), bytes, place.file); !s) return s;
    if (Status s = close(*file, place.file); !s) return s;
    return place;
}

Result<wire::StreamPlace> ExportWriter::keep(const std::string &name, std::FILE *from) {
    wire::StreamPlace place{.in_file = true, .file = "files/" + name};
    auto file = new_file(place.file);
    if (!file) return file.status();
    std::uint64_t length = 0;
    std::uint32_t crc = 0;
    std::string buffer(copy_bytes, '\0');
    for (;;) {
        const std::size_t n = std::fread(buffer.data(), 1, buffer.size(), from);
        if (n == 0) break;
        const std::string_view bytes(buffer.data(), n);
        crc = crc32c(bytes, crc);
        length += n;
        if (Status s = put(file->get(), bytes, place.file); !s) return s;
    }
    if (std::ferror(from) != 0) return failed(place.file);
    if (Status s = close(*file, place.file); !s) return s;
    place.length = length;
    place.crc = crc;
    return place;
}

Status ExportWriter::keep_content(const std::string &digest, std::FILE *from) {
    auto kept = keep(content_file(digest), from);
    if (kept) contents_.insert(digest);
    return kept.status();
}

Status ExportWriter::add(const wire::GrainLine &line) {
    ++lines_;
    return put(grains_.get(), wire::to_line(line) + "\n", "grains");
}

Status ExportWriter::add_events(const std::vector<wire::Event> &events) {
    auto log = new_file("log");
    if (!log) return log.status();
    for (const wire::Event &event : events)
        if (Status s = put(log->get(), wire::to_line(event) + "\n", "log"); !s) return s;
    return close(*log, "log");
}

Status ExportWriter::finish(const wire::ExportedSession &head) {
    auto session = new_file("session");
    if (!session) return session.status();
    if (Status s = put(session->get(), wire::to_text(head), "session"); !s) return s;
    if (Status s = close(*session, "session"); !s) return s;
    if (Status s = close(grains_, "grains"); !s) return s;
    if (packed_)
        if (Status s = close(packed_, "files/packed"); !s) return s;
    if (Status s = sync_and_close(temporary_, true); !s) return s;
    if (Status s = check_free(directory_); !s) return s;
    if (::rename(temporary_.c_str(), directory_.c_str()) != 0)
        return fail_errno(Code::io_error, "cannot rename " + temporary_ + " to " + directory_, errno);
    const std::string parent = std::filesystem::path(directory_).parent_path().string();
    const Status named = sync_and_close(parent.empty() ? "." : parent, false);
    whole_ = !!named;
    if (!named) temporary_ = directory_;  // not exported is what we say, so nothing may be there
    return named;
}

}  // namespace dcs::commands
