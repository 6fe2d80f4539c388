#include "demands.h"

#include <climits>
#include <cmath>

#include "launch_words.h"

namespace dcs::commands {
namespace {

struct Number {
    const char *option;
    int Demands::*field;
    int least, most;
    const char *what;
};
constexpr Number numbers[] = {
    {"--attempts", &Demands::attempts, 1, most_attempts, "a number from 1 to 255"},
    {"--cores", &Demands::cores, 1, 65536, "a number of cores, from 1 to 65536"},
    {"--memory", &Demands::memory_mb, 1, INT_MAX, "megabytes, at least 1"},
    {"--thrash", &Demands::thrash, 0, INT_MAX, "half megabytes, 0 or more"},
    {"--notice", &Demands::notice, 0, INT_MAX, "minutes, 0 or more"},
};

Failure wrong(const std::string &option, const std::string &value, const std::string &what) {
    return usage_failure(option + " " + value + ": " + what);
}

}  // namespace

void Demands::put_into(d_grain &grain) const {
    grain.host_class = host_class;
    grain.attempts = attempts;
    grain.cores = cores;
    grain.memory_mb = memory_mb;
    grain.wall_s = wall_s;
    grain.thrash = thrash;
    grain.notice = notice;
    grain.urgent = urgent;
}

std::vector<Option> with_demands(std::vector<Option> options) {
    options.push_back({"--class", 0, true});
    options.push_back({"--wall", 0, true});
    options.push_back({"--urgent", 0, false});
    for (const Number &number : numbers) options.push_back({number.option, 0, true});
    return options;
}

std::optional<Failure> take_demands(const Arguments &arguments, Demands &demands) {
    for (const Number &number : numbers) {
        const auto text = arguments.value(number.option);
        if (!text) continue;
        const auto n = number_of(*text, number.least, number.most);
        if (!n) return wrong(number.option, *text, number.what);
        demands.*number.field = static_cast<int>(*n);
    }
    if (const auto text = arguments.value("--class")) {
        const auto mask = class_of(*text);
        if (!mask) return wrong("--class", *text, "a mask of host classes, such as 0x1 or 3");
        demands.host_class = *mask;
    }
    if (const auto text = arguments.value("--wall")) {
        const auto s = seconds_of_text(*text);
        if (!s || *s <= 0) return wrong("--wall", *text, "seconds, or 5m, or 2h; more than 0");
        demands.wall_s = static_cast<int>(std::ceil(*s));
    }
    demands.urgent = arguments.has("--urgent");
    return std::nullopt;
}

}  // namespace dcs::commands
