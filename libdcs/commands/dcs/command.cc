// The dcs command: finds the verb, parses its line, prints help. Help and version never ask a
// daemon.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>

#include "ask.h"
#include "call.h"
#include "client/pool_path.h"
#include "client_host.h"
#include "completion.h"
#include "pool.h"

namespace dcs::commands {
namespace {

constexpr int usual_patience_s = 2;  // a scheduler that is just being restarted
constexpr const char *format_option = "--format";  // where --output is something else
const std::vector<Option> common = {
    {"--output", 'o', true}, {"--dir", 0, true}, {"--help", 'h', false}, {"--version", 0, false}};

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

std::string full_name(const Verb &verb) {
    return verb.noun[0] != '\0' ? std::string(verb.noun) + " " + verb.name : verb.name;
}

void print_overview(FILE *to, const std::string &noun) {
    if (noun.empty())
        std::fputs(
            "dcs: work on many hosts, in grains that survive crashes.\n\n"
            "Examples:\n"
            "  dcs up --local 2                  start a private pool on this host\n"
            "  seq 100 | dcs map -- factor {}    a grain for each line, outputs in order\n"
            "  dcs run -- sort -n <in >out       one command as a grain\n"
            "  dcs status                        what runs\n"
            "  dcs down                          stop the pool\n\n",
            to);
    std::fprintf(to, "Usage: dcs %s[-o table|json|name] [--dir DIR] ...\n\n",
                 noun.empty() ? "VERB " : (noun + " VERB ").c_str());
    for (const Verb *verb : all_verbs())
        if (noun.empty() || noun == verb->noun)
            std::fprintf(to, "  %-15s %s\n", full_name(*verb).c_str(), verb->summary);
    std::fputs(
        "\n`dcs VERB --help` says more. --dir DIR or DCS_DIR names the pool's directory; else it is your own pool in\n"
        "~/.local/state/dcs if you have one, else this host's (/etc/dcs/pool.conf). Results go to standard output,\n"
        "everything else to standard error.\n"
        "Exit codes: 0 ok, 1 error, 2 usage, 3 not found, 4 refused, 5 scheduler unreachable, 6 "
        "timeout,\n"
        "10 a waited-for grain failed.\n",
        to);
}

int print_help(const std::string &noun, const Verb *verb) {
    if (verb != nullptr) std::fputs(verb->help, stdout);
    else print_overview(stdout, noun);
    return std::fflush(stdout) == 0 ? exits::ok : exits::error;
}

Failure unknown_word(const std::string &noun, const std::string &word) {
    const std::vector<std::string> known = noun.empty() ? first_words() : verbs_of(noun);
    const std::string meant = nearest(word, known), before = noun.empty() ? "" : noun + " ";
    std::string list;
    for (const std::string &name : known) list += (list.empty() ? "" : ", ") + name;
    return usage_failure(
        "there is no command `dcs " + before + word + "`",
        meant.empty() ? "there are: " + list : "did you mean `dcs " + before + meant + "`?");
}

bool format_of(const std::string &text, Format &format) {
    if (text == "table") format = Format::table;
    else if (text == "json") format = Format::json;
    else if (text == "name") format = Format::name;
    else return false;
    return true;
}

// Takes the options that every verb has; an error is reported in the format that was asked for.
Status take_common(const Arguments &arguments, bool own_output, Call &call) {
    for (const auto &[name, value] : arguments.options) {
        if (name == (own_output ? format_option : "--output") && !format_of(value, call.format))
            return fail(Code::invalid, "-o " + value + ": table, json or name");
        if (name == "--dir" && value.empty()) return fail(Code::invalid, "--dir needs a directory");
        if (name == "--dir") call.directory = absolute_path(value);
    }
    return Status::ok();
}

bool is_one_of(const Verb &verb, std::initializer_list<const Verb *> verbs) {
    return std::find(verbs.begin(), verbs.end(), &verb) != verbs.end();
}

// Where the pool of this call is, if it names none by --dir. A pool of another host is reached by dcs_begin, which
// executes this program again: then this does not return.
Status find_directory(const Verb &verb, const std::vector<std::string> &whole, Call &call) {
    using Kind = client::PoolPlace::Kind;
    // These make and end the user's own pool, or have to do with none.
    const bool own = is_one_of(verb, {&up_verb, &down_verb, &host_join_verb, &completion_verb});
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
    if (!directory) return is_one_of(verb, {&host_join_verb, &completion_verb}) ? Status::ok() : directory.status();
    call.directory = absolute_path(*directory);
    return Status::ok();
}

Failure directory_failure(const Status &why) {
    Failure failure = failure_of("", why);
    if (failure.exit == exits::usage) failure.hint = "DCS_DIR, or --dir DIR, is the pool's directory";
    return failure;
}

// `whole` is what this program was called with.
int carry_out(const Verb &verb, const std::vector<std::string> &line, Call &call,
              const std::vector<std::string> &whole) {
    call.failure_exit = verb.failure_exit;
    std::vector<Option> known = common;
    const bool own_output = std::any_of(verb.options.begin(), verb.options.end(),
                                        [](const Option &o) { return std::string_view(o.name) == "--output"; });
    if (own_output) known[0].name = format_option;  // of `dcs run` it is a file; -o stays what it is everywhere
    known.insert(known.end(), verb.options.begin(), verb.options.end());
    Status parsed = parse_arguments(line, known, verb.command_follows, call.arguments);
    if (call.arguments.has("--help")) return print_help(verb.noun, &verb);
    if (Status taken = take_common(call.arguments, own_output, call); parsed && !taken) parsed = taken;
    if (!parsed)
        return call.fail(
            usage_failure("dcs " + full_name(verb) + ": " + parsed.text,
                          "`dcs " + full_name(verb) + " --help` shows how it is used"));
    if (call.directory.empty())
        if (Status s = find_directory(verb, whole, call); !s) return call.fail(directory_failure(s));
    if (!call.directory.empty()) ::setenv("DCS_DIR", call.directory.c_str(), 1);
    set_patience(usual_patience_s);
    const int exit = verb.run(call);
    if (std::fflush(stdout) != 0 && exit == exits::ok)
        return call.fail(failure_of("", fail_errno(Code::io_error, "standard output", errno)));
    return exit;
}

}  // namespace

const std::vector<const Verb *> &all_verbs() {
    static const std::vector<const Verb *> verbs = {
        &up_verb,             &down_verb,          &status_verb,        &top_verb,  &run_verb,
        &map_verb,            &session_ls_verb,    &session_show_verb,  &session_watch_verb,
        &session_wait_verb,   &session_close_verb, &session_clean_verb, &session_log_verb,    &session_export_verb,
        &session_import_verb, &grain_ls_verb,      &grain_show_verb,    &grain_cat_verb,
        &grain_tail_verb,     &grain_explain_verb,  &grain_restart_verb, &grain_kill_verb,    &host_ls_verb,
        &host_show_verb,      &host_drain_verb,    &host_undrain_verb,  &host_set_verb,
        &host_join_verb,      &host_approve_verb,  &host_rm_verb,
        &backup_status_verb,  &backup_promote_verb, &backup_detach_verb,
        &token_create_verb,   &token_ls_verb,       &token_revoke_verb,
        &replay_check_verb,   &doctor_verb,        &reload_verb,        &log_level_verb,
        &completion_verb,     &trace_verb};
    return verbs;
}

int run_command(const std::vector<std::string> &line) {
    if (!line.empty() && line[0] == "__complete") return print_completions({line.begin() + 1, line.end()});
    Call call;
    Arguments front;  // options before the verb
    const Status parsed = parse_arguments(line, common, true, front);
    const Status taken = take_common(front, false, call);
    if (!parsed || !taken)
        return call.fail(
            usage_failure(parsed ? taken.text : parsed.text, "`dcs --help` lists the commands"));
    if (front.has("--version")) {
        std::printf("dcs %s\n", DCS_VERSION);
        return exits::ok;
    }
    std::vector<std::string> words = front.words;
    const bool help = front.has("--help") || (!words.empty() && words[0] == "help");
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
        if (words.size() > 1 && (words[1] == "--help" || words[1] == "-h"))
            return print_help(noun, nullptr);
        if (words.size() == 1) {
            print_overview(stderr, noun);
            return exits::usage;
        }
        used = 2;
    }
    const Verb *verb = find_verb(noun, words[used - 1]);
    if (verb == nullptr) {
        const bool json =
            std::find(words.begin(), words.end(), "json") != words.end();  // -o json behind it
        if (json) call.format = Format::json;
        return call.fail(unknown_word(noun, words[used - 1]));
    }
    if (help) return print_help(noun, verb);
    return carry_out(*verb, {words.begin() + static_cast<long>(used), words.end()}, call, line);
}

}  // namespace dcs::commands
