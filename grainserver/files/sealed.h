#pragma once
// The common format of the binary record files of a grain server.
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"

namespace dcs::files {

// kind (4 bytes), CRC-32C of the rest, fields
std::string seal(const char *kind, const std::string &fields);
Result<std::string_view> unseal(const char *kind, std::string_view bytes);
void put_list(ByteWriter &w, const std::vector<std::string> &items);
std::vector<std::string> get_list(ByteReader &r);

}  // namespace dcs::files
