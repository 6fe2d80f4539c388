#pragma once
// The names in a state directory, and the functions on paths that the store needs.
//   format            "dcs backing store 3", twice
//   reserve           space set aside
//   turns/            journal, <20 digits>.commit, <20 digits>.tmp, <20 digits>.lost, applied, applied.tmp
//   anything else     update trees; in them <node>, <node>.new, <node>.<20 digits>.tmp, DAMAGED
#include <cstdint>
#include <string>
#include <string_view>

namespace dcs::store {

inline constexpr int deepest = 64;                      // levels of folders in a state directory
inline constexpr std::uint64_t chunk_bytes = 1u << 20;  // files are read and copied in such pieces
inline constexpr const char *turns_directory = "turns";
inline constexpr const char *format_file = "format";
inline constexpr const char *format_temporary = "format.tmp";
inline constexpr const char *applied_file = "turns/applied";
inline constexpr const char *applied_temporary = "turns/applied.tmp";
inline constexpr const char *journal_file = "turns/journal";
inline constexpr const char *reserve_file = "reserve";
// In the directory of a tree that is set aside: a text about the damage.
inline constexpr const char *damage_marker = "DAMAGED";
inline constexpr const char *lock_file = "lock";             // the scheduler's; the store does not touch it
inline constexpr const char *library_directory = "library";  // contents; the store does not touch it

// Numbers are zero-padded, so that names sort in the order of turns.
std::string root_name(std::uint64_t turn);
std::string root_temporary(std::uint64_t turn);
std::string lost_name(std::uint64_t turn);  // a root that could not be read and was given up
std::string big_temporary(std::string_view directory, std::string_view file, std::uint64_t turn);
std::string marker_of(std::string_view directory);
// The turn of "<20 digits>.commit" or "<20 digits>.lost"; false for any other name.
bool parse_root_name(std::string_view name, std::uint64_t &turn);
bool parse_lost_name(std::string_view name, std::uint64_t &turn);
// The turn in the name of a temporary; 0: none.
std::uint64_t turn_of_temporary(std::string_view name);

// Whether the name ends like a temporary. Node names must not.
bool is_temporary(std::string_view name);
// One component: not empty, not "." or "..", no '/', no zero byte, not too long.
bool valid_component(std::string_view name);
// A component that is neither a temporary nor a marker.
bool valid_node_name(std::string_view name);
// Components joined by single slashes.
bool valid_path(std::string_view path);
// A valid path for a tree, other than the store's own.
bool valid_tree_directory(std::string_view path);

std::string join(std::string_view directory, std::string_view name);
std::string parent_of(std::string_view path);                      // "" of a top-level name
bool is_below(std::string_view path, std::string_view directory);  // or the same

}  // namespace dcs::store
