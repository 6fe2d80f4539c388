#include "host_changes.h"

#include <algorithm>

namespace dcs::commands {
namespace {

bool is_named(const std::vector<std::string> &names, const std::string &host) {
    return std::any_of(names.begin(), names.end(), [&](const auto &n) { return n == "all" || n == host; });
}

struct Time {
    const char *name;  // of the option and of the setting
    double d_host_change::*field;
};
constexpr Time times[] = {{"interval", &d_host_change::interval_s},
                          {"alert", &d_host_change::alert_s},
                          {"limit", &d_host_change::limit_s},
                          {"extended", &d_host_change::extended_s}};

// One word of a host's settings; false: not understood.
bool take_setting(std::string_view word, d_host_change &change) {
    const std::size_t equals = word.find('=');
    const std::string_view name = word.substr(0, equals);
    if (equals == std::string_view::npos) {
        if (name == "drained") change.drained = 1;
        return name == "drained";
    }
    const std::string_view value = word.substr(equals + 1);
    if (name == "slots") {
        const auto n = number_of(value, 0, most_slots_of_a_host);
        if (n) change.slots = static_cast<int>(*n);
        return n.has_value();
    }
    if (name == "class") {
        const auto mask = class_of(value);
        if (mask) change.host_class = *mask;
        return mask.has_value();
    }
    for (const Time &time : times) {
        if (name != time.name) continue;
        const auto s = seconds_of_text(value);
        if (s) change.*time.field = *s;
        return s.has_value();
    }
    return false;
}

void take_numbers(const Arguments &arguments, d_host_change &change) {
    change.slots = static_cast<int>(arguments.number("slots").value_or(change.slots));
    for (const Time &time : times) change.*time.field = arguments.seconds(time.name).value_or(change.*time.field);
}

}  // namespace

ChosenHosts choose_hosts(const std::vector<std::string> &names, Which which) {
    ChosenHosts chosen;
    Info info;
    if (const Status s = info.ask(wire::QueryType::hosts); !s) {
        chosen.failure = call_failure("the list of hosts", s);
        return chosen;
    }
    for (wire::HostRow &row : info.hosts)
        if (names.empty() || is_named(names, row.name)) chosen.rows.push_back(std::move(row));
    for (const std::string &name : names) {
        const auto here = [&](const auto &row) { return name == row.name; };
        if (name == "all" || std::any_of(chosen.rows.begin(), chosen.rows.end(), here)) continue;
        const bool member = std::any_of(info.members.begin(), info.members.end(), here);
        if (member && which == Which::with_members) continue;
        chosen.failure = not_found_failure(member ? "host " + name + " runs no grains" : "there is no host " + name,
                                           "`dcs host ls` lists the existing ones");
        return chosen;
    }
    for (wire::MemberRow &row : info.members)
        if (names.empty() || is_named(names, row.name)) chosen.members.push_back(std::move(row));
    return chosen;
}

d_host_change no_change() {
    d_host_change change;
    d_host_change_init(&change);
    return change;
}

d_host_change drain_change(bool evict) {
    d_host_change change = no_change();
    change.drained = 1;
    if (evict) change.slots = 0;
    return change;
}

d_host_change undrain_change(std::string_view settings) {
    d_host_change set = no_change(), only = no_change();
    only.drained = 0;
    while (!settings.empty()) {
        const std::size_t end = settings.find(' ');
        if (!take_setting(settings.substr(0, end), set)) return only;
        settings.remove_prefix(end == std::string_view::npos ? settings.size() : end + 1);
    }
    if (set.slots != 0) return only;
    set.reset = 1;
    set.slots = -1;
    set.drained = 0;
    return set;
}

std::optional<Failure> take_host_order(const Arguments &arguments, HostOrder &order) {
    take_numbers(arguments, order.change);
    order.change.reset = arguments.has("reset");
    order.clear_nogo = arguments.has("clear-nogo");
    for (const char *option : {"slots", "interval", "alert", "limit", "extended", "class", "reset"})
        order.changes = order.changes || arguments.has(option);
    for (const std::string &word : arguments.words)  // no host's name has a colon
        (word.find(':') == std::string::npos ? order.hosts : order.grains).push_back(word);
    const char *hint = "dcs host set NAME --slots N, or another option; `dcs host set --help` lists them";
    if (order.hosts.empty()) return usage_failure("dcs host set: NAME is missing", hint);
    if (!order.changes && !order.clear_nogo) return usage_failure("dcs host set: no setting is given", hint);
    if (auto failure = take_class(arguments, order.change.host_class)) return failure;
    if (arguments.has("class") && order.change.host_class == 0)
        return usage_failure("dcs host set: --class 0: a host belongs to at least one class",
                             "a name, or a mask such as 0x1");
    if (!order.grains.empty() && !order.clear_nogo)
        return usage_failure("`" + order.grains[0] + "` is a grain: only --clear-nogo takes grains", hint);
    return std::nullopt;
}

}  // namespace dcs::commands
