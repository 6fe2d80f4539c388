#include "store/identity.h"

#include "base/bytes.h"

namespace dcs::store {
namespace {

constexpr const char *tree_name = "identity";
constexpr const char *file_name = "store", *copy_name = "copy";
constexpr std::uint8_t identity_version = 1;
constexpr std::size_t record_bytes = 1 + 8 + 8 + 4;

std::string path_of(const char *file) { return std::string(identity_directory) + "/" + file; }

Result<Identity> read_one(Store &store, const std::string &path) {
    const Result<std::string> bytes = store.read(path, 0, record_bytes + 1);
    if (!bytes) return bytes.status().code == Code::not_found ? Result<Identity>(Identity{}) : bytes.status();
    ByteReader r(*bytes);
    const std::uint8_t written = r.u8();
    Identity identity{.name = r.u64(), .epoch = r.u64()};
    const std::uint32_t sum = r.u32();
    const bool whole = r.good() && r.at_end() && sum == crc32c(std::string_view(*bytes).substr(0, record_bytes - 4));
    if (!whole || identity.name == 0) return fail(Code::io_error, path + " is damaged");
    if (written != identity_version)
        return fail(Code::invalid, path + ": written by another version of DCS: use the version that wrote it");
    return identity;
}

}  // namespace

const TreeTemplate &identity_tree() {
    static const TreeTemplate tree{
        tree_name, {{{copy_name, Shape::pair, Action::replace, ""}}}, {file_name, Shape::pair, Action::replace, ""}};
    return tree;
}

TreeUpdate identity_update(const Identity &identity) {
    ByteWriter w;
    w.u8(identity_version);
    w.u64(identity.name);
    w.u64(identity.epoch);
    w.u32(crc32c(w.bytes()));
    return {identity_directory, tree_name, {{copy_name, w.bytes()}, {file_name, w.bytes()}}};
}

Result<Identity> read_identity(Store &store) {
    Result<Identity> first = read_one(store, path_of(file_name)), second = read_one(store, path_of(copy_name));
    if (first.status().code == Code::invalid) return first;
    if (first && second && first->name == second->name && first->epoch == second->epoch) return first;
    const bool good = first && first->name != 0;
    Result<Identity> &found = good ? first : second;
    // If one of the two is missing, the other counts.
    if (found && found->name != 0) {
        found->whole = false;
        return found;
    }
    if (second.status().code == Code::invalid) return second;
    return fail(Code::io_error, path_of(file_name) +
                                    " and its copy beside it are damaged: restore one of them, or "
                                    "promote the backup's copy of the store");
}

}  // namespace dcs::store
