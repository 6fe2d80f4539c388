#include "file_options.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <functional>
#include <map>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "client/streams.h"
#include "pki/digest.h"
#include "commands/dcs/query/grains.h"
#include "commands/dcs/query/scheduler.h"
#include "wire/checks.h"
#include "commands/dcs/frame/pool_directory.h"
#include "caller_environment.h"
#include "placeholders.h"

namespace dcs::commands {
namespace {

std::string last_part(const std::string &path) { return path.substr(path.rfind('/') + 1); }

std::optional<Failure> bad_name(const std::string &option, const std::string &word, const std::string &name) {
    if (wire::good_file_name(name)) return std::nullopt;
    return usage_failure("--" + option + " " + word + ": \"" + name +
                         "\" is not a name below the grain's directory (relative, without ..)");
}

}  // namespace

std::optional<Failure> take_file_words(const Arguments &arguments, FileWords &words, bool per_input) {
    for (const auto &[option, value] : arguments.options) {
        if (option != "file" && option != "output") continue;
        const std::size_t at = value.find('=');
        const std::string left = value.substr(0, at), right = at == std::string::npos ? "" : value.substr(at + 1);
        FileWords::Pair pair{left, right};
        const bool named_later = per_input && has_placeholder(left, true);
        if (option == "file" && at == std::string::npos) pair = {named_later ? "" : last_part(value), value};
        if (option == "output" && at == std::string::npos) pair.path = left;
        if (auto failure = named_later ? std::nullopt : bad_name(option, value, pair.name)) return failure;
        if (pair.path.empty()) return usage_failure("--" + option + " " + value + ": the path is missing");
        (option == "file" ? words.files : words.outputs).push_back(std::move(pair));
    }
    std::set<std::string> paths;
    if (const std::string path = written_twice(words, paths); !path.empty())
        return usage_failure("--output: two outputs would be written to " + path);
    words.input = arguments.value("input").value_or("");
    if (arguments.has("input") && words.input.empty()) return usage_failure("--input: the path is missing");
    words.image = arguments.value("image").value_or("");
    words.in_room = !words.image.empty() && !arguments.has("cwd");
    if (arguments.has("image") && words.image.empty()) return usage_failure("--image: the path is missing");
    return std::nullopt;
}

OptionRow image_option() {
    return {"image", 0, "FILE", any_text,
            "CMD runs in a container of this image: an archive of docker or OCI, or of a root file system"};
}

Result<std::string> program_of(const FileWords &words, bool brought, const std::string &name,
                               const std::string &directory) {
    const char *path = std::getenv("PATH");
    if (!words.image.empty() && !brought) return name;
    return find_program(name, path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path, directory);
}

bool FileWords::by_input(bool columns) const {
    return has_placeholder(input, columns) ||
           std::any_of(files.begin(), files.end(), [&](const Pair &f) { return has_placeholder(f.path, columns); });
}

FileWords FileWords::for_input(const std::string &item, std::int32_t number) const {
    FileWords words = *this;
    const auto replace = [&](std::string &word) {
        if (has_placeholder(word, is_columns(item))) word = words_of({word}, item, number)[0];
    };
    replace(words.input);
    for (std::vector<Pair> *pairs : {&words.files, &words.outputs})
        for (Pair &pair : *pairs) {
            replace(pair.name);
            replace(pair.path);
            if (pair.name.empty()) pair.name = last_part(pair.path);
        }
    return words;
}

// One file has one, whatever symbolic links lead to its directory.
static std::string place_of(const std::string &path) {
    static std::map<std::string, std::string> folders;  // one for many outputs
    const std::filesystem::path whole = std::filesystem::path(path).lexically_normal();
    std::string &folder = folders[whole.parent_path()];
    std::error_code error;
    if (folder.empty())
        folder = std::filesystem::weakly_canonical(std::filesystem::current_path(error) / whole.parent_path(), error);
    if (error) folder = whole.parent_path();  // it cannot be looked at, which is said elsewhere
    return folder + "/" + whole.filename().string();
}

std::string written_twice(const FileWords &words, std::set<std::string> &seen) {
    for (const FileWords::Pair &output : words.outputs)
        if (!seen.insert(place_of(output.path)).second) return output.path;
    return "";
}

static Status readable(const std::string &path) {
    struct stat about = {};
    const bool there = ::stat(path.c_str(), &about) == 0 && ::access(path.c_str(), R_OK) == 0;
    if (there && !S_ISDIR(about.st_mode)) return Status::ok();
    return fail_errno(Code::io_error, "the file " + path + " cannot be read", there ? EISDIR : errno);
}

std::optional<Failure> check_places(const FileWords &words, std::set<std::string> &seen) {
    if (!words.image.empty() && ::access(words.image.c_str(), R_OK) != 0)
        return failure_of(
            "", fail_errno(Code::io_error, "the image " + words.image + " cannot be read", errno),
            "an image is a file: `podman save -o FILE " + shell_word(words.image) + "` writes one of that name");
    for (const FileWords::Pair &file : words.files) {
        if (auto failure = bad_name("file", file.path, file.name)) return failure;
        if (const Status s = readable(file.path); !s) return failure_of("", s);
    }
    if (const Status s = readable(words.input); !words.input.empty() && !s) return failure_of("", s);
    for (const FileWords::Pair &output : words.outputs) {
        if (auto failure = bad_name("output", output.path, output.name)) return failure;
        const std::string what = "the output " + output.path + " cannot be written";
        std::error_code why;
        if (std::filesystem::is_directory(output.path, why) || output.path.back() == '/')
            return failure_of("", fail_errno(Code::io_error, what, EISDIR));
        const std::string directory = output.path.substr(0, output.path.rfind('/') + 1);
        if (!seen.insert(directory).second) continue;
        why.clear();
        if (!directory.empty()) std::filesystem::create_directories(directory, why);
        if (!why && ::access(directory.empty() ? "." : directory.c_str(), W_OK | X_OK) == 0) continue;
        return failure_of("", fail_errno(Code::io_error, what, why ? why.value() : errno));
    }
    return std::nullopt;
}

void FileWords::put_into(d_grain &grain) {
    list_.clear();
    names_.clear();
    for (const Pair &file : files)
        list_.push_back(
            {sizeof(d_file), file.name.c_str(), file.path.c_str(), nullptr, ::access(file.path.c_str(), X_OK) == 0, 0});
    for (const Pair &output : outputs) names_.push_back(output.name.c_str());
    names_.push_back(nullptr);
    grain.files = list_.data();
    grain.file_count = list_.size();
    grain.outputs = names_.data();
    if (!program.empty()) {
        program_.struct_size = sizeof program_;
        program_.path = program.c_str();
        grain.programs = &program_;
        grain.program_count = 1;
    }
    if (!input.empty()) grain.input_path = input.c_str();
    if (!image.empty()) grain.image = image.c_str();
    if (any() || in_room) grain.directory = nullptr;
}

void GrainTexts::put_into(d_grain &grain, const std::vector<char *> &environment, const wire::Demands &demands,
                          const std::string &directory) {
    argv_ = pointers_to(words);
    grain.gargv = argv_.data();
    grain.genvv = environment.data();
    wire::put_demands(demands, grain);
    grain.directory = directory.c_str();
    files.put_into(grain);
    grain.label = label.c_str();
}

namespace {

Failure unwritten(const std::string &path, const Status &why) {
    return failure_of("the output " + path + " cannot be written", why);
}
Failure unwritten(const std::string &path, int error) {
    return failure_of("", fail_errno(Code::io_error, "the output " + path + " cannot be written", error));
}

using Writer = std::function<std::optional<Failure>(std::FILE *to)>;

std::optional<Failure> write_through(const std::string &path, const Writer &write) {
    std::FILE *to = std::fopen(path.c_str(), "we");
    if (to == nullptr) return unwritten(path, errno);
    std::optional<Failure> failure = write(to);
    if (std::fclose(to) != 0 && !failure) failure = unwritten(path, errno);
    return failure;
}

// A link stays one, and what it names is written.
std::string behind_links(const std::string &path) {
    std::error_code error;
    const std::filesystem::path place = std::filesystem::canonical(path, error);
    return error ? path : place.string();
}

// `path` has all of it or what it had: it is written as a file without a name first, where the file system has such
// files, so that a command which is ended halfway leaves nothing. A device or a pipe is written as it is.
std::optional<Failure> write_whole(const std::string &given, const Writer &write) {
    struct stat st = {};
    const bool there = ::stat(given.c_str(), &st) == 0;
    if (there && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) return write_through(given, write);
    const std::string path = there ? behind_links(given) : given;
    const std::string directory = path.substr(0, path.rfind('/') + 1);
    const std::string temporary = path + ".dcs-" + std::to_string(::getpid());
    int fd = ::open(directory.empty() ? "." : directory.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
    std::remove(temporary.c_str());  // of a process that had this number and was killed
    const std::string nameless = fd >= 0 ? "/proc/self/fd/" + std::to_string(fd) : "";
    if (fd < 0) fd = ::open(temporary.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    std::FILE *to = fd >= 0 ? ::fdopen(fd, "w") : nullptr;
    if (to == nullptr) return unwritten(path, errno);
    std::optional<Failure> failure = write(to);
    if (std::fflush(to) != 0 && !failure) failure = unwritten(path, errno);
    if (!failure && !nameless.empty() &&
        ::linkat(AT_FDCWD, nameless.c_str(), AT_FDCWD, temporary.c_str(), AT_SYMLINK_FOLLOW) != 0)
        failure = unwritten(path, errno);
    if (std::fclose(to) != 0 && !failure) failure = unwritten(path, errno);
    if (!failure && std::rename(temporary.c_str(), path.c_str()) != 0) failure = unwritten(path, errno);
    if (failure) std::remove(temporary.c_str());
    return failure;
}

std::optional<std::string> digest_of(const std::string &path) {
    const client::File from(std::fopen(path.c_str(), "re"));
    if (!from) return std::nullopt;
    pki::Sha256 sum;
    char buffer[65536];
    for (std::size_t n = 0; (n = std::fread(buffer, 1, sizeof buffer, from.get())) > 0;) sum.add({buffer, n});
    return std::ferror(from.get()) == 0 ? std::optional(sum.finish()) : std::nullopt;
}

// An earlier run of the command has copied it: a full disk has no room for it twice.
bool has_output(int session, int grain, const FileWords::Pair &output) {
    struct stat st = {};
    if (::stat(output.path.c_str(), &st) != 0 || !S_ISREG(st.st_mode)) return false;
    const auto row = grain_now("", session, grain);
    return row && std::any_of(row->files.begin(), row->files.end(), [&](const wire::GrainFile &file) {
               return file.name == output.name && file.role == wire::FileRole::output &&
                      file.size == static_cast<std::uint64_t>(st.st_size) && digest_of(output.path) == file.digest;
           });
}

}  // namespace

std::optional<Failure> write_output(int session, int grain, const FileWords::Pair &output) {
    if (has_output(session, grain, output)) return std::nullopt;
    return write_whole(output.path, [&](std::FILE *to) -> std::optional<Failure> {
        const Status s = client::fetch_file(this_pool(), session, grain, output.name, to);
        if (s) return std::nullopt;
        if (std::ferror(to) != 0) return unwritten(output.path, s);
        Failure failure = call_failure("the output " + output.name, s);
        if (failure.exit == exits::not_found && output.path.ends_with(output.name))
            failure.hint = "--output is for a file that the command makes; `> " + shell_word(output.name) +
                           "` takes its standard output";
        return failure;
    });
}

std::optional<Failure> write_stream(int session, int grain, const char *stream, const std::string *text,
                                    const std::string &path) {
    std::FILE *from = nullptr;
    if (text == nullptr)
        if (const int failed = d_pool_grain_stream(&this_pool(), nullptr, session, grain, stream, &from);
            failed != NO_ERROR)
            return call_failure(std::string("the stream ") + stream, failed);
    const auto failure = write_whole(path, [&](std::FILE *to) -> std::optional<Failure> {
        const Copied copied = from != nullptr ? copy_stream(from, to) : Copied{};
        if (!copied.read || !copied.written) return unwritten(path, copied.error);
        if (from != nullptr || std::fwrite(text->data(), 1, text->size(), to) == text->size()) return std::nullopt;
        return unwritten(path, errno);
    });
    if (from != nullptr) std::fclose(from);
    return failure;
}

}  // namespace dcs::commands
