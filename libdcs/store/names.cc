#include "store/names.h"

#include <cstdio>

namespace dcs::store {
namespace {

constexpr std::size_t digits = 20;
constexpr std::size_t component_bytes = 255;

std::string number(std::uint64_t turn) {
    char text[24];
    std::snprintf(text, sizeof text, "%020llu", static_cast<unsigned long long>(turn));
    return text;
}

bool ends_with(std::string_view name, std::string_view tail) {
    return name.size() >= tail.size() && name.substr(name.size() - tail.size()) == tail;
}

}  // namespace

std::string root_name(std::uint64_t turn) { return "turns/" + number(turn) + ".commit"; }
std::string root_temporary(std::uint64_t turn) { return "turns/" + number(turn) + ".tmp"; }

std::string big_temporary(const std::string &directory, const std::string &file,
                          std::uint64_t turn) {
    return directory + "/" + file + "." + number(turn) + ".tmp";
}

bool parse_root_name(const std::string &name, std::uint64_t &turn) {
    if (name.size() != digits + 7 || !ends_with(name, ".commit")) return false;
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < digits; ++i) {
        if (name[i] < '0' || name[i] > '9') return false;
        value = value * 10 + static_cast<std::uint64_t>(name[i] - '0');
    }
    turn = value;
    return number(value) == name.substr(0, digits);
}

bool is_temporary(std::string_view name) {
    return ends_with(name, ".tmp") || ends_with(name, ".new");
}

bool valid_component(std::string_view name) {
    return !name.empty() && name != "." && name != ".." && name.size() <= component_bytes &&
           name.find('/') == name.npos && name.find('\0') == name.npos;
}

bool valid_path(std::string_view path) {
    if (path.empty() || path.size() > 4096) return false;
    while (true) {
        const std::size_t slash = path.find('/');
        if (!valid_component(path.substr(0, slash))) return false;
        if (slash == path.npos) return true;
        path.remove_prefix(slash + 1);
    }
}

bool valid_tree_directory(std::string_view path) {
    if (!valid_path(path)) return false;
    const std::string_view top = path.substr(0, path.find('/'));
    return top != turns_directory && top != damaged_directory && top != format_file &&
           top != format_temporary && top != reserve_file && top != reserve_temporary &&
           top != lock_file;
}

std::string join(const std::string &directory, const std::string &name) {
    return directory.empty() ? name : directory + "/" + name;
}

std::string parent_of(const std::string &path) {
    const std::size_t slash = path.rfind('/');
    return slash == path.npos ? std::string() : path.substr(0, slash);
}

bool is_below(std::string_view path, std::string_view directory) {
    if (path.substr(0, directory.size()) != directory) return false;
    return path.size() == directory.size() || path[directory.size()] == '/';
}

}  // namespace dcs::store
