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

Status unknown_value(const char *option, const std::string &value, const char *good) {
    return fail(Code::invalid, std::string(option) + " " + value + ": that is unknown; give " + good);
}

template <class T, class U>
Status store(Result<T> value, U &where) {
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
    if (v == "inf" || v == "infinite" || v == "infinity") return unknown_value("-e", v, "never");
    return store(duration_of("-e", v, minute_ns), o.expire_after);
}

Status set_atom(Options &o, const std::string &v) {
    const std::size_t colon = v.find(':');
    if (colon == std::string::npos || colon == 0)
        return fail(Code::invalid, "-a " + v + ": that is no atom; give OPERATOR:OPERAND, as in edit:/etc/motd");
    o.atom = locks::Atom{v.substr(0, colon), v.substr(colon + 1), ""};
    return Status::ok();
}

// FILE:N; %u in it is the number of the user, %% a percent sign.
Status add_limit(Options &o, const std::string &v) {
    const std::size_t colon = v.rfind(':');
    if (colon == std::string::npos || colon == 0)
        return fail(Code::invalid, "-l " + v + ": that is no limit; give NAME:N, as in total:10 or user-%u:2");
    const auto count = count_of("-l " + v + ":", v.substr(colon + 1));
    if (!count) return count.status();
    o.limits.push_back({v.substr(0, colon), *count});
    return Status::ok();
}

Status set_keep(Options &o, const std::string &v) {
    static constexpr struct {
        const char *word;
        Keep keep;
    } words[] = {
        {"both", Keep::both}, {"leader", Keep::leader}, {"tree", Keep::tree}, {"exec", Keep::exec}, {"fd", Keep::fd}};
    for (const auto &word : words)
        if (v == word.word) {
            o.keep = word.keep;
            return Status::ok();
        }
    return unknown_value("--keep", v, "both, leader, tree, exec or fd");
}

Status set_since(Options &o, const std::string &v) {
    if (v != "start" && v != "end") return unknown_value("--since", v, "start or end");
    o.since = v == "start" ? locks::Since::start : locks::Since::end;
    return Status::ok();
}

Status set_grace(Options &o, const std::string &v) {
    std::int64_t after[3] = {};
    if (Status status = grace_of(v, after); !status) return status;
    o.grace = {after[0], after[1], after[2]};
    return Status::ok();
}

Status set_output(Options &o, const std::string &v) {
    if (v != "json" && v != "table") return unknown_value("-o", v, "json or table");
    o.json = v == "json";
    return Status::ok();
}

template <bool Options::*Flag>
Status raise(Options &o, const std::string &) {
    o.*Flag = true;
    return Status::ok();
}

const OptionKind kinds[] = {
    {"no-wait", 'n', false, takes,
     [](Options &o, const std::string &) {
         o.wait = 0;
         return Status::ok();
     }},
    {"wait", 'w', true, takes | bit(Verb::wait),
     [](Options &o, const std::string &v) { return store(duration_of("-w", v, second_ns), o.wait); }},
    {"queue", 'q', false, adaptive, raise<&Options::queue>},
    {"shared", 's', false, runs, raise<&Options::shared>},
    {"at-most", 'j', true, adaptive | bit(Verb::check) | bit(Verb::wait),
     [](Options &o, const std::string &v) { return store(count_of("-j", v), o.at_most); }},
    {"limit", 'l', true, run, add_limit},
    {"if-elapsed", 'i', true, adaptive | bit(Verb::check), set_if_elapsed},
    {"expire-after", 'e', true, adaptive, set_expire_after},
    {"atom", 'a', true, names, set_atom},
    {"busy-code", 'E', true, takes,
     [](Options &o, const std::string &v) { return store(whole_number_of("-E", v, 0, 255), o.busy_code); }},
    {"busy-is-ok", 'x', false, takes, raise<&Options::busy_is_ok>},
    {"verbose", 'v', false, everywhere, raise<&Options::verbose>},
    {"since", 0, true, adaptive | bit(Verb::check), set_since},
    {"report", 0, true, takes,
     [](Options &o, const std::string &v) { return store(whole_number_of("--report", v, 0, 1 << 20), o.report_fd); }},
    {"keep", 0, true, run, set_keep},
    {"grace", 0, true, adaptive | bit(Verb::breaking), set_grace},
    {"max-kills", 0, true, adaptive,
     [](Options &o, const std::string &v) { return store(whole_number_of("--max-kills", v, 0, 1000), o.max_kills); }},
    {"max-expire", 0, true, adaptive | bit(Verb::advise),
     [](Options &o, const std::string &v) { return store(duration_of("--max-expire", v, minute_ns), o.expire_max); }},
    {"mode", 0, true, adaptive, [](Options &o, const std::string &v) { return store(mode_of(v), o.mode); }},
    {"paper", 0, false, adaptive, raise<&Options::literal>},
    {"fail-open", 0, false, run, raise<&Options::fail_open>},
    {"json", 0, false, everywhere, raise<&Options::json>},
    {"output", 'o', true, everywhere, set_output},
    {"head", 0, false, bit(Verb::breaking), raise<&Options::head>},
    {"slot", 0, true, bit(Verb::breaking),
     [](Options &o, const std::string &v) { return store(whole_number_of("--slot", v, 0, 1 << 20), o.slot); }},
    {"last", 0, true, bit(Verb::log),
     [](Options &o, const std::string &v) { return store(whole_number_of("--last", v, 0, 1 << 30), o.last); }},
    {"failed", 0, false, bit(Verb::put), raise<&Options::ended_badly>},
    {"holder", 0, true, bit(Verb::get) | bit(Verb::put),
     [](Options &o, const std::string &v) { return store(whole_number_of("--holder", v, 2, 1 << 22), o.holder); }},
    {"help", 'h', false, everywhere,
     [](Options &o, const std::string &) {
         o.verb = Verb::help;
         return Status::ok();
     }},
    {"version", 'V', false, everywhere,
     [](Options &o, const std::string &) {
         o.verb = Verb::version;
         return Status::ok();
     }},
};

}  // namespace

const OptionKind *option_by_name(const std::string &name) {
    for (const OptionKind &kind : kinds)
        if (name == kind.name) return &kind;
    return nullptr;
}

const OptionKind *option_by_letter(char letter) {
    for (const OptionKind &kind : kinds)
        if (letter != 0 && letter == kind.letter) return &kind;
    return nullptr;
}

std::string shown(const OptionKind &kind) {
    return kind.letter != 0 ? std::string("-") + kind.letter : std::string("--") + kind.name;
}

}  // namespace dcs::lock_command
