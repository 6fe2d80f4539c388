#include "caller_environment.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <iterator>
#include <map>
#include <sys/stat.h>
#include <unistd.h>

#include "commands/dcs/frame/table.h"
#include "base/environment.h"
#include "base/files.h"
#include "base/limits.h"
#include "base/text.h"
#include "commands/dcs/frame/pool_directory.h"
#include "commands/dcs/query/scheduler.h"
#include "placeholders.h"

namespace dcs::commands {
namespace {

enum class Found { yes, no, not_executable };

Found look(const std::string &path) {
    struct stat st = {};
    if (::stat(path.c_str(), &st) != 0) return errno == EACCES ? Found::not_executable : Found::no;
    if (!S_ISREG(st.st_mode) || ::access(path.c_str(), X_OK) != 0) return Found::not_executable;
    return Found::yes;
}

Status not_executable(const std::string &path) {
    struct stat st = {};
    const bool directory = ::stat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode);
    return fail(Code::refused, path + (directory ? " is a directory" : " is not an executable file that you may run"));
}

// Names that belong to DCS and must not reach a grain.
bool is_ours(std::string_view name) {
    static const auto names = dcs::words_of(
        "DCS_AUTH_FD DCS_PATIENCE_S DCS_GRAIN_DIR DCS_GRAIN_SEQUENCE DCS_UMASK DCS_REPLAY_OF DCS_RESUME_FAILED "
        "DCS_GOES_ON");
    return std::ranges::find(names, name) != names.end();
}

template <class Keep> std::map<std::string, std::string> pick(char **environment, const std::string &pool, Keep keep) {
    std::map<std::string, std::string> kept;
    for (char **entry = environment; entry != nullptr && *entry != nullptr; ++entry) {
        const std::string_view text = *entry;
        const std::size_t equals = text.find('=');
        if (equals == std::string_view::npos || equals == 0) continue;
        const std::string_view name = text.substr(0, equals);
        if (!is_ours(name) && keep(name)) kept.emplace(name, text.substr(equals + 1));
    }
    if (!pool.empty()) kept["DCS_DIR"] = pool;
    return kept;
}

std::vector<std::string> as_list(const std::map<std::string, std::string> &variables) {
    std::vector<std::string> list;
    for (const auto &[name, value] : variables) list.push_back(name + "=" + value);
    return list;
}

// What a shell would have taken for something else than a program.
std::string in_other_words(const std::string &name, const std::string &directory) {
    constexpr std::string_view of_shells = " . alias cd eval export for if set source test ulimit umask unset while ";
    if (of_shells.find(" " + name + " ") != of_shells.npos) return ": it is a word of the shell, sh -c '...' takes it";
    if (name.find('=') != name.npos) return ": --env NAME=VALUE sets a variable";
    return look(directory + "/" + name) == Found::no ? "" : "; there is a file ./" + name;
}

}  // namespace

Result<std::string> find_program(const std::string &name, const std::string &search_path,
                                 const std::string &directory) {
    if (name.empty()) return fail(Code::not_found, "the program's name is empty");
    if (name.find('/') != std::string::npos) {
        const std::string path = name[0] == '/' ? name : directory + "/" + name;
        const Found found = look(path);
        if (found == Found::yes) return path;
        if (found == Found::not_executable) return not_executable(path);
        return fail(Code::not_found, "there is no program " + name);
    }
    std::string refused;
    std::string_view rest = search_path;
    while (true) {
        const std::size_t colon = rest.find(':');
        std::string folder(rest.substr(0, colon));
        if (folder.empty() || folder == ".") folder = directory;
        else if (folder[0] != '/') folder = directory + "/" + folder;
        const std::string path = (folder == "/" ? "" : folder) + "/" + name;
        const Found found = look(path);
        if (found == Found::yes) return path;
        if (found == Found::not_executable && refused.empty()) refused = path;
        if (colon == std::string_view::npos) break;
        rest.remove_prefix(colon + 1);
    }
    if (!refused.empty()) return not_executable(refused);
    return fail(Code::not_found, "there is no program " + name + " in PATH" + in_other_words(name, directory));
}

std::string batch_lines_hint(std::string_view script) {
    constexpr std::string_view marks[][2] = {{"#SBATCH ", "an sbatch"}, {"#PBS ", "a qsub"}, {"#$ ", "a qsub"}};
    for (int line = 0; line < 50 && !script.empty(); ++line) {
        const std::string_view text = take_line(script);
        for (const auto &[mark, command] : marks)
            if (text.starts_with(mark))
                return "its lines " + std::string(mark) + "are ignored; DCS has " + std::string(command) +
                       ", which obeys them (BRIDGES.md)";
    }
    return "";
}

std::string batch_lines_of(const std::string &program) {
    const Fd file(::open(program.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    const auto text = read_open(file.get(), program, 1 << 16, true);
    if (!text || !text->starts_with("#!")) return "";
    const std::string hint = batch_lines_hint(*text);
    return hint.empty() ? "" : printable(program.substr(program.rfind('/') + 1)) + ": " + hint;
}

Result<std::string> current_directory() {
    char here[4096];
    if (::getcwd(here, sizeof here) == nullptr || here[0] != '/')
        return fail_errno(Code::not_found, "the current directory", errno);
    return std::string(here);
}

bool is_volatile(std::string_view name) {
    static const auto names = dcs::words_of(
        "_ OLDPWD PWD SHLVL LINES COLUMNS WINDOWID GPG_TTY TMUX TMUX_PANE STY WINDOW INVOCATION_ID JOURNAL_STREAM "
        "XDG_VTNR XDG_SEAT XDG_SEAT_PATH VTE_VERSION DESKTOP_STARTUP_ID XDG_ACTIVATION_TOKEN ITERM_SESSION_ID "
        "WT_SESSION PYTEST_CURRENT_TEST");
    static const auto families = dcs::words_of(
        "SSH_ DBUS_ XDG_SESSION_ TERM_SESSION_ KONSOLE_ GNOME_TERMINAL_ KITTY_ WEZTERM_ ALACRITTY_ VSCODE_");
    return std::find(std::begin(names), std::end(names), name) != std::end(names) ||
           std::any_of(std::begin(families), std::end(families),
                       [&](std::string_view family) { return name.substr(0, family.size()) == family; });
}

std::vector<std::string> whole_environment(char **environment, const std::string &pool) {
    return as_list(pick(environment, pool, [](std::string_view) { return true; }));
}

std::vector<std::string> steady_environment(char **environment, const std::string &pool, const std::string &directory) {
    auto variables = pick(environment, pool, [](std::string_view name) { return !is_volatile(name); });
    variables["PWD"] = directory;
    return as_list(variables);
}

namespace {
// The first of them.
std::string named(std::vector<std::string> names) {
    constexpr std::size_t most_named = 3;
    const std::size_t more = names.size() > most_named ? names.size() - most_named : 0;
    names.resize(names.size() - more);
    return joined(names) + (more > 0 ? " and " + std::to_string(more) + " more" : "");
}

std::string name_of(const std::string &entry) { return entry.substr(0, entry.find('=')); }
}  // namespace

std::string changed_values(const std::vector<std::string> &before, const std::vector<std::string> &now) {
    std::vector<std::string> names;
    for (const std::string &entry : now) {
        const std::string name = name_of(entry);
        const auto was = std::ranges::find_if(before, [&](const std::string &one) { return name_of(one) == name; });
        if (!is_of_the_login(name) && was != before.end() && *was != entry) names.push_back(printable(name));
    }
    return named(std::move(names));
}

Likeness likeness(const std::vector<std::string> &before, const std::vector<std::string> &now) {
    if (std::string changed = changed_values(before, now); !changed.empty())
        return {Alike::other_values, std::move(changed)};
    std::vector<std::string> entries;
    std::set_symmetric_difference(before.begin(), before.end(), now.begin(), now.end(), std::back_inserter(entries));
    const bool same = std::ranges::all_of(entries, [](const auto &entry) { return is_of_the_login(name_of(entry)); });
    return {same ? Alike::same : Alike::some_added, ""};
}

std::string variables_that_differ(const std::vector<std::string> &before, const std::vector<std::string> &now) {
    std::vector<std::string> entries, names;
    std::set_symmetric_difference(before.begin(), before.end(), now.begin(), now.end(), std::back_inserter(entries));
    for (const std::string &entry : entries) names.push_back(printable(name_of(entry)));
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return named(std::move(names));
}

void add_umask(std::vector<std::string> &environment) {
    const mode_t mask = ::umask(077);  // there is no other way to ask for it
    ::umask(mask);
    char text[32];
    std::snprintf(text, sizeof text, "DCS_UMASK=%04o", mask & 0777u);
    environment.insert(std::lower_bound(environment.begin(), environment.end(), text), text);
}

OptionTable with_start(OptionTable options) {
    const OptionRow rows[] = {
        {"cwd", 0, "DIR", some_text, "CMD runs in DIR instead of the current directory", "How it starts"},
        {"env", 0, "NAME=VALUE", some_text, "with this variable in its environment", "", Given::many},
        {"dry-run", 0, nullptr, no_value, "print the commands that would run, as a shell takes them, and run nothing"},
        {"detach", 0, nullptr, no_value,
         "submit the work, print the number of its session, and return; `dcs session wait` waits for it,\n"
         "`dcs session cat` prints its outputs"},
        {"label", 0, "TEXT", some_text, "a label for the session, shown by `dcs session ls`"},
        {"nice", 0, "N", whole_number(0, wire::most_nice),
         "let less nice sessions of all users go first (0, the default, to 19)"}};
    options.insert(options.end(), std::begin(rows), std::end(rows));
    return options;
}

Result<std::string> start_directory(const Arguments &arguments) {
    const auto said = arguments.value("cwd");
    return said ? Result<std::string>(absolute_path(*said)) : current_directory();
}

// The hosts of a private pool are this one; those of another may have directories that are not here.
Result<std::string> start_directory(const Call &call) {
    const auto path = start_directory(call.arguments);
    if (!path || !call.arguments.has("cwd") || call.arguments.has("image")) return path;
    const Pool pool(call.directory);
    const auto numbers = pool.numbers();
    if (pool.maker() != Pool::Maker::dcs_up || !numbers || numbers->pilots > 0) return path;
    const Fd opened(::open(path->c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    return opened ? path : fail_errno(Code::not_found, "--cwd " + *path, errno);
}

std::optional<Failure> set_variables(const Arguments &arguments, const std::string &directory,
                                     std::vector<std::string> &environment) {
    std::map<std::string, std::string> all;
    for (const std::string &entry : environment) all[entry.substr(0, entry.find('='))] = entry;
    if (arguments.has("cwd")) all["PWD"] = "PWD=" + directory;
    for (const auto &[option, value] : arguments.options) {
        if (option != "env") continue;
        const std::size_t equals = value.find('=');
        if (equals == std::string::npos || equals == 0)
            return usage_failure("--env " + value + ": a name and a value, as in --env OMP_NUM_THREADS=4");
        all[value.substr(0, equals)] = value;
    }
    environment.clear();
    for (const auto &[name, entry] : all) environment.push_back(entry);
    return std::nullopt;
}

std::optional<Failure> describe_session(const Arguments &arguments) {
    const std::string label = arguments.value("label").value_or("");
    if (label.size() > limits::label_bytes)
        return usage_failure("--label: at most " + std::to_string(limits::label_bytes) + " bytes, these are " +
                             std::to_string(label.size()));
    describe_new_sessions(label, static_cast<std::int32_t>(arguments.number("nice").value_or(0)));
    return std::nullopt;
}

}  // namespace dcs::commands
