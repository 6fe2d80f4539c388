#include "locks/files/lock_header.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <string_view>

#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"

namespace dcs::locks {
namespace {

constexpr std::size_t header_bytes = 512, inline_max = 400;
constexpr std::size_t full_max = 3 * 3 * name_part_max + 2;  // three parts, each byte as %XX
constexpr std::string_view magic = "dcs_lock 1 ";

const char *word_of(FileKind kind) { return kind == FileKind::slots ? "slots" : "atom"; }

std::string text_at(int fd, std::size_t bytes, std::int64_t at) {
    std::string text(bytes, '\0');
    return pread_all(fd, text, at) ? text : "";
}

// "dcs_lock 1 atom\nname 17\nhost,edit,motd\n", zeros to 512 bytes. For a long name: its length, and an empty line.
std::string header_of(FileKind kind, const std::string &name) {
    std::string text = std::string(magic) + word_of(kind) + "\nname " + std::to_string(name.size()) + "\n";
    if (name.size() <= inline_max) text += name;
    text += "\n";
    text.resize(header_bytes, '\0');
    return text;
}

// Whether this is the header of `place`, whose file has the whole name in its own name: the common case of an open.
bool as_expected(std::string_view text, const Place &place, FileKind kind) {
    if (!place.named) return false;
    std::string_view name = place.path;
    name.remove_prefix(name.rfind('/') + 1);
    name = name.substr(0, name.rfind('.'));
    if (name.find('~') != std::string_view::npos || name.size() > inline_max) return false;
    char front[64];
    const int n = std::snprintf(front, sizeof front, "dcs_lock 1 %s\nname %zu\n", word_of(kind), name.size());
    return text.size() == header_bytes && text.substr(0, static_cast<std::size_t>(n)) == front &&
           text.substr(static_cast<std::size_t>(n), name.size()) == name &&
           text[static_cast<std::size_t>(n) + name.size()] == '\n';
}

struct Header {
    FileKind kind = FileKind::broken;
    std::string name;
};

bool parse(int fd, std::string_view text, Header &header) {
    if (text.size() != header_bytes || text.substr(0, magic.size()) != magic) return false;
    text.remove_prefix(magic.size());
    const std::size_t line = text.find('\n');
    if (line == std::string_view::npos) return false;
    const std::string_view word = text.substr(0, line);
    if (word != "atom" && word != "slots") return false;
    header.kind = word == "slots" ? FileKind::slots : FileKind::atom;
    text.remove_prefix(line + 1);
    if (text.substr(0, 5) != "name ") return false;
    text.remove_prefix(5);
    std::size_t length = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
    if (error != std::errc{} || end == text.data() + text.size() || *end != '\n') return false;
    if (length == 0 || length > full_max) return false;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
    header.name = length <= inline_max ? std::string(text.substr(0, std::min(length, text.size())))
                                       : text_at(fd, length, long_names_at);
    return header.name.size() == length &&
           header_of(header.kind, header.name).compare(header_bytes - text.size(), text.size(), text) == 0;
}

FileKind recognise_header(int fd, const struct stat &st, std::string_view text, bool adopt, Header &header) {
    if (!S_ISREG(st.st_mode)) return FileKind::foreign;
    if (parse(fd, text, header)) return header.kind;
    // An empty file may be another program's data; zeros in place of the header are a lock file after a crash.
    const bool zeros = text.find_first_not_of('\0') == std::string::npos;
    if (adopt && zeros) return FileKind::broken;
    return text.compare(0, magic.size(), magic) == 0 ? FileKind::broken : FileKind::foreign;
}

Status is_of_kind(FileKind kind, const std::string &name) {
    return fail(Code::invalid, name + (kind == FileKind::slots
                                           ? " is a set of counted slots: use it with -j N or -l, or use another name"
                                           : " is an exclusive or adaptive lock: use it without -j and -l, or use "
                                             "another name"));
}

}  // namespace

int write_header(int fd, FileKind kind, const Atom &atom) {
    const std::string name = full_name(atom);
    if (name.size() > inline_max && !pwrite_all(fd, name, long_names_at)) return -1;
    return pwrite_all(fd, header_of(kind, name), header_at) ? 0 : -1;
}

FileKind recognise(int fd, bool adopt, Atom *atom) {
    struct stat st = {};
    if (::fstat(fd, &st) != 0) return FileKind::foreign;
    Header header;
    const FileKind kind = recognise_header(fd, st, text_at(fd, header_bytes, header_at), adopt, header);
    if (kind == FileKind::atom || kind == FileKind::slots)
        if (Result<Atom> named = decoded_name(header.name)) *atom = *named;
    return kind;
}

Status judge(int fd, const Place &place, FileKind wanted, FileKind *kind) {
    struct stat st = {};
    if (::fstat(fd, &st) != 0) return fail_errno(Code::io_error, "cannot examine lock file " + place.path, errno);
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return fail(Code::invalid, place.path + " is neither a regular file nor a directory, so it cannot be a lock");
    if (place.named && st.st_uid != ::geteuid() && st.st_uid != 0)
        return fail(Code::refused, "lock file " + place.path + " belongs to uid " + std::to_string(st.st_uid) +
                                       ", who may change it; remove it or set DCS_LOCK_DIR");
    char bytes[header_bytes];
    const ssize_t n = ::pread(fd, bytes, sizeof bytes, header_at);
    const std::string_view text(bytes, n > 0 ? static_cast<std::size_t>(n) : 0);
    *kind = wanted;
    if (S_ISREG(st.st_mode) && as_expected(text, place, wanted)) return Status::ok();
    Header header;
    *kind = recognise_header(fd, st, text, place.adopt, header);
    if (*kind == FileKind::foreign && place.named)
        return fail(Code::invalid, place.path + " is not a lock file and has the name of one; move it away");
    if (*kind == FileKind::foreign || *kind == FileKind::broken) return Status::ok();
    if (*kind != wanted) return is_of_kind(*kind, place.path);
    if (place.named && header.name != full_name(place.atom))
        return fail(Code::invalid, "lock file " + place.path + " belongs to the atom " + header.name +
                                       "; it was renamed, or two long names have one hash: use another name");
    return Status::ok();
}

Status check_one_kind(const Place &place, FileKind wanted) {
    const FileKind other = wanted == FileKind::slots ? FileKind::atom : FileKind::slots;
    const std::string path =
        place.path.substr(0, place.path.rfind('.')) + (wanted == FileKind::slots ? ".lock" : ".slots");
    if (!place.one_kind || ::access(path.c_str(), F_OK) != 0) return Status::ok();
    return is_of_kind(other, place.atom.operation);
}

}  // namespace dcs::locks
