#include "quantity.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include <fcntl.h>
#include <sched.h>

#include "base/fd.h"
#include "base/option_table.h"
#include "base/text.h"
#include "locks/counted_slots.h"
#include "locks/files/record.h"

namespace dcs::lock_command {
namespace {

constexpr double longest_ns = 100.0 * 365 * 86400 * second_ns;

std::int64_t unit_of(char c) {
    return c == 's' ? second_ns : c == 'm' ? minute_ns : c == 'h' ? 60 * minute_ns : c == 'd' ? 1440 * minute_ns : 0;
}

Status bad(const std::string &option, const std::string &text, const std::string &why, const std::string &next) {
    return fail(Code::invalid, option + " " + (text.empty() ? "''" : text) + ": " + why + "; " + next);
}

Result<std::string> first_word_of(const std::string &option, const std::string &path) {
    const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!fd) return fail_errno(Code::invalid, option + " @" + path + ": the file cannot be read", errno);
    char bytes[64];
    const ssize_t got = ::read(fd.get(), bytes, sizeof bytes);
    std::string word(bytes, got > 0 ? static_cast<std::size_t>(got) : 0);
    word.erase(std::min(word.find_first_of(" \t\r\n"), word.size()));
    return word;
}

}  // namespace

Result<std::int64_t> duration_of(const std::string &option, const std::string &text, std::int64_t bare_unit) {
    const std::string next = "give a number with s, m, h or d, as in 90s or 1.5h";
    if (!text.empty() && text[0] == '-') return bad(option, text, "a time cannot be negative", next);
    std::string digits = text;
    std::int64_t unit = bare_unit;
    if (!digits.empty() && unit_of(digits.back()) != 0) {
        unit = unit_of(digits.back());
        digits.pop_back();
    }
    char *end = nullptr;
    const double value = std::strtod(digits.c_str(), &end) * static_cast<double>(unit);
    if (digits.empty() || digits.find_first_not_of("0123456789.") != std::string::npos || *end != '\0')
        return bad(option, text, "not a time", next);
    if (value > longest_ns) return bad(option, text, "more than a hundred years", next);
    return std::llround(value);
}

Status grace_of(const std::string &text, std::int64_t (&after)[3]) {
    std::size_t count = 0;
    for (const std::string &one : split(text, ',')) {
        const auto time = duration_of("--grace", one, second_ns);
        if (!time) return time.status();
        if (count < 3) after[count] = *time;
        ++count;
    }
    if (count == 1) after[1] = after[2] = after[0];
    if (count == 2 || count > 3)
        return bad("--grace", text, "there are " + std::to_string(count) + " times",
                   "give one for all, or three: after INT, TERM and KILL");
    return Status::ok();
}

Result<int> whole_number_of(const std::string &option, const std::string &text, int least, int most) {
    if (const auto number = number_of(text, least, most)) return static_cast<int>(*number);
    return bad(option, text, "not a valid number",
               "give a number from " + std::to_string(least) + " to " + std::to_string(most));
}

Result<int> count_of(const std::string &option, const std::string &text) {
    if (!text.empty() && text[0] == '@') {
        auto word = first_word_of(option, text.substr(1));
        if (!word) return word.status();
        if (!word->empty() && (*word)[0] == '@')
            return bad(option, text, "the file names another file", "write the number into it");
        return count_of(option + " " + text + ":", *word);
    }
    if (!text.empty() && text.back() == '%') {
        const auto percent = whole_number_of(option, text.substr(0, text.size() - 1), 0, 100'000);
        if (!percent) return percent.status();
        cpu_set_t usable;
        CPU_ZERO(&usable);
        const int processors = ::sched_getaffinity(0, sizeof usable, &usable) == 0 ? CPU_COUNT(&usable) : 1;
        const std::int64_t count = std::int64_t{processors} * *percent / 100;
        return static_cast<int>(
            *percent == 0 ? 0 : std::max<std::int64_t>(1, std::min<std::int64_t>(count, locks::slots_max)));
    }
    return whole_number_of(option, text, 0, locks::slots_max);
}

Result<unsigned> mode_of(const std::string &text) {
    unsigned mode = 0;
    if (text.size() > 4 || !read_number(text, mode, 8) || (mode != 0600 && mode != 0660 && mode != 0666))
        return bad("--mode", text, "all users of a lock file write it and none executes it", "give 0600, 0660 or 0666");
    return mode;
}

std::string decimal_seconds(std::int64_t nanoseconds) {
    char text[48];
    const bool negative = nanoseconds < 0;
    const std::uint64_t size =
        negative ? 0 - static_cast<std::uint64_t>(nanoseconds) : static_cast<std::uint64_t>(nanoseconds);
    std::snprintf(text, sizeof text, "%s%llu.%09llu", negative ? "-" : "",
                  static_cast<unsigned long long>(size / second_ns), static_cast<unsigned long long>(size % second_ns));
    std::string out = text;
    out.erase(out.find_last_not_of('0') + 1);
    if (out.back() == '.') out.pop_back();
    return out;
}

std::string json_seconds(std::int64_t nanoseconds) {
    return nanoseconds == locks::no_limit || nanoseconds == -1 ? "null" : decimal_seconds(nanoseconds);
}

std::string spoken(std::int64_t nanoseconds) {
    struct Step {
        std::int64_t from, unit;
        const char *word;
    };
    static constexpr Step steps[] = {{48 * 60 * minute_ns, 1440 * minute_ns, " d"},
                                     {2 * 60 * minute_ns, 60 * minute_ns, " h"},
                                     {2 * minute_ns, minute_ns, " min"},
                                     {second_ns, second_ns, " s"},
                                     {0, second_ns / 1000, " ms"}};
    for (const Step &step : steps) {
        if (nanoseconds < step.from) continue;
        const std::int64_t tenths = nanoseconds / (step.unit / 10);
        std::string out = std::to_string(tenths / 10);
        if (tenths < 1000 && tenths % 10 != 0) out += "." + std::to_string(tenths % 10);
        return out + step.word;
    }
    return "0 s";
}

}  // namespace dcs::lock_command
