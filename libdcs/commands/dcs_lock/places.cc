#include "places.h"

#include <algorithm>
#include <cerrno>

#include <dirent.h>
#include <sys/stat.h>

#include "locks/files/lock_search.h"
#include "say.h"

namespace dcs::lock_command {
namespace {

bool ends_with(const std::string &text, const std::string &end) {
    return text.size() > end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

Result<std::vector<std::string>> files_of(const std::string &directory) {
    DIR *dir = ::opendir(directory.c_str());
    if (dir == nullptr) return fail_errno(Code::io_error, "the lock directory " + directory + " cannot be read", errno);
    std::vector<std::string> names;
    while (const dirent *entry = ::readdir(dir)) {
        const std::string name = entry->d_name;
        if (ends_with(name, ".lock") || ends_with(name, ".slots")) names.push_back(name);
    }
    ::closedir(dir);
    std::sort(names.begin(), names.end());
    return names;
}

// The atom in the file's header; without a valid header, the atom in the file's name.
locks::Place place_in(const std::string &directory, const std::string &file) {
    locks::Place place{.path = directory + "/" + file, .directory = directory};
    if (auto atom = locks::decoded_name(file.substr(0, file.rfind('.')))) place.atom = *atom;
    else if (auto whole = locks::LockFile::look(place)) place.atom = whole->atom();
    if (place.atom.operation.empty()) place.atom.operation = file;
    return place;
}

}  // namespace

Seen look_closely(const locks::World &world, locks::Place place, bool counted) {
    Seen seen{.place = std::move(place)};
    auto file = locks::LockFile::look(seen.place);
    if (!file) {
        seen.trouble = file.status();
        return seen;
    }
    seen.counted = counted || file->kind() == locks::FileKind::slots;
    seen.waiting = locks::waiters(*file);
    if (seen.counted) {
        auto holders = locks::slot_holders(seen.place);
        if (!holders) seen.trouble = holders.status();
        else
            for (locks::SlotHolder &holder : *holders)
                if (holder.held) seen.slots.push_back(std::move(holder));
        return seen;
    }
    auto state = locks::look_at(world, seen.place);
    if (!state) {
        seen.trouble = state.status();
        return seen;
    }
    seen.atom = std::move(*state);
    if (seen.atom.held && (seen.atom.shared || seen.atom.record.outcome != locks::Outcome::running))
        seen.unrecorded = locks::owners_of_lock(world, *file, locks::holder_byte);
    return seen;
}

Result<std::vector<Seen>> look_around(const locks::World &world, const Options &options) {
    std::vector<Seen> all;
    if (!options.has_atom()) {
        const auto directory = locks::lock_directory();
        if (!directory) return directory.status();
        const auto files = files_of(*directory);
        if (!files) return files.status();
        for (const std::string &file : *files)
            all.push_back(look_closely(world, place_in(*directory, file), ends_with(file, ".slots")));
        return all;
    }
    for (const char *suffix : {".lock", ".slots"}) {
        auto place = options.atom ? locks::place_of(*options.atom, suffix) : locks::place_of(options.name, suffix);
        if (!place) return place.status();
        const bool counted = place->named && suffix == std::string(".slots");
        struct stat st = {};
        if (::lstat(place->path.c_str(), &st) == 0) all.push_back(look_closely(world, *place, counted));
        if (!place->named) break;  // a path has no suffix
    }
    return all;
}

}  // namespace dcs::lock_command
