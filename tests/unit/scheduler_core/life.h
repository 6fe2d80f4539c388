#pragma once
// Life cycles as tables: every state x every input. The tables are tests/scenarios/life/*.txt, lines
// of `state | input | what becomes of it`; a pair without a line fails, and so does a line without a
// pair. DCS_REWRITE=1 writes the outcomes into the files.
#include <cstdlib>
#include <fstream>
#include <functional>

#include "places.h"
#include "pool.h"

namespace dcs::core {

template <class Stage> using Doing = std::vector<std::pair<std::string, std::function<Lines(Stage &)>>>;

inline std::string joined(const Lines &lines) {
    std::string text;
    for (std::string line : lines) {
        const auto error = line.find("error ");  // its code is enough here
        if (error != std::string::npos) line.resize(line.find(": ", error));
        text += (text.empty() ? "" : "; ") + line;
    }
    return text.empty() ? "-" : text;
}

using Table = std::map<std::pair<std::string, std::string>, std::string>;

inline Table read_table(const std::string &file) {
    Table table;
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) {
        if (line.empty() || line[0] == '#') continue;
        const auto a = line.find(" | "), b = line.find(" | ", a + 3);
        REQUIRE(b != std::string::npos);
        const auto pair = std::make_pair(line.substr(0, a), line.substr(a + 3, b - a - 3));
        CAPTURE(line);
        REQUIRE(table.try_emplace(pair, line.substr(b + 3)).second);
    }
    return table;
}

// `look` says what the stage has come to.
template <class Stage>
void compare(const std::string &name, const Doing<Stage> &states, const Doing<Stage> &inputs,
             const std::function<std::string(Stage &)> &look) {
    const std::string file = std::string(DCS_SOURCE_DIR) + "/tests/scenarios/life/" + name + ".txt";
    Table table;
    if (!std::getenv("DCS_REWRITE")) table = read_table(file);
    std::string text = "# state | input | what becomes of it: what leaves (- is nothing)\n";
    for (const auto &[state, bring] : states)
        for (const auto &[input, happen] : inputs) {
            CAPTURE(state, input);
            Stage stage;
            bring(stage);
            const Lines lines = happen(stage);
            const std::string outcome = look(stage) + ": " + joined(lines);
            text += state + " | " + input + " | " + outcome + "\n";
            if (std::getenv("DCS_REWRITE")) continue;
            const auto cell = table.find({state, input});
            if (cell == table.end()) {
                FAIL_CHECK("no line says what becomes of this pair; it came to " + outcome);
                continue;
            }
            CHECK(outcome == cell->second);
            table.erase(cell);
        }
    for (const auto &[pair, outcome] : table) FAIL_CHECK("nothing does this: " + pair.first + " | " + pair.second);
    if (std::getenv("DCS_REWRITE")) std::ofstream(file) << text;
}

}  // namespace dcs::core
