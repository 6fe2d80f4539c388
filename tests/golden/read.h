#pragma once
// The blocks of release_0_1/*.txt; record_0_1.cc says how they look.
#include <fstream>
#include <string>
#include <vector>

#include "base/text.h"
#include "places.h"
#include "support/catch.h"

namespace dcs::golden {

struct Block {
    std::string what, how;  // "Gexec", "few"
    std::string bytes;
    std::vector<std::string> lines;
};

inline std::vector<Block> blocks_of(const std::string &file) {
    std::ifstream in(std::string(DCS_SOURCE_DIR) + "/tests/golden/release_0_1/" + file);
    REQUIRE(in);
    std::vector<Block> blocks;
    for (std::string line; std::getline(in, line);) {
        Block b;
        const auto space = line.find(' ');
        REQUIRE(space != std::string::npos);
        b.what = line.substr(0, space), b.how = line.substr(space + 1);
        std::getline(in, line);
        const auto bytes = bytes_of_hex(line, line.size() / 2);
        REQUIRE(bytes);
        b.bytes = *bytes;
        while (std::getline(in, line) && !line.empty()) b.lines.push_back(line);
        blocks.push_back(std::move(b));
    }
    return blocks;
}

}  // namespace dcs::golden
