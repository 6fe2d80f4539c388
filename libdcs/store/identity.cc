#include "store/identity.h"

#include "base/bytes.h"
#include "base/checksum.h"

namespace dcs::store {
namespace {

constexpr const char *tree_name = "identity";
constexpr const char *file_name = "store";
constexpr const char *file_path = "identity/store";
constexpr std::uint8_t version = 1;
constexpr std::size_t record_bytes = 1 + 8 + 8 + 4;

}  // namespace

const TreeTemplate &identity_tree() {
    static const TreeTemplate tree{tree_name, {}, {file_name, Shape::pair, Action::replace, ""}};
    return tree;
}

TreeUpdate identity_update(const Identity &identity) {
    ByteWriter w;
    w.u8(version);
    w.u64(identity.name);
    w.u64(identity.epoch);
    w.u32(crc32c(w.bytes()));
    return {identity_directory, tree_name, {{file_name, std::move(w.bytes())}}};
}

Result<Identity> read_identity(Store &store) {
    const Result<std::string> bytes = store.read(file_path, 0, record_bytes + 1);
    if (!bytes) return bytes.status().code == Code::not_found ? Result<Identity>(Identity{}) : bytes.status();
    ByteReader r(*bytes);
    const std::uint8_t written = r.u8();
    Identity identity;
    identity.name = r.u64();
    identity.epoch = r.u64();
    const std::uint32_t sum = r.u32();
    const bool whole = r.good() && r.at_end() && sum == crc32c(std::string_view(*bytes).substr(0, record_bytes - 4));
    if (!whole || identity.name == 0)
        return fail(Code::io_error, std::string(file_path) + " is damaged: restore it, or promote the backup's copy");
    if (written != version) return fail(Code::invalid, std::string(file_path) + ": written by another version of DCS");
    return identity;
}

}  // namespace dcs::store
