#include "hosts.h"

#include <algorithm>

namespace dcs::commands {
namespace {

constexpr int most_slots_of_a_host = 65536;  // what the scheduler takes

bool is_named(const std::vector<std::string> &names, const char *host) {
    return std::any_of(names.begin(), names.end(), [&](const auto &n) { return n == "all" || n == host; });
}

struct Time {
    const char *option, *setting;
    double d_host_change::*field;
};
constexpr Time times[] = {{"--interval", "interval", &d_host_change::interval_s},
                          {"--alert", "alert", &d_host_change::alert_s},
                          {"--limit", "limit", &d_host_change::limit_s},
                          {"--extended", "extended", &d_host_change::extended_s}};

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
        if (name != time.setting) continue;
        const auto s = seconds_of_text(value);
        if (s) change.*time.field = *s;
        return s.has_value();
    }
    return false;
}

std::optional<Failure> take_numbers(const Arguments &arguments, d_host_change &change) {
    const auto wrong = [](const char *option, const std::string &value, const char *what) {
        return usage_failure(std::string(option) + " " + value + ": " + what);
    };
    if (const auto text = arguments.value("--slots")) {
        const auto n = number_of(*text, 0, most_slots_of_a_host);
        if (!n) return wrong("--slots", *text, "a number from 0 to 65536; 0 evicts what runs there");
        change.slots = static_cast<int>(*n);
    }
    if (const auto text = arguments.value("--class")) {
        const auto mask = class_of(*text);
        if (!mask || *mask == 0) return wrong("--class", *text, "a mask of host classes, such as 0x1 or 3");
        change.host_class = *mask;
    }
    for (const Time &time : times) {
        const auto text = arguments.value(time.option);
        if (!text) continue;
        const auto s = seconds_of_text(*text);
        if (!s || *s < 0.001) return wrong(time.option, *text, "seconds, at least 0.001; or 5m, or 2h");
        change.*time.field = *s;
    }
    return std::nullopt;
}

}  // namespace

ChosenHosts choose_hosts(const std::vector<std::string> &names, Info &info) {
    ChosenHosts chosen;
    if (const int error = info.ask(D_Q_HOSTS); error != NO_ERROR) {
        chosen.failure = call_failure("the list of hosts", error);
        return chosen;
    }
    for (std::size_t i = 0; i < info->host_count; ++i)
        if (names.empty() || is_named(names, info->hosts[i].name)) chosen.rows.push_back(&info->hosts[i]);
    for (const std::string &name : names) {
        const auto here = [&](const d_host_row *row) { return name == row->name; };
        if (name == "all" || std::any_of(chosen.rows.begin(), chosen.rows.end(), here)) continue;
        chosen.failure =
            not_found_failure("there is no host " + name, "`dcs host ls` lists those that there are");
        return chosen;
    }
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
    if (auto failure = take_numbers(arguments, order.change)) return failure;
    order.change.reset = arguments.has("--reset");
    order.clear_nogo = arguments.has("--clear-nogo");
    for (const char *option : {"--slots", "--interval", "--alert", "--limit", "--extended", "--class", "--reset"})
        order.changes = order.changes || arguments.has(option);
    for (const std::string &word : arguments.words)  // no host's name has a colon
        (word.find(':') == std::string::npos ? order.hosts : order.grains).push_back(word);
    const char *hint = "dcs host set NAME --slots N, or another option; `dcs host set --help` lists them";
    if (order.hosts.empty()) return usage_failure("dcs host set: which host?", hint);
    if (!order.changes && !order.clear_nogo) return usage_failure("dcs host set: set what?", hint);
    if (!order.grains.empty() && !order.clear_nogo)
        return usage_failure("`" + order.grains[0] + "` is a grain: they stand behind --clear-nogo only", hint);
    return std::nullopt;
}

}  // namespace dcs::commands
