#include "parse.h"

#include "option_table.h"
#include "quantity.h"

namespace dcs::lock_command {
namespace {

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
        if (words.empty())
            return usage("`" + found.name +
                         "` is taken as NAME and no command follows (a number alone would be "
                         "a descriptor)");
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
