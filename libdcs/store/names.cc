#include "store/names.h"

#include <cstdio>

#include "base/text.h"

namespace dcs::store {
namespace {

constexpr std::size_t digits = 20;
constexpr std::size_t component_bytes = 255;

std::string number(std::uint64_t turn) {
    char text[24];
    std::snprintf(text, sizeof text, "%020llu", static_cast<unsigned long long>(turn));
    return text;
}

bool parse_number(std::string_view text, std::uint64_t &value) {
    return text.size() == digits && read_number(text, value);
}

bool parse_name(std::string_view name, std::string_view tail, std::uint64_t &turn) {
    return name.ends_with(tail) && parse_number(name.substr(0, name.size() - tail.size()), turn);
}

}  // namespace

std::string root_name(std::uint64_t turn) { return "turns/" + number(turn) + ".commit"; }
std::string root_temporary(std::uint64_t turn) { return "turns/" + number(turn) + ".tmp"; }
std::string lost_name(std::uint64_t turn) { return "turns/" + number(turn) + ".lost"; }

std::string big_temporary(std::string_view directory, std::string_view file, std::uint64_t turn) {
    return join(directory, file) + "." + number(turn) + ".tmp";
}

std::string marker_of(std::string_view directory) { return join(directory, damage_marker); }

bool parse_root_name(std::string_view name, std::uint64_t &turn) { return parse_name(name, ".commit", turn); }
bool parse_lost_name(std::string_view name, std::uint64_t &turn) { return parse_name(name, ".lost", turn); }

std::uint64_t turn_of_temporary(std::string_view name) {
    constexpr std::string_view tail = ".tmp";
    std::uint64_t turn = 0;
    if (!name.ends_with(tail) || name.size() < digits + tail.size()) return 0;
    return parse_number(name.substr(name.size() - tail.size() - digits, digits), turn) ? turn : 0;
}

bool is_temporary(std::string_view name) { return name.ends_with(".tmp") || name.ends_with(".new"); }

bool valid_component(std::string_view name) {
    return !name.empty() && name != "." && name != ".." && name.size() <= component_bytes &&
           name.find('/') == name.npos && name.find('\0') == name.npos;
}

bool valid_node_name(std::string_view name) {
    return valid_component(name) && !is_temporary(name) && name != damage_marker;
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
    return top != turns_directory && top != format_file && top != format_temporary && top != reserve_file &&
           top != lock_file && top != library_directory;
}

std::string join(std::string_view directory, std::string_view name) {
    std::string path;
    path.reserve(directory.size() + 1 + name.size());
    if (!directory.empty()) path.append(directory).append("/");
    return path.append(name);
}

std::string parent_of(std::string_view path) {
    const std::size_t slash = path.rfind('/');
    return slash == path.npos ? std::string() : std::string(path.substr(0, slash));
}

bool is_below(std::string_view path, std::string_view directory) {
    if (path.substr(0, directory.size()) != directory) return false;
    return path.size() == directory.size() || path[directory.size()] == '/';
}

}  // namespace dcs::store
