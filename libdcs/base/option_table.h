#pragma once
// The options of a command as a table. A row says what an option is called, what it takes and what it does; out of the
// table come the reading of a command line, its errors, --help, what a shell completes, and the manual.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace dcs {

// What a value has to be.
struct Takes {
    enum class Kind { text, whole, seconds, megabytes, classes, word, resources };
    Kind kind = Kind::text;
    double least = 0, most = 0;  // whole, seconds, megabytes; of a text the least length
    const char *words = "";      // word: "server|client|backup"
};
constexpr Takes no_value, any_text, some_text{Takes::Kind::text, 1};   // some_text: not empty
constexpr Takes whole_number(std::int64_t least, std::int64_t most) {  // 0x... too
    return {Takes::Kind::whole, static_cast<double>(least), static_cast<double>(most)};
}
constexpr double most_seconds = 1e9;
constexpr Takes seconds_from(double least, double most = most_seconds) { return {Takes::Kind::seconds, least, most}; }
constexpr Takes megabytes_from(std::int64_t least, std::int64_t most = INT32_MAX) {
    return {Takes::Kind::megabytes, static_cast<double>(least), static_cast<double>(most)};
}
constexpr Takes class_names_or_mask{Takes::Kind::classes};  // such as gpu,0x8; which names there are is the pool's
constexpr Takes resource_amounts{Takes::Kind::resources};   // such as gpu=1,licence=2
constexpr Takes one_of(const char *words) { return {Takes::Kind::word, 0, 0, words}; }

enum class Given { once, many, always };  // of several the last one counts; many: each does; always: it has to be there

struct OptionRow {
    const char *name;   // without the dashes
    char letter;        // 0: none
    const char *value;  // as --help shows it, "DIR"; nullptr: it takes none
    Takes takes;
    const char *help;        // one line, or several
    const char *group = "";  // the heading above this row and those behind it
    Given given = Given::once;
};
using OptionTable = std::vector<OptionRow>;

std::string shown(const OptionRow &row);  // "--name"
// What the value may be, as an error says it: "a whole number, at least 1"; empty: `value` is that.
std::string complaint(const Takes &takes, const std::string &value);
// An error names the option, the value and what it may be.
Status check_value(const OptionRow &row, const std::string &value);

// Reads --name value, --name=value, -n value, -nvalue, letters without a value together, and `--` before words.
struct OptionReader {
    const std::vector<std::string> &line;
    const OptionTable &known;
    std::size_t at = 0;       // the next word of the line
    bool only_words = false;  // behind `--`
    std::size_t letter = 0;   // the next one of the word at `at`; 0: at its front

    // The next option before the next word; nullptr: a word is next, or nothing.
    Result<const OptionRow *> next(std::string &value);

private:
    const OptionRow *by_name(std::string_view name) const;
    Result<const OptionRow *> with_value(const OptionRow &row, std::optional<std::string> joined, std::string &value);
};

// The rows aligned, a line each and more for more text, under their headings; each line ends in a newline.
std::string option_list(const OptionTable &table);
// "Usage: dcs host set [--slots N] ... NAME...", wrapped.
std::string usage_line(const std::string &command, const OptionTable &table, const std::string &words);
// For programs that read the table, as the manual's does: a line "option", name, letter, value, help and heading, with
// tabs between them and newlines as \n. And a line of its own for anything else.
std::string table_for_programs(const OptionTable &table);
std::string line_for_programs(const std::string &key, const std::string &text);

// All parts, empty ones too: one more than there are separators.
std::vector<std::string> split(std::string_view text, char separator);
// Whole text, decimal, or hexadecimal after 0x; within the bounds, else nothing.
std::optional<std::int64_t> number_of(std::string_view text, std::int64_t least, std::int64_t most);
// "10", "1.5", "90s", "5m", "2h", "1d", "5:30" (minutes), "1:30:00" (hours), "1-12:00:00" (days); not negative.
std::optional<double> seconds_of_text(std::string_view text);
// Whole megabytes, which are 2^20 bytes here: "512", "512 MiB", "1.5g"; K to T and KiB to TiB count in 1024, kB to TB
// in 1000, in upper or lower case. What is less than a megabyte more is cut off; what is less than one, but not 0, is
// none. Not negative.
std::optional<std::int64_t> megabytes_of_text(std::string_view text);
// Name of a host class: begins with a letter; letters, digits, '.', '_' and '-'. Not "any", which is the mask 0.
bool is_class_name(std::string_view word);
// Mask of host classes: 32 bits.
std::optional<std::uint32_t> class_of(std::string_view text);
// The candidate that a person who typed `word` most likely meant; empty if none is near.
std::string nearest(std::string_view word, const std::vector<std::string> &candidates);

// What a daemon's options are set to, and by what: the file `configuration` of its directory, which it writes at its
// start and whenever it reads its configuration again. `dcs config show` and `dcs status` read it.
//
// `origin`: by_default, by_line, or "FILE:LINE".
struct Setting {
    std::string name, value, origin;
    bool operator==(const Setting &) const = default;
};
inline constexpr const char *by_default = "default", *by_line = "command line";

struct ConfigRecord {
    std::vector<Setting> settings;       // all options, in the order of --help
    std::vector<Setting> after_restart;  // what the files say of some, which counts after a restart
    std::string refused;                 // why what was read last does not count; empty: it does
    std::vector<std::string> warnings;   // of a check: what counts, and is probably not meant
    bool operator==(const ConfigRecord &) const = default;
};
inline constexpr const char *configuration_name = "configuration";  // in the daemon's directory

// Lines of line_for_programs(): "option" NAME VALUE ORIGIN for each, "restart" alike, "refused" TEXT,
// "warning" TEXT for each, "end".
std::string to_text(const ConfigRecord &record);
// Nothing for a text that is not whole, or none of these.
std::optional<ConfigRecord> config_record_of(std::string_view text);

}  // namespace dcs
