#include "locks/files/atom.h"

#include <cerrno>
#include <cstdlib>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "locks/files/world.h"

namespace dcs::locks {
namespace {

constexpr std::size_t encoded_max = 200, encoded_kept = 160;

constexpr std::string_view plain_in_names = "._+-";

std::string encoded(const std::string &text) { return percent_encoded(text, plain_in_names); }

bool decode(const std::string &text, std::string &out) {
    const std::optional<std::string> decoded = percent_decoded(text, plain_in_names);
    out = decoded.value_or("");
    return decoded.has_value();
}

// FNV-1a of 128 bits. It only has to spread names: the whole name in the file reveals a collision.
std::string hash_of(const std::string &text) {
    using Wide = unsigned __int128;
    const Wide prime = (Wide{1} << 88) + 0x13b;
    Wide hash = (Wide{0x6c62272e07bb0142ULL} << 64) + 0x62b821756295c58dULL;
    for (unsigned char c : text) hash = (hash ^ c) * prime;
    return hex_of_number(static_cast<std::uint64_t>(hash >> 64)) + hex_of_number(static_cast<std::uint64_t>(hash));
}

Status usable(const std::string &part, const char *what) {
    if (part.size() > name_part_max)
        return fail(Code::invalid, std::string(what) + " of a lock is longer than 16384 bytes");
    if (part.find('\0') != std::string::npos)
        return fail(Code::invalid, std::string(what) + " of a lock holds a NUL byte");
    return Status::ok();
}

// mkdir -p for the last two components only; the system provides the directories above them.
Status make_lock_directory(const std::string &path) {
    const std::string parent = path.substr(0, path.rfind('/'));
    const auto make = [](const std::string &name) { return ::mkdir(name.c_str(), 0700) == 0 || errno == EEXIST; };
    if (make(path)) return Status::ok();
    if (errno == ENOENT) {
        const std::string above = parent.substr(0, parent.rfind('/'));
        make(above);
        make(parent);
        if (make(path)) return Status::ok();
    }
    return fail_errno(Code::io_error, "cannot create the lock directory " + path + "; set DCS_LOCK_DIR to another",
                      errno);
}

Result<std::string> wanted_directory() {
    const auto variable = [](const char *name) {
        const char *value = ::secure_getenv(name);
        return std::string(value != nullptr ? value : "");
    };
    std::string path = variable("DCS_LOCK_DIR");
    if (path.empty() && ::geteuid() == 0) path = "/var/lib/dcs-lock";
    if (path.empty() && !variable("XDG_STATE_HOME").empty()) path = variable("XDG_STATE_HOME") + "/dcs-lock";
    if (path.empty() && !variable("HOME").empty()) path = variable("HOME") + "/.local/state/dcs-lock";
    if (path.empty()) return fail(Code::not_found, "no directory for locks: set DCS_LOCK_DIR or HOME");
    if (path[0] != '/')
        return fail(Code::invalid, "the lock directory " + path +
                                       " is not an absolute path, so each working "
                                       "directory would have its own locks; set DCS_LOCK_DIR to an absolute path");
    return path;
}

}  // namespace

std::string full_name(const Atom &atom) {
    return encoded(atom.host.empty() ? this_world().host : atom.host) + "," + encoded(atom.operation) + "," +
           encoded(atom.operand);
}

Result<std::string> encoded_name(const Atom &atom) {
    if (atom.operation.empty()) return fail(Code::invalid, "the name of a lock is empty");
    for (const auto &[part, what] :
         {std::pair{&atom.operation, "the operator"}, {&atom.operand, "the operand"}, {&atom.host, "the host"}})
        if (Status s = usable(*part, what); !s) return s;
    std::string text = full_name(atom);
    if (text.size() > encoded_max) text = text.substr(0, encoded_kept) + "~" + hash_of(text);
    return text;
}

Result<Atom> decoded_name(const std::string &text) {
    const std::size_t first = text.find(','), second = text.find(',', first + 1);
    Atom atom;
    if (first == std::string::npos || second == std::string::npos || !decode(text.substr(0, first), atom.host) ||
        !decode(text.substr(first + 1, second - first - 1), atom.operation) ||
        !decode(text.substr(second + 1), atom.operand) || atom.operation.empty() || atom.host.empty())
        return fail(Code::invalid, text + " is not the whole name of a lock");
    return atom;
}

Result<std::string> lock_directory() {
    Result<std::string> path = wanted_directory();
    if (!path) return path;
    struct stat st = {};
    if (::stat(path->c_str(), &st) != 0) {
        if (errno != ENOENT) return fail_errno(Code::io_error, "cannot examine the lock directory " + *path, errno);
        if (Status s = make_lock_directory(*path); !s) return s;
        if (::stat(path->c_str(), &st) != 0)
            return fail_errno(Code::io_error, "cannot examine the lock directory " + *path, errno);
    }
    if (!S_ISDIR(st.st_mode)) return fail(Code::invalid, "the lock directory " + *path + " is not a directory");
    if (st.st_uid != ::geteuid() && st.st_uid != 0)
        return fail(Code::refused, "the lock directory " + *path + " belongs to uid " + std::to_string(st.st_uid) +
                                       ", who could replace every lock in it; set DCS_LOCK_DIR to your own directory");
    return path;
}

Result<Place> place_of(const Atom &atom, const std::string &suffix) {
    Result<std::string> name = encoded_name(atom);
    if (!name) return name.status();
    Result<std::string> directory = lock_directory();
    if (!directory) return directory.status();
    Place place{.path = *directory + "/" + *name + suffix, .directory = *directory, .atom = atom};
    if (place.atom.host.empty()) place.atom.host = this_world().host;
    place.one_kind = atom.operand.empty();
    return place;
}

Result<Place> place_of(const std::string &name, const std::string &suffix) {
    if (name.find('/') == std::string::npos) return place_of(Atom{name, "", ""}, suffix);
    if (Status s = usable(name, "the path"); !s) return s;
    Place place{.path = name};
    if (Result<std::string> directory = lock_directory()) place.directory = *directory;
    place.atom = Atom{name, "", this_world().host};
    place.named = place.adopt = false;
    return place;
}

}  // namespace dcs::locks
