// Which configuration files there are, and how they are read: whatever lies there, it is not waited for. Also the
// process that reads them again.
#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/text.h"
#include "base/trusted_path.h"
#include "daemon/configuration.h"
#include "daemon/privileges.h"

namespace dcs {
namespace {

constexpr std::size_t most_bytes = 1u << 20, most_files = 1000;
constexpr std::string_view ending = ".toml";

Status wrong(const std::string &file, const std::string &what) { return fail(Code::refused, file + " " + what); }

Status judge(const std::string &file, const struct stat &st) {
    if (!S_ISREG(st.st_mode)) return wrong(file, "is not a regular file");
    if (st.st_uid != 0 && st.st_uid != ::geteuid())
        return wrong(
            file, "belongs to uid " + std::to_string(st.st_uid) + ", so it is not trusted: `chown root " + file + "`");
    if ((st.st_mode & S_IWOTH) != 0 || ((st.st_mode & S_IWGRP) != 0 && st.st_gid != 0))
        return wrong(file, "can be written by other users, so it is not trusted: `chmod go-w " + file + "`");
    if (static_cast<std::uint64_t>(st.st_size) > most_bytes) return wrong(file, "is larger than 1 MiB");
    return trusted_path(file);
}

Result<ConfigText> read_text(const std::string &file) {
    // A pipe or a terminal opens at once, and is refused by what it is.
    const Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    struct stat st = {};
    if (!fd || ::fstat(fd.get(), &st) != 0)
        return fail_errno(errno == ENOENT ? Code::not_found : Code::io_error, file, errno);
    if (Status s = judge(file, st); !s) return s;
    auto text = read_open(fd.get(), file, most_bytes, false);
    if (!text) return text.status();
    return ConfigText{file, std::move(*text)};
}

// Names in FILE.d, sorted; none if it is not there.
std::vector<std::string> drop_ins(const std::string &directory, std::vector<std::string> &why) {
    const Fd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd && errno == ENOENT) return {};
    const Status failed = fd ? Status::ok() : fail_errno(Code::io_error, directory, errno);
    const auto names = fd ? list_directory(fd.get()) : Result<std::vector<std::string>>(failed);
    if (!names) {
        why.push_back(names.status().text);
        return {};
    }
    std::vector<std::string> files;
    for (const std::string &name : *names)
        if (name[0] != '.' && name.size() > ending.size() && name.ends_with(ending)) files.push_back(name);
    if (files.size() > most_files) why.push_back(directory + " has more than 1000 files");
    files.resize(std::min(files.size(), most_files));
    return files;
}

constexpr int reader_patience_s = 10;
constexpr std::size_t most_read = 64u << 20;
// Of root's rights: configuration files may lie where only others may look.
constexpr std::uint64_t kept_by_reader = 1ull << CAP_DAC_READ_SEARCH;

// Errors stand before the texts, as a text of no file.
std::string all_of(const std::string &file) {
    std::vector<std::string> why;
    std::vector<ConfigText> texts = read_config_files(file, why);
    for (const std::string &error : why) texts.push_back({"", error});
    return pack(texts);
}

SideAnswer read_for(const std::string &file, int *fd) {
    const std::string bytes = all_of(file);
    Fd memory(::memfd_create("configuration", MFD_CLOEXEC));
    if (!memory || !write_all(memory.get(), bytes) || ::lseek(memory.get(), 0, SEEK_SET) != 0)
        return {fail_errno(Code::io_error, "a copy of the configuration", errno), ""};
    *fd = memory.release();
    return {};
}

[[noreturn]] void run_reader(int socket, const std::string &file) {
    Status s = settle_side_process(socket, "dcs_config");
    if (s) s = give_up_capabilities(kept_by_reader);
    serve_side_process(s, socket, reader_patience_s, [&](std::string_view, int *fd) { return read_for(file, fd); });
}

}  // namespace

std::vector<ConfigText> read_config_files(const std::string &file, std::vector<std::string> &why) {
    std::vector<ConfigText> texts;
    const auto take = [&](Result<ConfigText> text, bool may_lack) {
        if (text) texts.push_back(std::move(*text));
        else if (!may_lack || text.status().code != Code::not_found) why.push_back(text.status().text);
    };
    // Also if nothing is there: another user could have removed it.
    const std::string directory = file + ".d";
    for (const std::string &place : {file.substr(0, file.rfind('/') + 1), directory})
        if (Status s = trusted_path(place); !s) why.push_back(s.text);
    if (!why.empty()) return texts;
    take(read_text(file), true);
    for (const std::string &name : drop_ins(directory, why)) take(read_text(directory + "/" + name), false);
    return texts;
}

// "LENGTH LENGTH\nFILETEXT" for each.
std::string pack(const std::vector<ConfigText> &texts) {
    std::string bytes;
    for (const ConfigText &t : texts)
        bytes += std::to_string(t.file.size()) + " " + std::to_string(t.text.size()) + "\n" + t.file + t.text;
    return bytes;
}

std::optional<std::vector<ConfigText>> unpack_config(std::string_view bytes) {
    std::vector<ConfigText> texts;
    while (!bytes.empty()) {
        const std::size_t blank = bytes.find(' '), end = bytes.find('\n');
        std::size_t file = 0, text = 0;
        if (end == bytes.npos || blank > end || !read_number(bytes.substr(0, blank), file) ||
            !read_number(bytes.substr(blank + 1, end - blank - 1), text))
            return std::nullopt;
        bytes.remove_prefix(end + 1);
        if (file > bytes.size() || text > bytes.size() - file) return std::nullopt;
        texts.push_back({std::string(bytes.substr(0, file)), std::string(bytes.substr(file, text))});
        bytes.remove_prefix(file + text);
    }
    return texts;
}

Result<std::unique_ptr<ConfigReader>> ConfigReader::start(const std::string &program, const std::string &file) {
    auto process = SideProcess::start({"what reads the configuration of " + program, program}, reader_patience_s,
                                      [&](int socket) { run_reader(socket, file); });
    if (!process) return process.status();
    return std::unique_ptr<ConfigReader>(new ConfigReader(std::move(*process)));
}

Result<std::vector<ConfigText>> ConfigReader::read(std::vector<std::string> &why) {
    Fd memory;
    if (const Result<std::string> reply = process_->call("read", &memory); !reply) return reply.status();
    if (!memory) return fail(Code::limit, "no descriptor is left for the configuration: raise ulimit -n");
    std::string bytes;
    if (!read_to_end(memory.get(), most_read, bytes))
        return fail_errno(Code::io_error, "the configuration cannot be read", errno);
    auto texts = unpack_config(bytes);
    if (!texts) return process_->distrust();
    std::vector<ConfigText> files;
    for (ConfigText &text : *texts)
        if (text.file.empty()) why.push_back(std::move(text.text));
        else files.push_back(std::move(text));
    return files;
}

}  // namespace dcs
