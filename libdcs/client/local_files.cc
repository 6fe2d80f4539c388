#include "client/local_files.h"

#include <cerrno>
#include <fcntl.h>
#include <mutex>
#include <sys/stat.h>
#include <tuple>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/limits.h"
#include "base/sized.h"
#include "client/ahead.h"
#include "client/input_pieces.h"
#include "pki/digest.h"
#include "wire/checks.h"
#include "base/resources.h"
#include "client/call.h"

namespace dcs::client {
namespace {

Status too_much(const std::string &what, std::size_t is, std::size_t most) {
    return fail(Code::limit, what + " is " + std::to_string(is) + ", the limit is " + std::to_string(most));
}

// gargv and genvv share one limit for their number and one for their bytes.
struct Totals {
    std::size_t items = 0, bytes = 0;
};

Status copy_strings(char *const *from, Totals &used, std::vector<std::string> &to) {
    for (; from && *from; ++from) {
        if (++used.items > limits::argv_items)
            return too_much("the number of strings in gargv and genvv together", used.items, limits::argv_items);
        to.emplace_back(*from);
        used.bytes += to.back().size() + 1;
        if (used.bytes > limits::argv_env_bytes)
            return too_much("the length of gargv and genvv together", used.bytes, limits::argv_env_bytes);
    }
    return Status::ok();
}

Status check_environment(const std::vector<std::string> &env) {
    for (const std::string &entry : env) {
        if (const auto at = entry.find('='); at == std::string::npos || at == 0)
            return fail(Code::invalid, "genvv has the entry \"" + entry.substr(0, 80) + "\": it must be NAME=value");
    }
    return Status::ok();
}

// A scheduler may say that it lacks contents so often: what was brought may be found damaged a moment later, or be
// another scheduler's.
constexpr int most_submissions = 4;
// An upload is bound to its connection; it is begun again after each one that breaks.
constexpr int most_uploads = 5;
constexpr std::size_t digests_remembered = 4096;

struct Digested {
    std::string digest;
    std::uint64_t size = 0;
};

Status unreadable(const std::string &path, int error) {
    return fail_errno(error == ENOENT ? Code::not_found : Code::invalid, "the file " + path + " cannot be read", error);
}

Status uncopied(const std::string &what) {
    return fail_errno(Code::io_error, "cannot copy " + what + " to a temporary file", errno);
}

Status too_large(const std::string &what) {
    return fail(Code::limit, what + " has more than " + std::to_string(limits::content_bytes) +
                                 " bytes, the limit for a file: put it on a file server");
}

Result<File> open_file(const std::string &path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return unreadable(path, errno);
    struct stat about = {};
    const bool regular = ::fstat(fd, &about) == 0 && S_ISREG(about.st_mode);
    std::FILE *file = regular ? ::fdopen(fd, "r") : nullptr;
    if (file) return File(file);
    ::close(fd);
    return fail(Code::invalid, path + " is not an ordinary file");
}

// The first one loads libcrypto, during which no child may be forked.
pki::Sha256 new_digest() {
    const std::lock_guard guard(process_mutex());
    return {};
}

// To its end.
Result<Digested> digest_of(std::FILE *from, const std::string &what) {
    pki::Sha256 sha = new_digest();
    Digested result;
    std::string buffer(limits::content_piece_bytes, '\0');
    while (const std::size_t n = std::fread(buffer.data(), 1, buffer.size(), from)) {
        sha.add(std::string_view(buffer).substr(0, n));
        result.size += n;
        if (result.size > limits::content_bytes) return too_large(what);
    }
    if (std::ferror(from) != 0) return fail_errno(Code::io_error, "cannot read " + what, errno);
    result.digest = sha.finish();
    return result;
}

using Identity = std::tuple<dev_t, ino_t, off_t, std::int64_t, std::int64_t>;
// Made at load (pool.cc), and never destroyed.
std::map<Identity, Digested> &known_digests = *new std::map<Identity, Digested>;

// Of files that were not touched since: a thousand grains with one program read it once.
Result<Digested> digest_of_file(const std::string &path) {
    auto file = open_file(path);
    if (!file) return file.status();
    struct stat about = {};
    if (::fstat(::fileno(file->get()), &about) != 0) return unreadable(path, errno);
    if (about.st_size > static_cast<off_t>(limits::content_bytes)) return too_large(path);
    const auto ns = [](const timespec &t) { return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec; };
    const Identity identity{about.st_dev, about.st_ino, about.st_size, ns(about.st_mtim), ns(about.st_ctim)};
    {
        const std::lock_guard guard(process_mutex());
        if (const auto found = known_digests.find(identity); found != known_digests.end()) return found->second;
    }
    auto digested = digest_of(file->get(), path);
    // Written to within the grain of the clock it would look the same.
    if (!digested || wall_clock_ms() - ns(about.st_ctim) / 1'000'000 < 2000) return digested;
    const std::lock_guard guard(process_mutex());
    if (known_digests.size() >= digests_remembered) known_digests.clear();
    known_digests[identity] = *digested;
    return digested;
}

// A content on its way, piece by piece.
class Upload {
public:
    Upload(const wire::GrainFile &content, std::FILE *from, const std::string &name)
        : from_(from), name_(name), piece_(wire::PutContent{content.digest, content.size, 0, {}}) {
        std::rewind(from);
    }
    Status first(Pool &pool, With with) {
        const auto read = read_next(piece_);
        return read ? ask<wire::Done>(pool, piece_, How{with}).status() : read.status();
    }
    bool has_more() const {
        const auto &piece = std::get<wire::PutContent>(piece_);
        return piece.offset + piece.bytes.size() < piece.total;
    }
    Status rest(Pool &pool, std::size_t unanswered) {
        const TakeReply take = [](const wire::AnyMessage &reply) {
            if (std::holds_alternative<wire::Done>(reply)) return Status::ok();
            return fail(Code::protocol, std::string("the scheduler answered PutContent with ") + kind_name(reply));
        };
        return call_ahead(
            pool, piece_, [this](wire::AnyMessage &piece) { return read_next(piece); }, take, unanswered);
    }
    bool is_shorter() const { return shorter_; }

private:
    // False: that was the last one.
    Result<bool> read_next(wire::AnyMessage &message) {
        auto &piece = std::get<wire::PutContent>(message);
        piece.offset += piece.bytes.size();
        piece.bytes.resize(std::min<std::uint64_t>(limits::content_piece_bytes, piece.total - piece.offset));
        shorter_ = std::fread(piece.bytes.data(), 1, piece.bytes.size(), from_) != piece.bytes.size();
        if (shorter_) return fail(Code::invalid, name_ + " became shorter while it was read");
        return !piece.bytes.empty();
    }

    std::FILE *const from_;
    const std::string &name_;
    wire::AnyMessage piece_;
    bool shorter_ = false;
};

}  // namespace

d_grain plain_grain() {
    d_grain grain{};
    wire::put_demands({}, grain);
    grain.input_fd = -1;
    return grain;
}

Result<d_grain> known_grain(const d_grain *grain) {
    if (!grain) return fail(Code::invalid, "the description of the grain is NULL");
    return known(grain, "grain", plain_grain());
}

Status fill_spec(const d_grain &g, wire::GrainSpec &spec) {
    if (!g.gargv || !g.gargv[0] || !*g.gargv[0])
        return fail(Code::invalid, "gargv[0] is missing: it is the path of the grain's executable");
    spec.demands = wire::demands_in(g);
    if (std::string wrong = wire::out_of_range(spec.demands); !wrong.empty())
        return fail(Code::invalid, std::move(wrong));
    Amounts resources = *amounts_of(spec.demands.resources);
    if (g.image && *g.image) resources.emplace(container_resource, 1);
    if (resources.size() > limits::grain_resources)
        return too_much("the number of resources, with that of the image,", resources.size(), limits::grain_resources);
    spec.demands.resources = resource_text(resources);  // one text for one meaning
    Totals used;
    if (Status s = copy_strings(g.gargv, used, spec.argv); !s) return s;
    if (Status s = copy_strings(g.genvv, used, spec.env); !s) return s;
    if (Status s = check_environment(spec.env); !s) return s;
    DCS_REQUIRE(!spec.argv.empty() && spec.argv.size() + spec.env.size() == used.items, "each string is counted once");
    if (g.input_length > limits::input_bytes)
        return too_much("the length of the input", g.input_length, limits::input_bytes);
    if (g.input_length > 0 && !g.input)
        return fail(Code::invalid, "input is NULL, but input_length is " + std::to_string(g.input_length));
    if (g.input_length > 0) spec.input.assign(static_cast<const char *>(g.input), g.input_length);
    spec.directory = text_or_empty(g.directory);
    if (spec.directory.size() > limits::path_bytes)
        return too_much("the length of directory", spec.directory.size(), limits::path_bytes);
    if (!spec.directory.empty() && spec.directory[0] != '/')
        return fail(Code::invalid, "directory is \"" + spec.directory + "\": give it as an absolute path of the host");
    spec.label = text_or_empty(g.label);
    if (spec.label.size() > limits::label_bytes)
        return too_much("the length of label", spec.label.size(), limits::label_bytes);
    return Status::ok();
}

Status upload_content(Pool &pool, const wire::GrainFile &content, std::FILE *from, const std::string &name, With with) {
    Status s;
    std::size_t unanswered = calls_ahead;
    for (int attempt = 0; attempt < most_uploads; ++attempt) {
        Upload upload(content, from, name);
        s = upload.first(pool, with);
        bool again = s.code == Code::not_found;
        if (s && upload.has_more()) {
            s = upload.rest(pool, unanswered);
            // The limits of a user may allow fewer bytes in the scheduler's queue than are ahead.
            const bool less = s.code == Code::limit && unanswered > 1;
            if (less) unanswered = 1;
            again = less || s.code == Code::not_found || s.code == Code::broken;
        }
        if (s.code == Code::invalid && !upload.is_shorter())
            return fail(s.code, name + " changed while it was read: call again (" + s.text + ")");
        if (!again) break;
    }
    return s;
}

Status LocalFiles::add(wire::FileRole role, const d_file &file, wire::GrainSpec &spec) {
    if (!file.path || !*file.path) return fail(Code::invalid, "a file of the grain has no path to read it from");
    const bool named = role != wire::FileRole::program && role != wire::FileRole::image;
    if (named && !file.name)
        return fail(Code::invalid, std::string("the file ") + file.path + " has no name for the grain's directory");
    if (role == wire::FileRole::program && file.name)
        return fail(Code::invalid,
                    std::string("the program ") + file.path + " is called by gargv[0]: its name must be NULL");
    auto digested = digest_of_file(file.path);
    if (!digested) return digested.status();
    wire::GrainFile entry{role, text_or_empty(file.name), digested->digest, digested->size,
                          text_or_empty(file.binary_class)};
    spec.files.push_back(entry);
    sources_.try_emplace(digested->digest, Source{std::move(entry), file.path, nullptr});
    return Status::ok();
}

Status LocalFiles::add_input(const d_grain &grain, wire::GrainSpec &spec) {
    if (grain.input_fd < -1)
        return fail(Code::invalid, "input_fd is " + std::to_string(grain.input_fd) + ": a descriptor, or -1 for none");
    if (!grain.input_path && grain.input_fd < 0) return Status::ok();
    if (grain.input_length > 0 || (grain.input_path && grain.input_fd >= 0))
        return fail(Code::invalid, "the input is given twice: one of input, input_path and input_fd");
    const std::string what = grain.input_path ? grain.input_path : "the input (input_fd)";
    File opened;
    if (grain.input_path) {
        auto file = open_file(what);
        if (!file) return file.status();
        opened = std::move(*file);
    }
    InputPieces from(opened ? ::fileno(opened.get()) : grain.input_fd);
    const auto unread = [&what] {
        return fail_errno(errno == EBADF ? Code::invalid : Code::io_error, "cannot read " + what, errno);
    };
    if (!from.next(limits::input_bytes + 1, spec.input)) return unread();
    if (!opened && from.end() >= 0) read_to_.emplace_back(grain.input_fd, from.end());
    spec.input.shrink_to_fit();
    if (spec.input.size() <= limits::input_bytes) return Status::ok();
    // It may be a pipe, or change: what is digested is what is brought.
    auto copy = temporary_file();
    if (!copy) return copy.status();
    std::uint64_t length = 0;
    for (std::string piece = std::exchange(spec.input, {}); !piece.empty();) {
        length += piece.size();
        if (length > limits::content_bytes) return too_large(what);
        if (std::fwrite(piece.data(), 1, piece.size(), copy->get()) != piece.size()) return uncopied(what);
        if (!from.next(limits::content_piece_bytes, piece)) return unread();
    }
    if (!opened && from.end() >= 0) read_to_.back().second = from.end();
    std::rewind(copy->get());
    auto whole = digest_of(copy->get(), what);
    if (!whole) return whole.status();
    wire::GrainFile entry{wire::FileRole::input, "", whole->digest, whole->size, ""};
    spec.files.push_back(entry);
    copied_bytes_ += whole->size;
    sources_.try_emplace(whole->digest, Source{std::move(entry), {}, std::move(*copy)});
    return Status::ok();
}

void LocalFiles::submitted() const {
    for (const auto &[fd, end] : read_to_) ::lseek(fd, end, SEEK_SET);
}

Status LocalFiles::take(const d_grain &grain, wire::GrainSpec &spec) {
    if ((grain.file_count > 0 && !grain.files) || (grain.program_count > 0 && !grain.programs))
        return fail(Code::invalid, "files or programs is NULL, but its count is not 0");
    if (grain.file_count + grain.program_count > limits::grain_files)
        return fail(Code::limit, "the grain has " + std::to_string(grain.file_count + grain.program_count) +
                                     " files, the limit is " + std::to_string(limits::grain_files));
    for (std::size_t i = 0; i < grain.file_count; ++i) {
        const auto file = known(at_stride(grain.files, grain.files->struct_size, i), "files");
        if (!file) return file.status();
        const auto role = file->executable ? wire::FileRole::executable : wire::FileRole::data;
        if (Status s = add(role, *file, spec); !s) return s;
    }
    for (std::size_t i = 0; i < grain.program_count; ++i) {
        const auto file = known(at_stride(grain.programs, grain.programs->struct_size, i), "programs");
        if (!file) return file.status();
        if (Status s = add(wire::FileRole::program, *file, spec); !s) return s;
    }
    if (grain.image && *grain.image) {
        d_file image{};
        image.path = grain.image;
        if (Status s = add(wire::FileRole::image, image, spec); !s) return s;
    }
    for (const char *const *name = grain.outputs; name && *name; ++name) {
        if (spec.files.size() > limits::grain_files) break;
        spec.files.push_back({wire::FileRole::output, *name, "", 0, ""});
    }
    if (Status s = add_input(grain, spec); !s) return s;
    return wire::check_files(spec);
}

Status LocalFiles::upload_one(Pool &pool, Source &source) {
    File opened;
    if (!source.copy) {
        auto file = open_file(source.path);
        if (!file) return file.status();
        opened = std::move(*file);
    }
    return upload_content(pool, source.file, source.copy ? source.copy.get() : opened.get(), source.path, With::token);
}

std::uint64_t bytes_of(const wire::GrainSpec &spec) {
    std::uint64_t bytes = 100 + spec.input.size() + spec.directory.size() + spec.label.size();
    for (const auto *list : {&spec.argv, &spec.env})
        for (const std::string &word : *list) bytes += 4 + word.size();
    for (const wire::GrainFile &file : spec.files) bytes += 60 + file.name.size() + file.binary_class.size();
    return bytes;
}

namespace {

void note(Pool &pool, const wire::AnyMessage &submission, const wire::Done &done) {
    if (const auto *one = std::get_if<wire::Gexec>(&submission))
        return pool.submitted(one->session, {one->grain}, done);
    const auto &many = std::get<wire::GexecMany>(submission);
    std::vector<int> grains;
    for (const wire::GrainOrder &order : many.orders) grains.push_back(order.grain);
    pool.submitted(many.session, grains, done);
}

}  // namespace

Status LocalFiles::submit(Pool &pool, const wire::AnyMessage &submission, const How &how) {
    Status s;
    for (int attempt = 0; attempt < most_submissions; ++attempt) {
        if (how.refused_grain) *how.refused_grain = -1;
        const auto done = ask<wire::Done>(pool, submission, how);
        s = done.status();
        if (done) note(pool, submission, *done);
        if (s || s.code != Code::not_found || sources_.empty()) break;
        if (Status brought = upload(pool); !brought) return brought;
    }
    return s;
}

Status LocalFiles::upload(Pool &pool) {
    for (auto from = sources_.begin(); from != sources_.end();) {
        wire::AskContents wanted;
        for (; from != sources_.end() && wanted.digests.size() < limits::grain_files; ++from)
            wanted.digests.push_back(from->first);
        auto missing = ask<wire::MissingContents>(pool, wanted);
        if (!missing) return missing.status();
        for (const std::string &digest : missing->digests) {
            const auto source = sources_.find(digest);
            if (source == sources_.end())
                return fail(Code::protocol, "the scheduler requests a content that was not offered");
            if (Status s = upload_one(pool, source->second); !s) return s;
        }
    }
    return Status::ok();
}

}  // namespace dcs::client
