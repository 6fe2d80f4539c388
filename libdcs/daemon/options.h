#pragma once
// A daemon's options (base/option_table.h), which go into the fields of a struct: from its configuration file and from
// its command line, which goes before it. daemon/configuration.h is what main() begins with.
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/option_table.h"
#include "base/instant.h"

namespace dcs {

enum class Where {
    anywhere,  // command line and configuration file; to change it takes a restart
    reload,    // the same, and the daemon takes a new value when it reads its configuration again
    line,      // command line only
};

// Kind of an option = type of the field it goes into. bool: no value on the command line, true or false in a file. int:
// 0 and up. Duration: seconds, "2.5", or "5m". vector: one entry each time the option is given, an array in a file;
// otherwise the last one counts. An int may also take seconds or megabytes.
struct Option {
    const char *name;  // without the dashes
    std::variant<bool *, int *, std::string *, Duration *, std::vector<std::string> *> into;
    const char *value;  // shown by --help: "DIR"
    const char *help;
    bool required = false;
    Where where = Where::anywhere;
    std::optional<Takes> takes = {};  // what the value has to be, where its kind does not say it
    bool list = false;                // words with commas between them: an array in a file
};

struct CommandLine {
    const char *program;
    const char *purpose;  // one sentence
    std::vector<Option> options;
    // What is wrong with the values together; the fields are filled, and what is required was given. An error names
    // options as "--name".
    std::function<Status()> check = {};
    // For --check-config: the errors of the files that the options name; `check` has found nothing.
    std::function<std::vector<std::string>()> check_files = {};
    // The same where these have no error: what counts, and is probably not meant.
    std::function<std::vector<std::string>()> warn_of_files = {};
};

// What a configuration file says of one option, already found to be what the option takes.
struct FileValue {
    std::size_t option = 0;  // its place in CommandLine::options
    std::vector<std::string> values;
    std::string origin;
};

struct ParsedOptions {
    bool proceed = false;           // else: print and exit
    int exit_code = 0;              // 0 after --help and --version, 2 after an error
    std::string out;                // for standard output
    std::string error;              // for standard error
    std::string wrong;              // the error alone
    bool complete = true;           // no option that is required is missing; without it nothing was checked together
    std::vector<Setting> settings;  // in the order of CommandLine::options
};

// Words of the command line that are about the configuration file; known to every daemon, as --help is.
inline constexpr const char *no_config = "none", *usual_config = "usual";
struct ConfigWords {
    std::optional<std::string> file;  // --config; no_config where --dir is given and --config is not; nothing: usual
    bool check = false;               // --check-config
    bool asks = false;                // --help, --version: nothing is read
};

// The options as a table, those that every daemon has behind the program's own.
OptionTable table_of(const CommandLine &line);
// What --config and --check-config say; errors are left for parse_options().
ConfigWords config_words(const CommandLine &line, const std::vector<std::string> &arguments);

// Fills the fields. Fields of options that were not given keep their values. --help and --version are known to every
// program; arguments that are no options are an error, and so is, unless `may_lack`, a missing option that is required.
ParsedOptions parse_options(const CommandLine &line, const std::vector<std::string> &arguments,
                            const std::vector<FileValue> &from_files = {}, bool may_lack = false);

// "dcs_x: WHY\nTry 'dcs_x --help'.\n", exit code 2; more than one line is one error each.
ParsedOptions usage_error(const CommandLine &line, const std::vector<std::string> &why);

}  // namespace dcs
