// The start of a grain. As much as possible is checked before the fork.
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <optional>
#include <vector>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/planted.h"
#include "base/require.h"
#include "base/resources.h"
#include "base/text.h"
#include "grainserver/files/launcher_calls.h"
#include "grainserver/files/owner_rules.h"
#include "grainserver/files/room.h"
#include "grainserver/starter/container.h"
#include "grainserver/starter/starter.h"

namespace dcs::starter {
namespace {
constexpr Duration blocked_pause = seconds(60);

// The command to execute: the program, or the host's runner followed by the program's path and arguments.
std::vector<std::string> command(const files::LaunchRecord &launch) {
    DCS_REQUIRE(!launch.argv.empty(), "a record without a program was refused before");
    if (launch.runner.empty()) return launch.argv;
    std::vector<std::string> words;
    for (const std::string &word : launch.runner) words.push_back(word == "{name}" ? launch.argv[0] : word);
    words.push_back(launch.program);
    words.insert(words.end(), launch.argv.begin() + 1, launch.argv.end());
    return words;
}

bool begins(const std::string &text, const char *start) { return text.rfind(start, 0) == 0; }

// DCS_UMASK of the grain's environment, in octal, by which `dcs run` and `dcs map` pass their caller's; without one
// only the grain's account may read what it makes.
mode_t umask_of(const std::vector<std::string> &env) {
    constexpr std::string_view name = "DCS_UMASK=";
    for (const std::string &item : env) {
        if (!begins(item, name.data())) continue;
        unsigned mask = 0;
        const char *end = item.data() + item.size();
        const auto [stop, error] = std::from_chars(item.data() + name.size(), end, mask, 8);
        if (error == std::errc() && stop == end && mask <= 0777) return mask;
    }
    return 077;
}

std::vector<std::string> environment(files::LaunchRecord &launch, const std::string &directory,
                                     const GivenResources &given) {
    std::vector<std::string> env = std::move(launch.env);
    std::erase_if(env, [&](const std::string &item) {
        return begins(item, "DCS_GRAIN_DIR=") || begins(item, "DCS_GRAIN_SEQUENCE=") ||
               is_resource_variable(item, given);
    });
    for (std::string &item : resource_environment(given)) env.push_back(std::move(item));
    env.push_back("DCS_GRAIN_DIR=" + directory);
    env.push_back("DCS_GRAIN_SEQUENCE=" + std::to_string(launch.next_seq));
    return env;
}

void wait_for_end(pid_t pid) {
    int status = 0;
    for (;;) {
        const pid_t ended = ::waitpid(pid, &status, 0);  // also reports the stop at the exec
        if (ended < 0 ? errno != EINTR : WIFEXITED(status) || WIFSIGNALED(status)) return;
    }
}

// Owns the data that the plan points to; lives until after the fork.
struct StartMaterial {
    files::Room room;
    Fd archive;
    std::string out, err;
    std::vector<std::string> words, env;
    std::vector<char *> argv_list, env_list;
    const files::Confinement *confinement = nullptr;
    std::vector<int> joins;
    std::optional<cpu_set_t> cpus;
    Plan plan;
};

std::optional<cpu_set_t> cpus_of(const Indices &indices) {
    const auto its = indices.find(cpu_resource);
    if (its == indices.end() || its->second.empty()) return std::nullopt;
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const std::int32_t cpu : its->second)
        if (cpu < CPU_SETSIZE) CPU_SET(static_cast<std::size_t>(cpu), &set);
    return set;
}

// All that the grain demands, with the indices that the launcher has chosen, in the order of the names.
Result<GivenResources> given_to(const files::LaunchRecord &launch, const std::vector<std::int32_t> &chosen) {
    Result<GivenResources> given = given_of(launch.demands.resources, launch.offers, {});
    std::size_t next = 0;
    if (given)
        for (auto &[name, indices] : given->indices)
            for (std::int32_t &index : indices)
                if (next < chosen.size()) index = chosen[next++];
    return given;
}

void fill_plan(StartMaterial &p, const Fd &grain, const files::LaunchRecord &launch) {
    DCS_REQUIRE(grain && p.room.fd, "the directory of the grain and its room are open");
    DCS_REQUIRE(!p.argv_list.empty() && p.argv_list.back() == nullptr && p.env_list.back() == nullptr,
                "both lists for execve are terminated");
    Plan &plan = p.plan;
    plan.grain = grain.get();
    plan.room = p.room.fd.get();
    plan.used_again = file_exists(grain.get(), files::pid_name);
    plan.out = p.out.c_str();
    plan.err = p.err.c_str();
    plan.directory = launch.directory.empty() ? nullptr : launch.directory.c_str();
    plan.program = launch.program.c_str();
    plan.contained = files::image_of(launch.files) != nullptr;
    if (plan.contained || !launch.runner.empty()) plan.runner = p.words[0].c_str();
    plan.argv = p.argv_list.data();
    plan.env = p.env_list.data();
    plan.umask = umask_of(p.env);
    plan.joins = p.joins.data();
    plan.join_count = static_cast<int>(p.joins.size());
    plan.change_user = launch.account.change;
    plan.uid = launch.account.uid;
    plan.gid = launch.account.gid;
    plan.groups = launch.account.groups.data();
    plan.group_count = static_cast<unsigned>(launch.account.groups.size());
    plan.confinement = p.confinement;
    if (p.cpus) plan.cpus = &*p.cpus;
    plan.file_bytes = static_cast<std::uint64_t>(launch.limits.file_mb) << 20;
}

// The control group that the launcher has chosen, if there is one, has the limits of the grain.
Status suits(const Leaf *leaf, const Request &request, const files::LaunchRecord &launch, const Devices &denied) {
    if (leaf == nullptr && !request.leaf.empty())
        return fail(Code::io_error, "control group of the grain: there is none");
    const bool limits = leaf == nullptr || (leaf->processes_max == launch.limits.processes &&
                                            leaf->memory_max_mb == launch.limits.memory_mb);
    if (!limits && !planted("starter.any_leaf"))
        return fail(Code::refused, "control group of the grain: it has other limits than the grain");
    const bool devices = leaf == nullptr ? denied.empty() || request.ask == Ask::prove : leaf->denied == denied;
    if (!devices) return fail(Code::io_error, "its control group does not keep the GPUs of other grains from it");
    return Status::ok();
}

Answer failed(const Status &s) { return {.status = s}; }
Answer failed(Code code, const std::string &text) { return failed(fail(code, text)); }
}  // namespace

bool lower_session_priority(pid_t pid) {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/autogroup", static_cast<int>(pid));
    const Fd fd(::open(path, O_WRONLY | O_CLOEXEC));
    if (!fd) return true;  // the kernel lacks it, or the process has ended
    return ::write(fd.get(), "19", 2) == 2 || errno != EAGAIN;
}

// Checks the owner's present rules: the server may have been restarted with other options.
Status Starter::allowed(const files::LaunchRecord &launch) {
    const Result<const files::OwnerRules *> rules = prepared_.rules(base_.get());
    if (!rules)
        return fail(Code::io_error, "the rules of this host's owner cannot be read (" + rules.status().text +
                                        "): dcs_grainserver writes them when it starts");
    const Status s = files::permits(**rules, launch, files::logins_of_this_host());
    if (s && launch.account.change) {
        accounts_.insert(launch.account.uid);
        leftovers_.runs_again(launch.account.uid);
    }
    return s ? s : fail(Code::io_error, s.text);
}

// The grains of an account that holds up the starter wait for a while, so that others' start.
Status Starter::blocked(const files::LaunchRecord &launch) {
    if (launch.account.change) blocked_[launch.account.uid] = boot_clock() + blocked_pause;
    return fail(Code::io_error, "its program or its working directory could not be opened within " +
                                    std::to_string(exec_seconds) +
                                    " s: another process has a lease on it, or its file system does not answer");
}

Status Starter::may_try(const files::LaunchRecord &launch) {
    const Instant now = boot_clock();
    std::erase_if(blocked_, [&](const auto &account) { return account.second <= now; });
    if (!launch.account.change || blocked_.count(launch.account.uid) == 0) return Status::ok();
    return fail(Code::io_error,
                "the program of another grain of this user could not be opened; this host tries the user's "
                "next one after a minute");
}

Answer Starter::start(const Request &request) {
    const Result<Fd> grain = open_directory(grains_.get(), request.dir);
    if (!grain) return failed(Code::io_error, "directory of the grain: " + grain.status().text);
    const Result<std::string> bytes = files::read_record(grain->get(), files::launch_name);
    Result<files::LaunchRecord> launch =
        bytes ? files::unpack_launch(*bytes) : Result<files::LaunchRecord>(bytes.status());
    if (!launch) return failed(Code::io_error, launch.status().text);
    if (launch->argv.empty() || launch->program.empty() ||
        (launch->program[0] != '/' && files::image_of(launch->files) == nullptr))
        return failed(Code::invalid, "the launch record names no program");
    Status permitted;
    filter_.with_network([&] { permitted = allowed(*launch); });  // it looks for logins
    if (!permitted) return failed(permitted);
    if (const Status s = may_try(*launch); !s) return failed(s);
    counts_.erase(request.dir);
    return run(request, *grain, *launch);
}

Starter::Forked Starter::fork(Plan &plan) {
    Forked forked;
    static const std::int64_t tick_ns = 1'000'000'000 / std::max(::sysconf(_SC_CLK_TCK), 1l);
    plan.filtered = filter_.is_inherited(plan);
    plan.told = limit_.begin();
    if (plan.told == nullptr) return {-1, ENOMEM, false};
    plan.start_by_clock = clock_agrees_;
    plan.tick_ns = tick_ns;
    const auto start = [&] {
        plan.forked_ns = boot_clock().ns;
        forked.pid = fork_grain(plan);
        forked.error = errno;
    };
    if (plan.filtered) start();
    else filter_.without(start);
    forked.took_too_long = limit_.end();
    clock_agrees_ = clock_agrees_ || plan.told->clock_agrees;
    return forked;
}

Answer Starter::run(const Request &request, const Fd &grain, files::LaunchRecord &launch) {
    StartMaterial p;
    const bool prove = request.ask == Ask::prove;
    Result<files::Room> room = files::open_room(grain.get());
    if (!room) return failed(Code::io_error, room.status().text);
    p.room = std::move(*room);
    const auto confinement = prepared_.confinement({launch.rungs, p.room.fd.get(), launch.writable});
    if (!confinement) return failed(Code::io_error, "confinement of the grain: " + confinement.status().text);
    const Result<GivenResources> given = given_to(launch, request.list);
    if (!given) return failed(given.status());
    const std::string grains = directory_ + "/" + files::grains_folder;
    p.confinement = *confinement;
    p.out = files::out_name(launch.next_seq);
    p.err = files::err_name(launch.next_seq);
    p.env = environment(launch, grains + "/" + request.dir + "/" + files::room_name, *given);
    if (files::image_of(launch.files) != nullptr) {
        Result<ImagePlace> image = place_image(base_.get(), directory_, launch);
        if (!image) return failed(image.status());
        if (const auto rules = prepared_.rules(base_.get())) image->images_mb = (*rules)->images_mb;
        p.words = container_command(launch, grains, *image, gpus_of(*given, gpus_by_file()));
        p.archive = std::move(image->archive);
        p.plan.archive = p.archive.get();
    } else {
        p.words = command(launch);
    }
    p.cpus = cpus_of(given->indices);
    const Devices denied = denied_to(cgroups_, launch, *given);
    const auto leaf = leaves_.find(request.leaf);
    const Leaf *const group = leaf == leaves_.end() ? nullptr : &leaf->second;
    if (const Status wrong = suits(group, request, launch, denied); !wrong) return failed(wrong);
    for (std::size_t i = 0; group != nullptr && i < group->joins.size(); ++i) p.joins.push_back(group->joins[i].get());
    if (group != nullptr) p.plan.group = group->directory.get();
    if (gpus_by_file()) number_for_cuda(p.env, *given, denied, files::image_of(launch.files) != nullptr);
    p.argv_list = pointers_to(p.words);
    p.env_list = pointers_to(p.env);
    fill_plan(p, grain, launch);
    p.plan.own_memory = launch.limits.memory_mb > 0;
    p.plan.boot_id = boot_id_.c_str();
    p.plan.parent = prove ? ::getpid() : launcher_;
    p.plan.only_prove = prove;
    p.plan.modest = modest();
    cgroups_.weigh(p.plan.modest);  // the owner may have changed it since the launcher started
    // The sum over all grains of the user on this host, as a first barrier; the limit itself is checked separately.
    if (launch.account.made_up && launch.limits.processes > 0 && (group == nullptr || !group->processes))
        p.plan.user_processes =
            static_cast<std::uint64_t>(launch.limits.processes) * static_cast<std::uint64_t>(request.number);
    failpoint("launcher.start.before_fork");
    const Forked forked = fork(p.plan);
    failpoint("launcher.start.after_fork");
    const pid_t pid = forked.pid;
    if (pid < 0)
        return failed(Code::io_error,
                      std::string("cannot create a process for the grain: ") + std::strerror(forked.error));
    DCS_REQUIRE(pid > 1, "only the parent returns from fork_grain");
    Answer answer{.value = prove ? 0 : pid, .failure = p.plan.told->failure, .start_ticks = p.plan.told->start_ticks};
    if (answer.failure || forked.took_too_long) {
        answer.status = forked.took_too_long ? blocked(launch) : fail(Code::io_error, "");
        if (!prove) remove_file(grain.get(), files::pid_name);
    } else if (!prove) {
        answer.bits =
            !p.plan.modest || (group != nullptr && group->weighed) || lower_session_priority(pid) ? is_lowered : 0;
    }
    if (!prove) return answer;
    failpoint("launcher.prove.before_kill");
    ::kill(pid, SIGKILL);
    wait_for_end(pid);
    return answer;
}

}  // namespace dcs::starter
