#include "export_reader.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/files.h"
#include "base/text.h"
#include "wire/event_log.h"
#include "wire/message.h"
#include "wire/checks.h"
#include "wire/session_text.h"

namespace dcs::commands {
namespace {

constexpr std::size_t session_bytes = 64 * 1024;
// A line holds strings as they are, escaped at worst six bytes to one.
constexpr std::size_t line_bytes = 6 * (limits::argv_env_bytes + (1u << 20));
constexpr std::size_t block_bytes = 1u << 20;

struct OpenFile {
    Fd fd;
    std::uint64_t length = 0;
};

Status invalid(const std::string &text) { return fail(Code::invalid, text); }

// A plain file of that name in the directory; not a link, a pipe or a device.
Result<OpenFile> open_plain(int directory, const std::string &name, const std::string &shown) {
    OpenFile file{.fd = Fd(::openat(directory, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC))};
    if (!file.fd && errno == ELOOP) return invalid(shown + " is a symbolic link: replace it by the file itself");
    if (!file.fd) return fail_errno(errno == ENOENT ? Code::not_found : Code::io_error, shown, errno);
    struct stat facts = {};
    if (::fstat(file.fd.get(), &facts) != 0) return fail_errno(Code::io_error, shown, errno);
    if (!S_ISREG(facts.st_mode)) return invalid(shown + " is not an ordinary file");
    file.length = static_cast<std::uint64_t>(facts.st_size);
    return file;
}

Result<std::string> read_part(const OpenFile &file, std::uint64_t offset, std::uint64_t length,
                              const std::string &shown) {
    std::string bytes(length, '\0');
    if (!pread_all(file.fd.get(), bytes, static_cast<std::int64_t>(offset)))
        return fail_errno(Code::io_error, shown, errno);
    return bytes.size() < length ? invalid(shown + " became shorter while it was read") : Result<std::string>(bytes);
}

// "17.out" of "files/17.out"; empty if it is no plain name below files/.
std::string plain_name(const std::string &path) {
    const std::string front = "files/";
    if (path.rfind(front, 0) != 0) return {};
    const std::string name = path.substr(front.size());
    const bool plain = !name.empty() && name.size() <= 255 && name[0] != '.' &&
                       std::all_of(name.begin(), name.end(), is_name_character);
    return plain ? name : std::string();
}

// The lines of a file, one after the other.
class Lines {
public:
    explicit Lines(OpenFile file) : file_(std::move(file)) {}
    // False at the end. The last line may lack its newline.
    Result<bool> next(std::string &line) {
        line.clear();
        for (;;) {
            const std::size_t end = buffer_.find('\n', at_);
            line.append(buffer_, at_, end == std::string::npos ? end : end - at_);
            if (line.size() > line_bytes)
                return invalid("the line is longer than " + std::to_string(line_bytes) + " bytes");
            if (end != std::string::npos) {
                at_ = end + 1;
                return true;
            }
            if (read_ >= file_.length) {
                at_ = buffer_.size();
                return !line.empty();
            }
            auto block =
                read_part(file_, read_, std::min<std::uint64_t>(block_bytes, file_.length - read_), "the file");
            if (!block) return block.status();
            buffer_ = std::move(*block);
            read_ += buffer_.size();
            at_ = 0;
        }
    }

private:
    OpenFile file_;
    std::string buffer_;
    std::size_t at_ = 0;
    std::uint64_t read_ = 0;
};

class Reader {
public:
    explicit Reader(std::uint64_t most) : most_(most) {}
    Result<PackedSession> read(const std::string &directory);

private:
    Status open(const std::string &directory);
    Status read_head();
    Status read_log();
    Status read_grains();
    Status add(wire::GrainLine line);
    Status load(const char *key, const wire::StreamPlace &place, wire::ExportedStream &into);
    Result<const OpenFile *> file_of(const std::string &name, const std::string &path);
    Status emit(const std::string &record);
    std::string why_wrong(const wire::Wrong &wrong) const;
    Status located(const wire::Wrong &wrong) const;
    int line_of(std::int32_t grain) const;

    const std::uint64_t most_;  // bytes of the packed session
    std::uint64_t loaded_ = 0;  // of the grain that is being read, not yet packed
    Fd directory_, files_;
    OpenFile last_file_;  // files/packed is asked for repeatedly
    std::string last_name_;
    wire::SessionCheck check_;
    std::vector<std::pair<std::int32_t, int>> lines_;  // of the grains so far, ascending
    PackedSession out_;
};

Status Reader::open(const std::string &directory) {
    directory_ = Fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!directory_)
        return fail_errno(errno == ENOENT ? Code::not_found : Code::io_error, "it cannot be opened", errno);
    files_ = Fd(::openat(directory_.get(), "files", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!files_ && errno != ENOENT) return invalid("files is not a directory of this export (a symbolic link?)");
    std::FILE *file = std::tmpfile();
    if (file == nullptr) return fail_errno(Code::io_error, "no temporary file to pack the session into", errno);
    out_.stream = client::File(file);
    return Status::ok();
}

Status Reader::emit(const std::string &record) {
    ByteWriter w;
    w.text(record);
    const std::string &bytes = w.bytes();
    out_.length += bytes.size();
    if (out_.length > most_)
        return fail(Code::limit,
                    "the session packs to more than " + std::to_string(most_) + " bytes, the limit of an import");
    out_.crc = crc32c(bytes, out_.crc);
    if (std::fwrite(bytes.data(), 1, bytes.size(), out_.stream.get()) == bytes.size()) return Status::ok();
    return fail_errno(Code::io_error, "cannot pack the session into a temporary file", errno);
}

Status Reader::read_head() {
    auto file = open_plain(directory_.get(), "session", "session");
    if (!file) return file.status();
    if (file->length > session_bytes) return invalid("session is longer than any that `dcs session export` writes");
    auto text = read_part(*file, 0, file->length, "session");
    if (!text) return text.status();
    auto head = wire::session_of_text(*text);
    if (!head) return fail(head.status().code, "session:" + head.status().text);
    out_.head = std::move(*head);
    if (Status s = read_log(); !s) return s;
    return emit(wire::pack(out_.head));
}

// A line for each event; exports of before there was one do without. Those of one moment go into one frame.
Status Reader::read_log() {
    auto file = open_plain(directory_.get(), "log", "log");
    if (!file) return file.status().code == Code::not_found ? Status::ok() : file.status();
    Lines lines(std::move(*file));
    wire::EventFrame frame;
    std::int64_t at_ms = 0;
    std::string text;
    for (int number = 1;; ++number) {
        const auto at = [&](const Status &s) { return fail(s.code, "log:" + std::to_string(number) + ": " + s.text); };
        const auto more = lines.next(text);
        if (!more) return at(more.status());
        if (!*more) break;
        auto event = wire::event_of_line(text);
        if (!event) return at(event.status());
        if (event->at_ms != at_ms && !frame.empty()) {
            out_.head.log += frame.framed(at_ms);
            frame = wire::EventFrame();
        }
        at_ms = event->at_ms;
        frame.add(*event);
    }
    if (!frame.empty()) out_.head.log += frame.framed(at_ms);
    if (out_.head.log.size() > limits::import_log_bytes)
        return fail(Code::limit, "log: it packs to " + std::to_string(out_.head.log.size()) +
                                     " bytes, but an import accepts at most " +
                                     std::to_string(limits::import_log_bytes) +
                                     ": move it out of the directory, and import the session without it");
    return Status::ok();
}

Result<const OpenFile *> Reader::file_of(const std::string &name, const std::string &path) {
    if (name != last_name_) {
        auto file = open_plain(files_.get(), name, path);
        if (!file) return file.status();
        last_file_ = std::move(*file);
        last_name_ = name;
    }
    return &last_file_;
}

Status Reader::load(const char *key, const wire::StreamPlace &place, wire::ExportedStream &into) {
    const std::string about = "\"" + std::string(key) + "\": ";
    into.whole = true;
    into.content = place.text;
    if (place.in_file) {
        const std::string name = plain_name(place.file);
        if (name.empty()) return invalid(about + "\"" + place.file + "\" is not a plain name below files/");
        auto file = file_of(name, place.file);
        if (!file) return fail(file.status().code, about + file.status().text);
        const std::uint64_t offset = place.offset.value_or(0), has = (*file)->length;
        const std::uint64_t length = place.length.value_or(has);
        if (place.offset ? length > has || offset > has - length : length != has)
            return invalid(about + place.file + " has " + std::to_string(has) + " bytes, " + std::to_string(length) +
                           (place.offset ? " at offset " + std::to_string(offset) : "") +
                           " are recorded; if you changed it, correct or remove \"length\" and remove \"crc32c\"");
        if (length > most_ - std::min(out_.length + loaded_, most_))
            return fail(Code::limit, about + place.file + " makes the session longer than the " +
                                         std::to_string(most_) + " bytes that an import accepts");
        auto bytes = read_part(**file, offset, length, place.file);
        if (!bytes) return fail(bytes.status().code, about + bytes.status().text);
        if (place.crc && crc32c(*bytes) != *place.crc)
            return invalid(about + place.file +
                           " does not have the recorded checksum; if you changed it, remove \"crc32c\"");
        into.content = std::move(*bytes);
    }
    into.length = into.content.size();
    loaded_ += into.length;
    return Status::ok();
}

int Reader::line_of(std::int32_t grain) const {
    const auto found = std::lower_bound(lines_.begin(), lines_.end(), std::pair{grain, 0});
    return found != lines_.end() && found->first == grain ? found->second : 0;
}

std::string Reader::why_wrong(const wire::Wrong &wrong) const {
    const int line = wrong.other < 0 ? 0 : line_of(wrong.other);
    return wrong.why + (line > 0 ? " (line " + std::to_string(line) + ")" : "");
}

Status Reader::located(const wire::Wrong &wrong) const {
    if (wrong.grain < 0) return invalid("session: " + why_wrong(wrong));
    return invalid("grains:" + std::to_string(line_of(wrong.grain)) + ": " + why_wrong(wrong));
}

Status Reader::add(wire::GrainLine line) {
    wire::ExportedGrain &g = line.grain;
    loaded_ = 0;
    if (Status s = load("input", line.input, g.input); !s) return s;
    if (Status s = load("checkpoint", line.checkpoint, g.checkpoint); !s) return s;
    if (Status s = load("message", line.message, g.message); !s) return s;
    if (Status s = load("out", line.out, g.out); !s) return s;
    if (Status s = load("err", line.err, g.err); !s) return s;
    if (const auto wrong = check_.add(g)) { return invalid(why_wrong(*wrong)); }
    const bool over = g.state == "finished" || g.state == "killed";
    for (const wire::GrainFile &file : g.spec.files)
        if (!file.digest.empty() && (!over || file.role == wire::FileRole::output))
            out_.contents.emplace(file.digest, file);
    return emit(wire::pack(g));
}

Status Reader::read_grains() {
    auto file = open_plain(directory_.get(), "grains", "grains");
    if (!file) return file.status();
    Lines lines(std::move(*file));
    std::string text;
    for (int number = 1;; ++number) {
        const auto at = [&](const Status &s) {
            return fail(s.code, "grains:" + std::to_string(number) + ": " + s.text);
        };
        const auto more = lines.next(text);
        if (!more) return at(more.status());
        if (!*more) break;
        auto line = wire::grain_of_line(text);
        if (!line) return at(line.status());
        const std::int32_t grain = line->grain.grain;
        if (Status s = add(std::move(*line)); !s) return at(s);
        lines_.emplace_back(grain, number);
    }
    const auto wrong = check_.finish(out_.head);
    return wrong ? located(*wrong) : Status::ok();
}

Result<PackedSession> Reader::read(const std::string &directory) {
    if (Status s = open(directory); !s) return s;
    if (Status s = read_head(); !s) return s;
    if (Status s = read_grains(); !s) return s;
    if (std::fflush(out_.stream.get()) != 0 || std::fseek(out_.stream.get(), 0, SEEK_SET) != 0)
        return fail_errno(Code::io_error, "cannot pack the session into a temporary file", errno);
    return std::move(out_);
}

}  // namespace

Result<PackedSession> read_export(const std::string &directory, std::uint64_t most) {
    return Reader(most).read(directory);
}

Result<client::File> open_exported(const std::string &directory, const std::string &name) {
    const Fd files(::open((directory + "/files").c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!files) return fail_errno(Code::not_found, name, errno);
    auto file = open_plain(files.get(), name, "files/" + name);
    if (!file) return file.status();
    std::FILE *stream = ::fdopen(file->fd.get(), "r");
    if (stream == nullptr) return fail_errno(Code::io_error, name, errno);
    (void)file->fd.release();
    return client::File(stream);
}

}  // namespace dcs::commands
