#include "order.h"

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <ctime>
#include <pwd.h>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

#include "base/option_table.h"
#include "base/text.h"

extern char **environ;

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

Outcome set_number(const std::string &name, const std::string &value, const std::string &told, Native &native) {
    const auto option = std::find_if(std::begin(native_options), std::end(native_options),
                                     [&](const NativeOption &o) { return name == o.name; });
    if (option == std::end(native_options)) return wrong_native("there is no option " + told);
    const long number = option->unit == NativeOption::time        ? duration(value)
                        : option->unit == NativeOption::megabytes ? megabytes_of_text(value).value_or(-1)
                                                                  : number_of(value, 0, INT_MAX).value_or(-1);
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

// Runs on the host, in the grain's own directory: becomes the command, in the job's directory and with the job's files.
// What cannot be done is written to the grain's own standard error. It goes in a variable, so that the words of the
// grain are readable.
constexpr const char *wrapper = R"(
dir=$1 in=$2 out=$3 err=$4 start=$5
shift 5
while now=$(date +%s); [ "$now" -lt "$start" ]; do sleep $((start - now)); done
cd "$dir" || exit 1
name="${JOB_NAME##*/}" id="${JOB_ID%:*}.${JOB_ID#*:}"
[ ! -d "$out" ] || out="$out/$name.o$id"
[ ! -d "$err" ] || err="$err/$name.e$id"
[ -z "$in" ] || exec <"$in"
[ -z "$out" ] || exec >"$out"
if [ "$err" = '&' ] || [ -n "$err" -a "$err" = "$out" ]; then exec 2>&1; elif [ -n "$err" ]; then exec 2>"$err"; fi
unset DCS_JOB_START
exec "$@"
)";
constexpr const char *usual_variables[] = {"PATH", "HOME",   "USER", "LOGNAME", "SHELL",
                                           "LANG", "LC_ALL", "TZ",   "DCS_DIR"};
constexpr const char *own_variables[] = {"DCS_GRAIN_DIR",     "DCS_GRAIN_SEQUENCE", "DCS_AUTH_FD",
                                         "DCS_PATIENCE_S",    "DCS_UMASK",          "DCS_JOB_START",
                                         "DCS_DRMAA_SESSION", "DCS_RESUME_FAILED"};

std::string name_of(const std::string &variable) { return variable.substr(0, variable.find('=')); }

template <class Names> bool is_one_of(const Names &names, const std::string &name) {
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

void put(std::vector<std::string> &environment, const std::string &variable) {
    const std::string name = name_of(variable);
    std::erase_if(environment, [&](const std::string &other) { return name_of(other) == name; });
    environment.push_back(variable);
}

std::string replaced(std::string text, const std::string &what, const std::string &with) {
    for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
        text.replace(at, what.size(), with);
    return text;
}

// A path as the host has it: placeholders replaced, a relative one below `base`.
std::string placed(std::string path, const Place &place, const std::string &directory, long index) {
    path = replaced(path, DRMAA_PLACEHOLDER_HD, place.home);
    path = replaced(path, DRMAA_PLACEHOLDER_WD, directory);
    if (index >= 0) path = replaced(path, DRMAA_PLACEHOLDER_INCR, std::to_string(index));
    return path.empty() || path[0] == '/' ? path : directory + "/" + path;
}

std::string file_of(const Template &job, const char *name, const Place &place, const std::string &directory,
                    long index) {
    const std::string value = value_of(job, name);
    return value.empty() ? value : placed(value.substr(value.find(':') + 1), place, directory, index);
}

std::string current_directory() {
    const char *told = std::getenv("PWD");
    struct stat named {
    }, true_one{};
    if (told && told[0] == '/' && stat(told, &named) == 0 && stat(".", &true_one) == 0 &&
        named.st_dev == true_one.st_dev && named.st_ino == true_one.st_ino)
        return told;
    std::string path(4096, 0);
    return getcwd(path.data(), path.size()) ? path.c_str() : "/";
}

void limit_run(const Template &job, Order &order) {
    for (const char *name : {DRMAA_WCT_HLIMIT, DRMAA_DURATION_HLIMIT})
        if (const std::string limit = value_of(job, name); !limit.empty()) {
            const long seconds = std::max(1L, duration(limit));
            order.native.wall_s = order.native.wall_s ? std::min(order.native.wall_s, seconds) : seconds;
        }
}

void put_variables(const Template &job, const Place &place, const std::string &job_id, long index, Order &order) {
    order.environment = order.native.environment ? place.whole_environment : place.environment;
    for (const std::string &variable : list_of(job, DRMAA_V_ENV)) put(order.environment, variable);
    put(order.environment, "JOB_ID=" + job_id);
    put(order.environment, "JOB_NAME=" + order.label);
    put(order.environment, "SGE_TASK_ID=" + (index >= 0 ? std::to_string(index) : std::string("undefined")));
    put(order.environment, "DCS_UMASK=" + place.umask);
    put(order.environment, std::string("DCS_JOB_START=") + wrapper);
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

Place this_place() {
    Place place;
    const char *home = std::getenv("HOME");
    const passwd *user = home && home[0] == '/' ? nullptr : getpwuid(geteuid());
    place.home = home && home[0] == '/' ? home : user ? user->pw_dir : "/";
    place.directory = current_directory();
    const mode_t mask = umask(077);
    umask(mask);
    char text[8];
    std::snprintf(text, sizeof text, "%04o", static_cast<unsigned>(mask));
    place.umask = text;
    for (char **variable = environ; variable && *variable; ++variable) {
        const std::string name = name_of(*variable);
        if (is_one_of(usual_variables, name)) place.environment.push_back(*variable);
        if (!is_one_of(own_variables, name)) place.whole_environment.push_back(*variable);
    }
    std::sort(place.environment.begin(), place.environment.end());
    return place;
}

Outcome make_order(const Template &job, const Place &place, const std::string &job_id, long index, Order &order) {
    const std::string command = value_of(job, DRMAA_REMOTE_COMMAND);
    if (command.empty())
        return {DRMAA_ERRNO_DENIED_BY_DRM, std::string(DRMAA_REMOTE_COMMAND) + " is not set: it names the program"};
    if (Outcome o = read_native(value_of(job, DRMAA_NATIVE_SPECIFICATION), order.native); !o.good()) return o;
    if (const std::string category = value_of(job, DRMAA_JOB_CATEGORY); !category.empty()) {
        if (order.native.classes.empty()) order.native.classes = category;
    }
    const std::string name = value_of(job, DRMAA_JOB_NAME);
    order.label = (name.empty() ? command.substr(command.rfind('/') + 1) : name).substr(0, 200);
    std::string directory = value_of(job, DRMAA_WD);
    directory = directory.empty() ? place.directory : placed(directory, place, place.home, index);
    const std::string out = file_of(job, DRMAA_OUTPUT_PATH, place, directory, index);
    std::string err = file_of(job, DRMAA_ERROR_PATH, place, directory, index);
    if (value_of(job, DRMAA_JOIN_FILES) == "y") err = "&";
    const long now = std::time(nullptr);
    const std::string when = value_of(job, DRMAA_START_TIME);
    const long start = when.empty() ? 0 : start_time(when, now);
    limit_run(job, order);
    if (start > now && order.native.wall_s)
        return {DRMAA_ERRNO_CONFLICTING_ATTRIBUTE_VALUES,
                std::string(DRMAA_START_TIME) +
                    " is in the future, and the job has a time limit, which would count the wait"};
    order.arguments = {"/bin/sh", "-c",      "eval \"$DCS_JOB_START\"",
                       "job",     directory, file_of(job, DRMAA_INPUT_PATH, place, directory, index),
                       out,       err,       std::to_string(start),
                       command};
    const auto &rest = list_of(job, DRMAA_V_ARGV);
    order.arguments.insert(order.arguments.end(), rest.begin(), rest.end());
    put_variables(job, place, job_id, index, order);
    return {};
}

int submit(d_pool *pool, int session, const std::vector<Order> &orders, std::size_t &taken) {
    std::vector<std::vector<char *>> texts;
    std::vector<d_grain_order> grains(orders.size());
    texts.reserve(2 * orders.size());
    for (std::size_t i = 0; i < orders.size(); ++i) {
        const Order &order = orders[i];
        d_grain_order_init(&grains[i], order.number);
        d_grain &grain = grains[i].grain;
        grain.gargv = texts.emplace_back(pointers_to(order.arguments)).data();
        grain.genvv = texts.emplace_back(pointers_to(order.environment)).data();
        grain.label = order.label.c_str();
        grain.host_class = order.host_class;
        grain.cores = static_cast<int>(order.native.cores);
        grain.memory_mb = static_cast<int>(order.native.memory_mb);
        grain.wall_s = static_cast<int>(order.native.wall_s);
        grain.attempts = static_cast<int>(order.native.attempts);
        grain.notice = static_cast<int>(order.native.notice);
        grain.thrash = static_cast<int>(order.native.thrash);
        grain.urgent = order.native.urgent;
    }
    return d_pool_gexec_many(pool, session, grains.data(), grains.size(), &taken, nullptr);
}

}  // namespace dcs::drmaa
