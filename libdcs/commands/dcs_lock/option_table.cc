#include "option_table.h"

#include "quantity.h"

namespace dcs::lock_command {
namespace {

using locks::Keep;

constexpr unsigned bit(Verb verb) { return static_cast<unsigned>(verb); }
constexpr unsigned everywhere = ~0U, run = bit(Verb::run), runs = run | bit(Verb::descriptor),
                   names = run | bit(Verb::list) | bit(Verb::check) | bit(Verb::wait) | bit(Verb::breaking) |
                           bit(Verb::log) | bit(Verb::advise),
                   takes = runs | bit(Verb::get), adaptive = run | bit(Verb::get);

template <class T, class U> Status store(Result<T> value, U &where) {
    if (!value) return value.status();
    where = *value;
    return Status::ok();
}

Status set_if_elapsed(Options &o, const std::string &v) {
    o.adaptive = o.if_elapsed_given = true;
    if (v == "auto") {
        o.if_elapsed = locks::automatic;
        return Status::ok();
    }
    return store(duration_of("-i", v, minute_ns), o.if_elapsed);
}

Status set_expire_after(Options &o, const std::string &v) {
    o.adaptive = true;
    if (v == "auto" || v == "never") {
        o.expire_after = v == "auto" ? locks::automatic : locks::no_limit;
        return Status::ok();
    }
    if (v == "inf" || v == "infinite" || v == "infinity")
        return fail(Code::invalid, "-e " + v + ": unknown; use never");
    return store(duration_of("-e", v, minute_ns), o.expire_after);
}

Status set_atom(Options &o, const std::string &v) {
    const std::size_t colon = v.find(':');
    if (colon == std::string::npos || colon == 0)
        return fail(Code::invalid, "-a " + v + ": not an atom; give OPERATOR:OPERAND, as in edit:/etc/motd");
    o.atom = locks::Atom{v.substr(0, colon), v.substr(colon + 1), ""};
    return Status::ok();
}

// NAME:N; %u in it is the user's number, %% a percent sign.
Status add_limit(Options &o, const std::string &v) {
    const std::size_t colon = v.rfind(':');
    if (colon == std::string::npos || colon == 0)
        return fail(Code::invalid, "-l " + v + ": not a limit; give NAME:N, as in total:10 or user-%u:2");
    const auto count = count_of("-l " + v + ":", v.substr(colon + 1));
    if (!count) return count.status();
    o.limits.push_back({v.substr(0, colon), *count});
    return Status::ok();
}

Status set_keep(Options &o, const std::string &v) {
    o.keep = v == "both"     ? Keep::both
             : v == "leader" ? Keep::leader
             : v == "tree"   ? Keep::tree
             : v == "exec"   ? Keep::exec
                             : Keep::fd;
    return Status::ok();
}

Status set_grace(Options &o, const std::string &v) {
    std::int64_t after[3] = {};
    if (Status status = grace_of(v, after); !status) return status;
    o.grace = {after[0], after[1], after[2]};
    return Status::ok();
}

template <bool Options::*Flag> Status raise(Options &o, const std::string &) {
    o.*Flag = true;
    return Status::ok();
}

template <auto Field> Status set_number(Options &o, const std::string &v) {
    o.*Field = static_cast<int>(*number_of(v, 0, INT32_MAX));
    return Status::ok();
}

// clang-format off
const std::vector<OptionKind> kinds = {
    {{"no-wait", 'n', nullptr, no_value, "refuse at once when busy", "Waiting"}, takes,
     [](Options &o, const std::string &) {
         o.wait = 0;
         return Status::ok();
     }},
    {{"wait", 'w', "T", any_text, "wait at most this long: 90s, 15m, 2h; a number alone: seconds"},
     takes | bit(Verb::wait),
     [](Options &o, const std::string &v) { return store(duration_of("-w", v, second_ns), o.wait); }},
    {{"queue", 'q', nullptr, no_value, "wait in order of arrival"}, adaptive, raise<&Options::queue>},
    {{"shared", 's', nullptr, no_value, "share the lock with other shared holders"}, runs, raise<&Options::shared>},
    {{"at-most", 'j', "N|N%|@FILE", any_text,
      "at most N at a time", "What is locked"}, adaptive | bit(Verb::check) | bit(Verb::wait),
     [](Options &o, const std::string &v) { return store(count_of("-j", v), o.at_most); }},
    {{"limit", 'l', "NAME:N", any_text, "the same, several; %u is the user's number", "", Given::many}, run, add_limit},
    {{"atom", 'a', "OPERATOR:OPERAND", any_text, "the name in two parts"}, names, set_atom},
    {{"mode", 0, "MODE", any_text, "of a new lock file, as 0660"}, adaptive,
     [](Options &o, const std::string &v) { return store(mode_of(v), o.mode); }},
    {{"if-elapsed", 'i', "T|auto", any_text,
      "refuse unless T has elapsed since the last run: 90s, 15m, 2h; a number alone: minutes",
      "When it runs, and how long"}, adaptive | bit(Verb::check), set_if_elapsed},
    {{"expire-after", 'e', "T|auto|never", any_text,
      "end a holder older than T with care, also this command: 90s, 15m, 2h; a number alone: minutes"},
     adaptive, set_expire_after},
    {{"since", 0, "end|start", one_of("end|start"), "what -i counts from"}, adaptive | bit(Verb::check),
     [](Options &o, const std::string &v) {
         o.since = v == "start" ? locks::Since::start : locks::Since::end;
         return Status::ok();
     }},
    {{"max-expire", 0, "T", any_text, "upper bound of -e auto (minutes)"}, adaptive | bit(Verb::advise),
     [](Options &o, const std::string &v) { return store(duration_of("--max-expire", v, minute_ns), o.expire_max); }},
    {{"grace", 0, "I,T,K", any_text, "seconds after INT, TERM, KILL"}, adaptive | bit(Verb::breaking), set_grace},
    {{"max-kills", 0, "N", whole_number(0, 1000), "takeovers in a row within an hour"}, adaptive,
     set_number<&Options::max_kills>},
    {{"keep", 0, "WHO", one_of("both|leader|tree|exec|fd"),
      "holder of the lock: both, leader, tree, exec or fd"}, run, set_keep},
    {{"paper", 0, nullptr, no_value, "minutes as in the paper of 1997"}, adaptive, raise<&Options::literal>},
    {{"fail-open", 0, nullptr, no_value, "run even if locking fails"}, run, raise<&Options::fail_open>},
    {{"busy-code", 'E', "N", whole_number(0, 255), "exit code when busy, instead of 75", "What is reported"}, takes,
     set_number<&Options::busy_code>},
    {{"busy-is-ok", 'x', nullptr, no_value, "exit 0 when busy"}, takes, raise<&Options::busy_is_ok>},
    {{"verbose", 'v', nullptr, no_value, "report each step"}, everywhere, raise<&Options::verbose>},
    {{"output", 'o', "FORMAT", one_of("json|table"), "results and errors as JSON, or for people"}, everywhere,
     [](Options &o, const std::string &v) {
         o.json = v == "json";
         return Status::ok();
     }},
    {{"json", 0, nullptr, no_value, "the same as -o json"}, everywhere, raise<&Options::json>},
    {{"report", 0, "FD", whole_number(0, 1 << 20),
      "the outcome as JSON, to FD"}, takes, set_number<&Options::report_fd>},
    {{"failed", 0, nullptr, no_value, "put: record that the work failed", "Options of single verbs"}, bit(Verb::put),
     raise<&Options::ended_badly>},
    {{"holder", 0, "PID", whole_number(2, 1 << 22), "get, put: the script, if it is not the caller"},
     bit(Verb::get) | bit(Verb::put), set_number<&Options::holder>},
    {{"head", 0, nullptr, no_value, "break: end the first waiter instead"}, bit(Verb::breaking), raise<&Options::head>},
    {{"slot", 0, "K", whole_number(0, 1 << 20), "break: this one of several holders"}, bit(Verb::breaking),
     set_number<&Options::slot>},
    {{"last", 0, "N", whole_number(0, 1 << 30),
      "log: only the newest N lines"}, bit(Verb::log), set_number<&Options::last>},
    {{"help", 'h', nullptr, no_value, "print this"}, everywhere,
     [](Options &o, const std::string &) {
         o.verb = Verb::help;
         return Status::ok();
     }},
    {{"version", 'V', nullptr, no_value, "print the version"}, everywhere,
     [](Options &o, const std::string &) {
         o.verb = Verb::version;
         return Status::ok();
     }},
};
// clang-format on

struct VerbName {
    const char *name;
    Verb verb;
    std::size_t least, most;  // words after it
    const char *form;
};
constexpr VerbName verbs[] = {
    {"get", Verb::get, 2, 2, "dcs_lock get [-i T] [-e T] OPERATOR OPERAND"},
    {"put", Verb::put, 2, 2, "dcs_lock put [--failed] OPERATOR OPERAND"},
    {"list", Verb::list, 0, 1, "dcs_lock list [NAME]"},
    {"check", Verb::check, 1, 1, "dcs_lock check [-i T] [-j N] NAME"},
    {"wait", Verb::wait, 1, 1, "dcs_lock wait [-w T] [-j N] NAME"},
    {"break", Verb::breaking, 1, 1, "dcs_lock break [--head] [--slot K] NAME"},
    {"log", Verb::log, 0, 1, "dcs_lock log [--last N] [NAME]"},
    {"advise", Verb::advise, 0, 1, "dcs_lock advise [NAME]"},
    {"doctor", Verb::doctor, 0, 0, "dcs_lock doctor"},
    {"pass", Verb::pass, 0, SIZE_MAX, "dcs_lock pass [CMD...]"},
};

const VerbName *verb_of(const std::string &word) {
    for (const VerbName &verb : verbs)
        if (word == verb.name) return &verb;
    return nullptr;
}

// Verbs of other tools, and mistyped ones: what to do instead.
std::string meant_by(const std::string &word) {
    constexpr const char *list = "did you mean `dcs_lock list`?",
                         *end =
                             "a lock ends with its command, and `dcs_lock put` "
                             "releases what `dcs_lock get` took";
    constexpr std::pair<const char *, const char *> others[] = {
        {"unlock", end}, {"release", end}, {"status", list},
        {"show", list},  {"ls", list},     {"kill", "did you mean `dcs_lock break`?"}};
    for (const auto &[other, text] : others)
        if (word == other) return text;
    std::vector<std::string> names;
    for (const VerbName &verb : verbs) names.push_back(verb.name);
    const std::string near = nearest(word, names);
    return near.empty() ? "" : "did you mean `dcs_lock " + near + "`?";
}

Status usage(const std::string &what) { return fail(Code::invalid, what + "; `dcs_lock --help` shows the forms"); }

bool all_digits(const std::string &word) {
    return !word.empty() && word.find_first_not_of("0123456789") == std::string::npos;
}

// The words of a command line in order, with the options removed.
struct Reader {
    Options &found;
    OptionReader words;
    std::vector<const OptionKind *> seen = {};

    // Consumes options up to the next other word. False: the line has ended.
    Result<bool> options() {
        for (std::string value;;) {
            const auto row = words.next(value);
            if (!row) return usage(row.status().text);
            if (*row == nullptr) return words.at < words.line.size();
            seen.push_back(&kind_of(**row));
            if (const Status status = seen.back()->apply(found, value); !status) return status;
        }
    }
    const std::string &word() const { return words.line[words.at]; }
    std::vector<std::string> rest() const {
        return {words.line.begin() + static_cast<long>(words.at), words.line.end()};
    }
};

Status check_verb_words(Reader &reader, const VerbName &verb) {
    Options &found = reader.found;
    std::vector<std::string> words;
    for (;;) {
        const auto more = reader.options();
        if (!more) return more.status();
        if (!*more) break;
        if (verb.verb == Verb::pass) {  // the rest is a command
            found.words = reader.rest();
            return Status::ok();
        }
        words.push_back(reader.word());
        ++reader.words.at;
    }
    if (found.verb != verb.verb) return Status::ok();  // --help, --version
    if (found.atom && verb.most == 1) {                // -a replaces the name
        if (!words.empty()) return usage("-a and NAME both name a lock");
        return Status::ok();
    }
    if (words.size() < verb.least || words.size() > verb.most)
        return fail(Code::invalid, std::string(verb.name) + ": wrong number of words; use " + verb.form);
    if (verb.verb == Verb::get || verb.verb == Verb::put) {
        if (words[0].empty()) return fail(Code::invalid, std::string(verb.name) + ": the operator is empty; name one");
        found.atom = locks::Atom{words[0], words[1], ""};
    } else if (!words.empty()) {
        if (words[0].empty()) return fail(Code::invalid, std::string(verb.name) + ": NAME is empty; name a lock");
        found.name = words[0];
    }
    return Status::ok();
}

// NAME [--] CMD..., CMD... after -a or -l, or a bare descriptor.
Status take_command(Reader &reader) {
    Options &found = reader.found;
    std::vector<std::string> words = reader.rest();
    const bool needs_atom = found.adaptive || found.at_most || found.shared;
    const bool named = !found.atom && (found.limits.empty() || needs_atom);
    if (named && words.size() == 1 && !reader.words.only_words && all_digits(words[0])) {
        const auto descriptor = whole_number_of("descriptor", words[0], 0, 1 << 20);
        if (!descriptor) return descriptor.status();
        found.verb = Verb::descriptor;
        found.descriptor = *descriptor;
        return Status::ok();
    }
    if (named) {
        if (words.empty()) return usage("NAME and a command are missing");
        found.name = words[0];
        words.erase(words.begin());
        if (!words.empty() && words[0] == "--") words.erase(words.begin());
        if (found.name.empty()) return usage("NAME is empty");
        const std::string meant = reader.words.only_words ? "" : meant_by(found.name);
        const std::string taken = "`" + found.name + "` is taken as NAME";
        if (words.empty()) {
            if (!meant.empty()) return fail(Code::invalid, taken + " and no command follows; " + meant);
            return usage(taken + " and no command follows (a number alone would be a descriptor)");
        }
        if (!meant.empty() && words.size() <= 2)  // what most verbs take
            found.if_not_found = taken + ", and there is no command " + words[0] + "; " + meant;
    }
    if (words.empty()) return usage("the command is missing");
    found.words = std::move(words);
    return Status::ok();
}

Status check_together(const Reader &reader) {
    const Options &found = reader.found;
    const auto verb = static_cast<unsigned>(found.verb);
    for (const OptionKind *kind : reader.seen)
        if ((kind->verbs & verb) == 0) {
            for (const VerbName &name : verbs)
                if (name.verb == found.verb)
                    return usage(shown(kind->row) + " cannot be combined with `" + name.name + "`");
            return usage(shown(kind->row) + " cannot be combined with " +
                         (found.verb == Verb::descriptor ? "a descriptor" : "a command"));
        }
    if (found.shared && found.adaptive)
        return usage("-s with -i or -e: shared runs are not recorded, so neither limit can apply to them");
    if (found.shared && found.slots_only()) return usage("-s with -j: counted slots are shared already");
    if (found.expire_after == 0 && !found.literal)
        return fail(Code::invalid, "-e 0: every holder would be ended at once; use -e never for no limit");
    if (found.literal && (found.if_elapsed == locks::automatic || found.expire_after == locks::automatic))
        return usage("--paper with auto: the paper has fixed limits");
    if (found.literal && !found.adaptive) return usage("--paper needs -i or -e");
    if (found.adaptive && found.keep == locks::Keep::fd && found.expire_after != locks::no_limit)
        return fail(Code::invalid, "--keep=fd with -e: no process would remain to end the command; use --keep=exec");
    return Status::ok();
}

}  // namespace

const OptionTable &option_rows() {
    static const OptionTable rows = [] {
        OptionTable all;
        for (const OptionKind &kind : kinds) all.push_back(kind.row);
        return all;
    }();
    return rows;
}

const OptionKind &kind_of(const OptionRow &row) { return kinds[static_cast<std::size_t>(&row - option_rows().data())]; }

Status parse(const std::vector<std::string> &line, Options &found) {
    Reader reader{found, {line, option_rows()}};
    auto more = reader.options();
    Status status = more ? Status::ok() : more.status();
    if (status && found.verb != Verb::help && found.verb != Verb::version) {
        const VerbName *verb = *more && !reader.words.only_words ? verb_of(reader.word()) : nullptr;
        if (verb != nullptr) {
            found.verb = verb->verb;
            ++reader.words.at;
            status = check_verb_words(reader, *verb);
        } else {
            status = take_command(reader);
        }
        if (status && found.verb != Verb::help && found.verb != Verb::version) status = check_together(reader);
    }
    if (!status && !found.json)  // an error before `-o json` is reported as JSON too
        for (std::size_t i = 0; i + 1 < line.size() && line[i] != "--"; ++i)
            if (line[i] == "-o" && line[i + 1] == "json") found.json = true;
    return status;
}

}  // namespace dcs::lock_command
