#pragma once
// The files of assets/, in the program (assets.cmake).
#include <span>
#include <string_view>

namespace dcs::commands::page {

struct Asset {
    const char *path, *type;
    std::string_view text;
};
std::span<const Asset> assets();

}  // namespace dcs::commands::page
