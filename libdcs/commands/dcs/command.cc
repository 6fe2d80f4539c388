// The dcs command: finds the verb, parses its line, prints help. Help and version never ask a
// daemon.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>

#include "base/text.h"
#include "base/version.h"
#include "client/pool.h"
#include "client/pool_path.h"
#include "client/remote.h"
#include "commands/dcs/frame/table.h"
#include "commands/dcs/frame/pool_directory.h"
#include "commands/dcs/frame/start_hint.h"
#include "commands/dcs/host/client_host.h"
#include "commands/dcs/query/copy_state.h"
#include "commands/dcs/query/scheduler.h"
#include "verbs.h"

namespace dcs::commands {
namespace {

constexpr int usual_patience_s = 2;  // a scheduler that is just being restarted
std::vector<std::string> first_words() {
    std::vector<std::string> words = {"help"};
    for (const Verb *verb : all_verbs()) {
        const std::string word = verb->noun[0] != '\0' ? verb->noun : verb->name;
        if (std::find(words.begin(), words.end(), word) == words.end()) words.push_back(word);
    }
    return words;
}

std::vector<std::string> verbs_of(const std::string &noun) {
    std::vector<std::string> names;
    for (const Verb *verb : all_verbs())
        if (noun == verb->noun) names.push_back(verb->name);
    return names;
}

const Verb *find_verb(const std::string &noun, const std::string &name) {
    for (const Verb *verb : all_verbs())
        if (noun == verb->noun && name == verb->name) return verb;
    return nullptr;
}

constexpr char overview_about[] =
    R"(dcs: work on many hosts, in grains that survive crashes.

Examples:
  dcs up                            start a private pool on this host
  seq 100 | dcs map -- factor {}    a grain for each line, outputs in order
  dcs run -- sort -n <in >out       one command as a grain
  dcs status                        what runs
  dcs down                          stop the pool
)";
constexpr char overview_notes[] =
    R"(`dcs VERB --help` says more. --dir DIR or DCS_DIR names the pool's directory; else it is your own pool in
~/.local/state/dcs if you have one, else this host's (/etc/dcs/pool.conf). Results go to standard output,
everything else to standard error. -o table is for people, -o json for programs, -o name prints the names alone,
one a line, as other commands take them. On a terminal states have colours: --color auto|always|never, NO_COLOR.
`dcs completion bash`, `zsh` and `fish` print what a shell needs to complete dcs lines; `man dcs` is the manual.

A session is named NUM, USER/NUM or last, which is your session that was opened last; a grain SES:G, as in last:1.

Exit codes: 0 ok, 1 error, 2 usage, 3 not found, 4 refused, 5 scheduler unreachable, 6 timeout,
10 a waited-for grain failed. `dcs run`: its command's own, 128+N for signal N, 125 to 127 as in a shell if it could
not run. `dcs map`: 0, 1 to 100 for so many failures, 101 for more; 255 if DCS itself failed.
)";

// What the verbs of a noun are about.
constexpr struct {
    const char *noun, *about;
} groups[] = {
    {"session",
     R"(A session has the grains that one command or control program submitted, and their results. It
is active until its program or `dcs session close` ends it, and stays until `dcs session clean`. It is named NUM,
USER/NUM or last, which is your session that was opened last; `all` are all of them.

Examples:
  dcs session ls
  dcs session wait last
  dcs session clean --older 30d
)"},
    {"grain",
     R"(A grain is one run of a program in a session; if its host is lost, it runs again on another one. It is named
SES:G, several SES:1-20, SES:1,5-7 or SES:all. SES is NUM, USER/NUM or last, which is your session that was opened
last.

Examples:
  dcs grain ls last --state failed
  dcs grain cat 7:12
  dcs grain explain 7:13
)"},
    {"host", R"(The hosts that run the pool's grains: by the host table, or joined. Who runs the pool may change them.

Examples:
  dcs host ls
  dcs host drain node7
)"},
    {"backup",
     R"(The passive backup of the scheduler, and its copy of the store, from which a scheduler can be started elsewhere.

Example:
  dcs backup status
)"},
    {"pilot", R"(Pilots are grain servers that run as jobs of a batch system, while grains of your pool wait.

Examples:
  dcs pilot slurm --time 4h
  dcs pilot ls
)"},
    {"token", R"(A token is a code with which one host joins the pool (`dcs host join`). Who runs the pool creates it.

Example:
  dcs token create --host node7
)"},
    {"config", R"(The configuration files of the daemons of this host: whether they are correct, and what is in effect.

Example:
  dcs config check
)"},
};

const char *about_of(const std::string &noun) {
    for (const auto &group : groups)
        if (noun == group.noun) return group.about;
    return overview_about;
}

std::string overview_usage(const std::string &noun) {
    return "Usage: dcs " + (noun.empty() ? "" : noun + " ") + "VERB [-o table|json|name] [--dir DIR] ...\n";
}

std::string verb_list(const std::string &noun) {
    std::string list;
    for (const Verb *verb : all_verbs()) {
        std::string name = full_name(*verb);
        name.resize(std::max<std::size_t>(name.size(), 15), ' ');
        if (noun.empty() || noun == verb->noun) list += "  " + name + " " + verb->summary + "\n";
    }
    return list;
}

void print_overview(FILE *to, const std::string &noun) {
    std::fprintf(to, "%s\n%s\n%s\n", about_of(noun), overview_usage(noun).c_str(), verb_list(noun).c_str());
    if (noun.empty()) std::fputs(overview_notes, to);
    else
        std::fprintf(
            to, "`dcs %s VERB --help` says more of each; `dcs --help` has what all commands share, and exit codes.\n",
            noun.c_str());
}

// All tables, for docs/man/make_pages.py.
int print_tables() {
    std::string text = line_for_programs("command", "dcs") + line_for_programs("about", overview_about) +
                       line_for_programs("summary", "work on many hosts, in grains that survive crashes") +
                       line_for_programs("usage", overview_usage("")) +
                       line_for_programs("notes", verb_list("") + "\n" + overview_notes);
    for (const Verb *verb : all_verbs())
        text += line_for_programs("command", "dcs " + full_name(*verb)) + line_for_programs("summary", verb->summary) +
                line_for_programs("about", verb->about) + line_for_programs("usage", usage_of(*verb)) +
                table_for_programs(verb->options) + line_for_programs("notes", verb->notes);
    return std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0 ? exits::ok : exits::error;
}

int print_help(const std::string &noun, const Verb *verb) {
    if (verb != nullptr) std::fputs(help_of(*verb).c_str(), stdout);
    else print_overview(stdout, noun);
    return std::fflush(stdout) == 0 ? exits::ok : exits::error;
}

Failure unknown_word(const std::string &noun, const std::string &word) {
    const std::vector<std::string> known = noun.empty() ? first_words() : verbs_of(noun);
    const std::string meant = nearest(word, known), before = noun.empty() ? "" : noun + " ";
    if (const char *hint = habit_of_command(noun, word))
        return usage_failure("there is no command `dcs " + before + word + "`", hint);
    std::vector<std::string> of_nouns;  // `dcs drain`: which noun was left out?
    for (const Verb *verb : all_verbs())
        if (noun.empty() && word == verb->name) of_nouns.push_back("`dcs " + full_name(*verb) + "`");
    if (!of_nouns.empty())
        return usage_failure("there is no command `dcs " + word + "`", "there is " + some_of(std::move(of_nouns)));
    return usage_failure("there is no command `dcs " + before + word + "`",
                         meant.empty() ? "commands: " + joined(known) : "did you mean `dcs " + before + meant + "`?");
}

// Takes the options that every verb has.
void take_common(const Arguments &arguments, Call &call, const char *format_option = "output") {
    const std::string format = arguments.value(format_option).value_or("");
    if (format == "json") call.format = Format::json;
    if (format == "name") call.format = Format::name;
    if (const auto when = arguments.value("color")) set_colour(*when);
    if (const auto directory = arguments.value("dir")) call.directory = absolute_path(*directory);
}

bool is_one_of(const Verb &verb, std::initializer_list<const Verb *> verbs) {
    return std::find(verbs.begin(), verbs.end(), &verb) != verbs.end();
}

// Where the pool of this call is, if it names none by --dir. A pool of another host is reached by dcs_begin, which
// executes this program again: then this does not return.
Status find_directory(const Verb &verb, const std::vector<std::string> &whole, Call &call) {
    using Kind = client::PoolPlace::Kind;
    if (&verb == &pilot_serve_verb) return Status::ok();  // on a node of a cluster, which has no pool
    // These make and end the user's own pool, or have to do with none.
    const bool own = is_one_of(verb, {&up_verb, &down_verb, &host_join_verb, &host_renew_verb, &completion_verb});
    const bool named = std::getenv("DCS_DIR") != nullptr && *std::getenv("DCS_DIR") != '\0';
    auto directory = client::own_pool_directory();
    if (!own || named) {
        auto place = client::find_pool();
        if (!place) return place.status();
        const bool begun = std::getenv("DCS_AUTH_FD") != nullptr;
        if (place->kind == Kind::elsewhere && !begun && &verb != &replay_check_verb)
            return run_by_begin(whole, place->scheduler);
        if (place->kind != Kind::elsewhere) directory = place->directory;
    }
    if (!directory)
        return is_one_of(verb, {&host_join_verb, &host_renew_verb, &completion_verb}) ? Status::ok()
                                                                                      : directory.status();
    call.directory = absolute_path(*directory);
    return Status::ok();
}

Failure directory_failure(const Status &why) {
    Failure failure = failure_of("", why);
    if (failure.exit == exits::usage) failure.hint = "DCS_DIR, or --dir DIR, is the pool's directory";
    return failure;
}

// "for example dcs grain show 7:12"
std::string example_of(const Verb &verb) {
    const std::string about = verb.about, mark = "Examples:\n  ";
    const std::size_t from = about.find(mark) + mark.size();
    const std::string line = about.substr(from, about.find('\n', from) - from);
    return "for example " + line.substr(0, line.find("   "));
}

// Whose options the words of the verb are, if it has them as "[-- SBATCH-OPTION...]": "sbatch". Else empty.
std::string options_of(std::string_view usage) {
    const std::string_view start = "[-- ", end = "-OPTION...]";
    if (!usage.starts_with(start) || !usage.ends_with(end)) return "";
    std::string program(usage.substr(start.size(), usage.size() - start.size() - end.size()));
    for (char &c : program)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return program;
}

// Words that are not behind `--`.
bool has_stray_word(const std::vector<std::string> &line, const std::vector<std::string> &words) {
    const auto dashes = std::find(line.begin(), line.end(), "--");
    const auto behind = dashes == line.end() ? 0 : std::distance(dashes, line.end()) - 1;
    return words.size() > static_cast<std::size_t>(behind);
}

std::string dashes_hint(const Verb &verb) {
    const std::string about = verb.about;
    const std::size_t at = about.find(" -- "), from = about.rfind('\n', at) + 1;
    const std::size_t begin = about.find_first_not_of(' ', from);
    return "options of " + options_of(verb.words) +
           " follow `--`: " + about.substr(begin, about.find('\n', begin) - begin);
}

Failure wrong_option(const Verb &verb, const std::string &name, const std::string &text) {
    const std::string usage = "`" + name + " --help` shows how it is used";
    if (text.ends_with(": table, json or name"))
        return usage_failure(name + ": -o" + text.substr(text.find(' ')),
                             "-o is the format; `> FILE` puts standard output into a file" +
                                 std::string(verb.command_follows ? ", for a session `dcs session cat N > FILE`" : ""));
    if (verb.formats && text.starts_with("unknown option --json"))
        return usage_failure(name + ": unknown option --json", "-o json prints JSON");
    if (verb.command_follows) return with_habit(name, text, usage);
    const bool passed_on = !options_of(verb.words).empty() && text.find("did you mean") == std::string::npos;
    return usage_failure(name + ": " + text, passed_on ? dashes_hint(verb) : usage);
}

void tell_of_waiting(const std::string &why, Duration gives_up) {
    const client::RemotePtr elsewhere = this_pool().remote();
    const std::string where = elsewhere ? "at " + elsewhere->address : "of " + this_pool().directory();
    const std::string what = why.empty() ? "the scheduler " + where + " is connected, but does not answer"
                                         : "no answer from the scheduler " + where + ": " + why;
    std::fprintf(stderr, "dcs: waiting: %s; gives up in %lld s\n", printable(what).c_str(),
                 static_cast<long long>(gives_up.ns / 1'000'000'000));
    if (!why.empty() || elsewhere) return;
    const auto copy = waits_for_copy(this_pool().directory());
    if (copy) std::fprintf(stderr, "dcs: %s\n", printable(copy->message).c_str());
    std::fprintf(stderr, "  hint: %s\n", printable(copy ? copy->hint : start_hint(this_pool().directory())).c_str());
}

// `whole` is what this program was called with.
int carry_out(const Verb &verb, const std::vector<std::string> &line, Call &call,
              const std::vector<std::string> &whole) {
    call.failure_exit = verb.failure_exit;
    const std::string name = "dcs " + full_name(verb);
    Status parsed = parse_arguments(line, known_options(verb), verb.command_follows, call.arguments);
    if (call.arguments.has("help")) return print_help(verb.noun, &verb);
    // An error is reported in the format that was asked for.
    take_common(call.arguments, call, has_option(verb.options, "output") ? "format" : "output");
    if (!parsed) return call.fail(wrong_option(verb, name, parsed.text));
    if (!options_of(verb.words).empty() && has_stray_word(line, call.arguments.words))
        return call.fail(usage_failure(name + ": it takes no arguments, but got `" + call.arguments.words[0] + "`",
                                       dashes_hint(verb)));
    if (!verb.command_follows) parsed = check_word_count(verb.words, call.arguments.words);
    if (!parsed) return call.fail(usage_failure(name + ": " + parsed.text, example_of(verb)));
    if (call.directory.empty())
        if (Status s = find_directory(verb, whole, call); !s) return call.fail(directory_failure(s));
    if (!call.directory.empty()) open_this_pool(call.directory);
    this_pool().waits = tell_of_waiting;
    this_pool().may_resume_failed = false;
    set_patience(usual_patience_s);
    const int exit = verb.run(call);
    if (std::fflush(stdout) != 0 && exit == exits::ok)
        return call.fail(failure_of("", fail_errno(Code::io_error, "standard output", errno)));
    return exit;
}

}  // namespace

int run_command(const std::vector<std::string> &line) {
    if (!line.empty() && line[0] == "__complete") return print_completions({line.begin() + 1, line.end()});
    if (!line.empty() && line[0] == "__tables") return print_tables();
    Call call;
    Arguments front;  // options before the verb
    const Status parsed = parse_arguments(line, common_options(), true, front);
    take_common(front, call);
    if (!parsed) return call.fail(usage_failure(parsed.text, "`dcs --help` lists the commands"));
    if (front.has("version")) {
        std::printf("dcs %s\n", DCS_VERSION);
        return exits::ok;
    }
    std::vector<std::string> words = front.words;
    const bool help = front.has("help") || (!words.empty() && words[0] == "help");
    if (!words.empty() && words[0] == "help") words.erase(words.begin());
    if (words.empty() && help) return print_help("", nullptr);
    if (words.empty()) {
        print_overview(stderr, "");
        return exits::usage;
    }
    std::string noun;
    std::size_t used = 1;
    if (!verbs_of(words[0]).empty()) {
        noun = words[0];
        if (words.size() == 1 && help) return print_help(noun, nullptr);
        if (words.size() > 1 && (words[1] == "--help" || words[1] == "-h")) return print_help(noun, nullptr);
        if (words.size() == 1) {
            print_overview(stderr, noun);
            return exits::usage;
        }
        used = 2;
    }
    const Verb *verb = find_verb(noun, words[used - 1]);
    if (verb == nullptr) {
        const bool json = std::find(words.begin(), words.end(), "json") != words.end();  // -o json behind it
        if (json) call.format = Format::json;
        return call.fail(unknown_word(noun, words[used - 1]));
    }
    if (help) return print_help(noun, verb);
    return carry_out(*verb, {words.begin() + static_cast<long>(used), words.end()}, call, line);
}

}  // namespace dcs::commands
