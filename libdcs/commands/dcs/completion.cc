// dcs completion: what a shell needs to complete dcs lines. The scripts are few lines; what can be at the cursor
// is said by `dcs __complete WORD...`, whose last word is the one being typed.
#include <csignal>
#include <cstdio>
#include <set>
#include <sstream>
#include <sys/time.h>

#include "commands/dcs/query/scheduler.h"
#include "verbs.h"
#include "commands/dcs/frame/pool_directory.h"

namespace dcs::commands {
namespace {

constexpr long question_ms = 300;  // a prompt must not wait longer for a scheduler

constexpr const char *bash_script = R"sh(# bash completion of dcs: source <(dcs completion bash)
_dcs() {
    mapfile -t COMPREPLY < <(dcs __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o bashdefault -o default -F _dcs dcs
)sh";
constexpr const char *zsh_script = R"sh(#compdef dcs
# zsh completion of dcs: dcs completion zsh >~/.zfunc/_dcs, or source <(dcs completion zsh)
_dcs() {
    local -a found
    found=(${(f)"$(dcs __complete "${(@)words[2,CURRENT]}" 2>/dev/null)"})
    if (( $#found )); then compadd -- $found; else _files; fi
}
if [ "$funcstack[1]" = _dcs ]; then _dcs "$@"; else compdef _dcs dcs; fi
)sh";
constexpr const char *fish_script = R"sh(# fish completion of dcs: dcs completion fish | source
complete -c dcs -a '(dcs __complete (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'
)sh";

struct Shell {
    const char *name, *script;
};
constexpr Shell shells[] = {{"bash", bash_script}, {"zsh", zsh_script}, {"fish", fish_script}};

// What is being completed, and what could be there.
struct Line {
    std::vector<std::string> before;
    std::string begun;
    std::set<std::string> found;
    void add(const std::string &word) {
        if (word.compare(0, begun.size(), begun) == 0) found.insert(word);
    }
    // Before a scheduler is asked, who may not answer in time.
    void say() {
        for (const std::string &word : found) std::printf("%s\n", word.c_str());
        std::fflush(stdout);
        found.clear();
    }
};

const Verb *verb_of(const std::vector<std::string> &words, std::string &noun, std::size_t &used) {
    for (const Verb *verb : all_verbs()) {
        if (words.empty()) return nullptr;
        const bool alone = verb->noun[0] == '\0';
        if (words[0] == (alone ? verb->name : verb->noun)) noun = verb->noun;
        if (alone && words[0] == verb->name) return used = 1, verb;
        if (!alone && words.size() > 1 && words[0] == verb->noun && words[1] == verb->name) return used = 2, verb;
    }
    return nullptr;
}

void add_sessions(Line &line, bool grains) {
    line.say();
    Info info;
    if (!info.ask(wire::QueryType::sessions)) return;
    for (const wire::SessionRow &row : info.sessions) {
        const bool own = own_user() == row.user;
        const std::string name = own ? std::to_string(row.session) : row.user + ("/" + std::to_string(row.session));
        line.add(grains ? name + ":" : name);
    }
}

void add_hosts(Line &line) {
    Info info;
    if (!info.ask(wire::QueryType::hosts)) return;
    for (const wire::HostRow &row : info.hosts) line.add(row.name);
}

// Behind the last comma.
void add_classes(Line &line) {
    Info info;
    if (!info.ask(wire::QueryType::system)) return;
    const std::string before = line.begun.substr(0, line.begun.rfind(',') + 1);
    for (const wire::ClassRow &row : info.system.classes) line.add(before + row.name);
}

// Words that name something in the pool.
void add_named(Line &line, const Verb &verb) {
    const std::string noun = verb.noun, name = verb.name;
    if (noun == "host" && name != "join") return add_hosts(line);
    if (name == "ssh") {
        line.add("any");
        add_classes(line);
    }
    if (name == "log-level" || name == "ssh") return add_hosts(line);
    const bool sessions = (noun == "session" && name != "import") || name == "replay-check" || name == "trace";
    if (!sessions && noun != "grain") return;
    line.add("last");
    if (noun == "session") line.add("all"), line.add("done");
    add_sessions(line, noun == "grain");
}

void complete_verb_line(Line &line, const Verb &verb, std::size_t used) {
    const std::string last = line.before.size() > used ? line.before.back() : "";
    for (const OptionRow &row : known_options(verb)) {
        if (line.begun[0] == '-') {
            line.add(shown(row));
            if (row.letter != 0) line.add(std::string("-") + row.letter);
        }
        if (row.value == nullptr || (last != shown(row) && last != std::string("-") + row.letter)) continue;
        line.found.clear();
        std::istringstream values(row.takes.words);  // none: files, numbers
        for (std::string value; std::getline(values, value, '|');) line.add(value);
        if (row.takes.kind == Takes::Kind::classes) add_classes(line);
        return;
    }
    if (line.begun[0] == '-' || (verb.command_follows && line.before.size() > used && last[0] != '-')) return;
    if (std::string(verb.name) == "completion")
        for (const Shell &shell : shells) line.add(shell.name);
    add_named(line, verb);
}

void complete(Line &line) {
    std::string noun;
    std::size_t used = 0;
    if (const Verb *verb = verb_of(line.before, noun, used)) return complete_verb_line(line, *verb, used);
    if (line.before.size() > (noun.empty() ? 0u : 1u)) return;
    for (const Verb *verb : all_verbs()) {
        if (!noun.empty() && noun == verb->noun) line.add(verb->name);
        if (noun.empty()) line.add(verb->noun[0] != '\0' ? verb->noun : verb->name);
    }
    if (noun.empty())
        for (const char *word : {"help", "--help", "--version"})
            if (word[0] != '-' || !line.begun.empty()) line.add(word);
}

int completion(const Call &call) {
    const auto &words = call.arguments.words;
    for (const Shell &shell : shells)
        if (words.size() == 1 && words[0] == shell.name) return std::fputs(shell.script, stdout) < 0;
    const std::string wrong = words.empty() ? "SHELL is missing" : "there is none for " + words[0];
    return call.fail(usage_failure("dcs completion: " + wrong, "dcs completion bash, zsh or fish"));
}

}  // namespace

int print_completions(const std::vector<std::string> &words) {
    Line line;
    if (!words.empty()) {
        line.before.assign(words.begin(), words.end() - 1);
        line.begun = words.back();
    }
    // A scheduler that does not answer in time ends us: there is nothing more to offer then.
    const itimerval limit = {{0, 0}, {0, question_ms * 1000}};
    ::signal(SIGALRM, SIG_DFL);
    ::setitimer(ITIMER_REAL, &limit, nullptr);
    set_patience(0);
    complete(line);
    line.say();
    return exits::ok;
}

extern const Verb completion_verb = {
    .noun = "",
    .name = "completion",
    .words = "bash|zsh|fish",
    .summary = "print a shell's completion script",
    .about = R"(Prints a script with which a shell completes verbs, options, and the names of sessions, grains
and hosts.

Examples:
  source <(dcs completion bash)                       in ~/.bashrc
  dcs completion zsh >~/.zfunc/_dcs                   a directory of $fpath
  dcs completion fish >~/.config/fish/completions/dcs.fish
)",
    .run = completion,
    .formats = false};

}  // namespace dcs::commands
