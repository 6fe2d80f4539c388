#pragma once
// The pure part of `dcs map`: which grains a command line and its inputs mean, and their name.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "commands/dcs/query/list_in_ident.h"
#include "commands/dcs/run/placeholders.h"

namespace dcs::commands {

struct MapPlan {
    std::vector<std::string> command;  // CMD, words before replacement
    std::string directory;
    std::vector<std::string> inputs;    // grain g gets inputs[g - 1]
    bool columns = false;               // each input has columns (placeholders.h)
    bool spread = false;                // a word {} is replaced by a word for each of them
    std::vector<std::string> settings;  // options that change what grains compute: "env" and its value, and so on
    bool append = true;                 // to a command without placeholders

    std::vector<std::string> words(std::int32_t grain) const {
        return words_of(command, inputs[static_cast<std::size_t>(grain - 1)], grain, append, spread);
    }
};

// `text` split at `separator`; what follows the last one counts if it is not empty. A line of a
// text that is split at newlines must not hold a NUL: no argument can.
Result<std::vector<std::string>> split_inputs(std::string_view text, char separator);

// "map-" and 24 hex digits, the same whenever command, directory and inputs are the same. `inputs`: of a list that ends
// after so many.
std::string ident_of(const MapPlan &plan, std::size_t inputs = SIZE_MAX);
// The ident of one run's session: `base` (an ident_of), what its files were (map_files.h), and what tells it from other
// runs. At most 64 characters.
std::string ident_of_run(const std::string &base, const std::string &fingerprint, const std::string &suffix);
// Does a session with this ident hold the grains of `base`?
bool is_run_of(const std::string &ident, const std::string &base);
// The same, whatever the settings are.
bool has_words_of(const std::string &ident, const std::string &base);
// What its files were when it began; empty where the ident does not say.
std::string fingerprint_in(const std::string &ident, const std::string &base);

// 0 none failed, 1-100 so many, 101 more (as GNU parallel).
int exit_for_failed(std::int64_t failed);

}  // namespace dcs::commands
