#include "native.h"

#include <algorithm>
#include <climits>
#include <sstream>

#include "job_template.h"

namespace dcs::drmaa {
namespace {

struct NativeOption {
    const char *name;
    long Native::*field;
    long least, most;
    enum { number, megabytes, time } unit;
};
constexpr NativeOption native_options[] = {{"--cores", &Native::cores, 1, 65535, NativeOption::number},
                                           {"--memory", &Native::memory_mb, 1, INT_MAX, NativeOption::megabytes},
                                           {"--wall", &Native::wall_s, 1, INT_MAX, NativeOption::time},
                                           {"--attempts", &Native::attempts, 1, 255, NativeOption::number},
                                           {"--notice", &Native::notice, 0, INT_MAX, NativeOption::number},
                                           {"--thrash", &Native::thrash, 0, INT_MAX, NativeOption::number}};
// Of qsub: -l NAME=VALUE is the option; memory is for each slot of -pe.
struct QsubResource {
    const char *name, *option;
};
constexpr QsubResource qsub_resources[] = {{"h_rt", "--wall"},       {"s_rt", "--wall"},
                                           {"h_vmem", "--memory"},   {"s_vmem", "--memory"},
                                           {"mem_free", "--memory"}, {"virtual_free", "--memory"}};
constexpr const char *qsub_without_influence[] = {"-b", "-shell", "-w", "-p", "-j", "-R", "-r", "-m", "-P", "-A"};

Outcome wrong_native(const std::string &why) {
    return {DRMAA_ERRNO_DENIED_BY_DRM, std::string(DRMAA_NATIVE_SPECIFICATION) + ": " + why +
                                           "; it has --class NAMES, --cores N, --memory MB, --wall TIME, --attempts N, "
                                           "--notice MINUTES, --thrash N, --urgent, -V, and of qsub -pe NAME N and -l "
                                           "with h_rt, h_vmem, mem_free"};
}

// -1: it is no number.
long number_of(const std::string &text, const NativeOption &option) {
    if (option.unit == NativeOption::time) return duration(text);
    std::string digits = text;
    const char letter = digits.empty() ? '0' : digits.back();
    const bool unit = option.unit == NativeOption::megabytes && (letter == 'G' || letter == 'M');
    if (unit) digits.pop_back();
    const bool sound = !digits.empty() && digits.size() < 10 &&
                       std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
    return sound ? std::stol(digits) * (letter == 'G' ? 1024 : 1) : -1;
}

Outcome set_number(const std::string &name, const std::string &value, const std::string &told, Native &native) {
    const auto option = std::find_if(std::begin(native_options), std::end(native_options),
                                     [&](const NativeOption &o) { return name == o.name; });
    if (option == std::end(native_options)) return wrong_native("there is no option " + told);
    const long number = number_of(value, *option);
    if (number < option->least || number > option->most)
        return wrong_native(told + " is " + value + ", not a value from " + std::to_string(option->least) + " to " +
                            std::to_string(option->most));
    native.*option->field = number;
    return {};
}

Outcome set_resources(const std::string &list, Native &native, bool &memory_for_each) {
    std::istringstream parts(list);
    std::string part;
    while (std::getline(parts, part, ',')) {
        const std::string name = part.substr(0, part.find('='));
        const auto resource = std::find_if(std::begin(qsub_resources), std::end(qsub_resources),
                                           [&](const QsubResource &r) { return name == r.name; });
        if (resource == std::end(qsub_resources) || name.size() == part.size())
            return wrong_native("there is no -l " + part);
        if (Outcome o = set_number(resource->option, part.substr(name.size() + 1), "-l " + name, native); !o.good())
            return o;
        memory_for_each = memory_for_each || resource->option == std::string("--memory");
    }
    return {};
}

}  // namespace

Outcome read_native(const std::string &text, Native &native) {
    std::istringstream words(text);
    std::string word, value;
    bool memory_for_each = false;
    while (words >> word) {
        if (word == "-V" || word == "--urgent" || word == "-cwd") {  // the program's directory is the job's in any case
            if (word == "-V") native.environment = true;
            if (word == "--urgent") native.urgent = true;
            continue;
        }
        const std::size_t equals = word.find('=');
        const std::string name = word.substr(0, equals);
        if (equals != std::string::npos) value = word.substr(equals + 1);
        else if (!(words >> value)) return wrong_native(name + " has no value, or is no option");
        const auto ignored = [&](const char *other) { return name == other; };
        if (std::any_of(std::begin(qsub_without_influence), std::end(qsub_without_influence), ignored)) continue;
        Outcome outcome;
        if (name == "--class") native.classes = value;
        else if (name == "-l") outcome = set_resources(value, native, memory_for_each);
        else if (name == "-pe")
            outcome = words >> value ? set_number("--cores", value, name, native) : wrong_native("-pe has no number");
        else outcome = set_number(name, value, name, native);
        if (!outcome.good()) return outcome;
    }
    if (memory_for_each) native.memory_mb = std::min<long>(INT_MAX, native.memory_mb * std::max(1L, native.cores));
    return {};
}

}  // namespace dcs::drmaa
