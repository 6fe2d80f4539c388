// dcs_lock get and put: GetLock and ReleaseCurrentLock of the paper for shell scripts. The script's own process is the
// holder; a keeper process has the kernel lock as long as the script lives.
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "call.h"
#include "quantity.h"
#include "request.h"
#include "say.h"
#include "base/failpoint.h"
#include "process/table.h"
#include "locks/files/lock_search.h"
#include "locks/files/world.h"
#include "locks/adaptive_lock.h"
#include "locks/counted_slots.h"
#include "locks/spawn.h"
#include "base/json.h"
#include "base/text.h"

namespace dcs::lock_command {
namespace {

// The process that holds a lock on behalf of a shell script. The script cannot: a lock belongs to an open file
// description, and a program that the script calls has ended before the next line.

constexpr int keeper_done = SIGUSR1, keeper_failed = SIGUSR2;  // sent by `put`

locks::Owner owner_of(const locks::World &world, const ProcessIdentity &script) {
    locks::Owner owner = locks::owner_by_kernel(world, script);
    owner.supervisor = own_identity();
    // A session contains only descendants of its leader; a group may contain the other end of a pipe.
    if (::getsid(script.pid) == script.pid) owner.session = script.pid;
    return owner;
}

// CPU time of the script and of its children, ended or not, as the measure of progress.
std::uint64_t ticks_of(pid_t script) {
    std::vector<pid_t> family = {script};
    std::uint64_t ticks = 0;
    const auto all = all_processes();
    for (bool grown = true; grown;) {
        grown = false;
        for (const ProcessStat &process : all)
            if (std::find(family.begin(), family.end(), process.parent) != family.end() &&
                std::find(family.begin(), family.end(), process.pid) == family.end()) {
                family.push_back(process.pid);
                grown = true;
            }
    }
    for (const ProcessStat &process : all)
        if (std::find(family.begin(), family.end(), process.pid) != family.end())
            ticks += process.user_ticks + process.system_ticks;
    return ticks;
}

// Runs until it receives a signal to end.
class Keeper {
public:
    Keeper(const locks::World &world, const locks::Owner &owner, const locks::KillGrace &grace,
           locks::AdaptiveLock lock, locks::Slots slots)
        : world_(world),
          owner_(owner),
          grace_(grace),
          lock_(std::move(lock)),
          slots_(std::move(slots)),
          started_(world.now().mono),
          soft_(lock_.soft()),
          hard_(std::max(lock_.soft(), lock_.hard())),
          measured_(soft_ == hard_),
          extended_(soft_ == hard_) {}

    [[noreturn]] void stay(int signals, const ProcessHandle &script) {
        for (;;) {
            pollfd waits[2] = {{signals, POLLIN, 0}, {script.fd(), POLLIN, 0}};
            const std::int64_t rest = next_look() - (world_.now().mono - started_);
            timespec until = {static_cast<time_t>(std::max<std::int64_t>(0, rest) / locks::second),
                              static_cast<long>(std::max<std::int64_t>(0, rest) % locks::second)};
            ::ppoll(waits, 2, next_look() == locks::no_limit ? nullptr : &until, nullptr);
            if (waits[0].revents != 0) take_signal(signals);
            if (waits[1].revents != 0) end(locks::Outcome::crashed);
            look_at_the_limit();
        }
    }

private:
    // At two thirds of the soft limit it reads the CPU time, so that it can tell progress at the limit.
    std::int64_t next_look() const {
        if (expiring_) return retry_;
        if (soft_ == locks::no_limit) return locks::no_limit;
        return !measured_ ? soft_ / 3 * 2 : !extended_ ? soft_ : hard_;
    }

    void look_at_the_limit() {
        if (next_look() == locks::no_limit || world_.now().mono - started_ < next_look()) return;
        if (!expiring_ && !measured_) {
            ticks_ = ticks_of(owner_.process.pid);
            measured_ = true;
            return;
        }
        if (!expiring_ && !extended_ && ticks_of(owner_.process.pid) > ticks_) {
            extended_ = true;
            return;
        }
        expire();
    }

    void expire() {
        locks::Owner alone = owner_;
        alone.supervisor = {};  // that is the keeper
        if (locks::kill_carefully(world_, alone, grace_).result == locks::Killed::gone) end(locks::Outcome::expired);
        expiring_ = true;  // a process that cannot be ended keeps the lock; retried in a minute
        retry_ = world_.now().mono - started_ + 60 * locks::second;
    }

    void take_signal(int signals) {
        signalfd_siginfo info = {};
        if (::read(signals, &info, sizeof info) != sizeof info) return;
        if (info.ssi_signo == keeper_done) end(locks::Outcome::done);
        if (info.ssi_signo == keeper_failed) end(locks::Outcome::failed);
        // A plain TERM is meant for the script, which gets it too at a shutdown; the lock lasts as long as the script.
        if (info.ssi_signo == SIGTERM && info.ssi_code == SI_QUEUE && info.ssi_int == locks::expire_request) expire();
    }

    [[noreturn]] void end(locks::Outcome outcome) {
        locks::AdaptiveLock::End last{.outcome = outcome, .progressing = extended_ && soft_ != hard_};
        lock_.release(last);
        if (slots_.held()) slots_.release();
        ::_exit(0);
    }

    const locks::World &world_;
    locks::Owner owner_;
    locks::KillGrace grace_;
    locks::AdaptiveLock lock_;
    locks::Slots slots_;
    std::int64_t started_, soft_, hard_, retry_ = 0;
    std::uint64_t ticks_ = 0;
    bool measured_, extended_, expiring_ = false;  // with a single limit, progress makes no difference
};

[[noreturn]] void be_keeper(const locks::World &world, const ProcessIdentity &script, const locks::KillGrace &grace,
                            locks::AdaptiveLock &lock, locks::Slots &slots, int told, sigset_t &signals) {
    std::vector<int> kept = slots.lock_fds();
    kept.insert(kept.end(), {lock.fd(), told});
    locks::leave_the_caller(std::move(kept));
    const int arriving = ::signalfd(-1, &signals, SFD_CLOEXEC);
    const auto handle = ProcessHandle::open(script);
    if (arriving < 0 || !handle) {  // the script has ended: the lock has no holder
        lock.release({locks::Outcome::crashed, {}, -1, -1, false});
        ::_exit(1);
    }
    const locks::Owner owner = owner_of(world, script);
    lock.set_owner(owner);
    if (slots.held()) slots.set_owner(world, owner);
    failpoint("lock_command.keeper.ready");
    const char ready = 'y';
    if (::write(told, &ready, 1) != 1) { /* the caller is gone; the script will release the lock or end */
    }
    ::close(told);
    Keeper(world, owner, grace, std::move(lock), std::move(slots)).stay(arriving, *handle);
}

// Starts the keeper, which records `script` as the holder, ends the script's tree at the limit of `lock`, and
// releases the lock at a signal or at the end of the script. Returns when it is ready; the caller has no lock then.
Status begin_keeping(const locks::World &world, const ProcessIdentity &script, const locks::KillGrace &grace,
                     locks::AdaptiveLock &lock, locks::Slots &slots) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno(Code::io_error, "cannot create a pipe to the keeper", errno);
    sigset_t signals, before;
    sigemptyset(&signals);
    for (int signal : {keeper_done, keeper_failed, SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPIPE})
        sigaddset(&signals, signal);
    ::sigprocmask(SIG_BLOCK, &signals, &before);  // early signals stay pending until the keeper reads them
    const pid_t child = ::fork();
    if (child == 0) {
        ::close(ends[0]);
        be_keeper(world, script, grace, lock, slots, ends[1], signals);
    }
    const int error = errno;
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    ::close(ends[1]);
    char ready = 0;
    ssize_t got = -1;
    while (child > 0 && (got = ::read(ends[0], &ready, 1)) < 0 && errno == EINTR) {}
    ::close(ends[0]);
    if (child < 0) return fail_errno(Code::io_error, "cannot start the keeper of the lock", error);
    lock.abandon();  // the keeper has it
    slots = locks::Slots();
    if (got != 1) return fail(Code::io_error, "the keeper of the lock ended at once; is the script still there?");
    return Status::ok();
}

Result<ProcessIdentity> script_of(const Options &options) {
    const pid_t pid = options.holder != 0 ? options.holder : ::getppid();
    if (pid <= 1)
        return fail(
            Code::invalid,
            "the calling script has ended, or is process 1 of a container, which no limit can end; call dcs_lock "
            "from a script that runs on, in a container below an init process (docker run --init)");
    const auto script = identify(pid);
    if (!script)
        return fail(Code::not_found, "process " + std::to_string(pid) +
                                         " does not run; --holder must name the script, as in --holder $$");
    if (::geteuid() != 0 && runs_as(pid, ::geteuid()) == RunsAs::no)
        return fail(Code::refused, "process " + std::to_string(pid) +
                                       " belongs to another user; --holder must name the script, as in --holder $$");
    return script;
}

// -j with get: takes a slot of the operator before the atom.
bool take_operator_slot(const locks::World &world, const Options &options, const locks::Deadline &until,
                        locks::Slots &slots, Outcome &outcome) {
    if (!options.at_most) return true;
    const auto wishes = slot_wishes(options);
    if (!wishes) {
        outcome = failed(shown_name(options), wishes.status());
        return false;
    }
    auto taken = locks::Slots::take(world, *wishes, until, shown_name(options).substr(0, 64), options.mode);
    if (taken) {
        slots = std::move(*taken);
        return true;
    }
    locks::Answer answer;
    const bool full = taken.status().code == Code::limit;
    answer.denied = full ? locks::Denied::busy : locks::Denied::failed;
    answer.status = taken.status();
    answer.text = taken.status().text;
    answer.ruling.again_in = locks::no_limit;
    outcome = denied(options, shown_name(options), answer);
    return false;
}

}  // namespace

int get_lock(const locks::World &world, const Options &options) {
    const std::string name = shown_name(options);
    const auto script = script_of(options);
    if (!script) return tell(options, failed(name, script.status()));
    Options asked = options;
    asked.adaptive = true;  // as in the paper: a busy atom is refused at once
    const locks::Deadline until = deadline_of(asked);
    const auto request = lock_request(world, asked, until);
    if (!request) return tell(options, failed(name, request.status()));
    Outcome outcome{.name = name};
    locks::Slots slots;
    if (!take_operator_slot(world, asked, until, slots, outcome)) return tell(options, outcome);
    locks::AdaptiveLock lock;
    locks::Answer answer = locks::AdaptiveLock::get(world, *request, lock);
    answer.text = with_name(answer.text, request->place);
    if (answer.denied != locks::Denied::no) {
        if (slots.held()) slots.release();
        return tell(options, denied(options, name, answer));
    }
    outcome.result = "taken";
    outcome.token = lock.generation();
    outcome.took_over = answer.took_over;
    outcome.after_crash = answer.after_crash;
    outcome.message = answer.text;
    outcome.quiet = !answer.took_over;
    const Status kept = begin_keeping(world, *script, options.grace, lock, slots);
    if (!kept) return tell(options, failed(name, kept));
    return tell(options, outcome);
}

int put_lock(const locks::World &world, const Options &options) {
    const std::string name = shown_name(options);
    const auto script = script_of(options);
    const auto place = atom_place(options);
    if (!script || !place) return tell(options, failed(name, script ? place.status() : script.status()));
    const auto state = locks::look_at(world, *place);
    if (!state) return tell(options, failed(name, state.status()));
    const locks::Owner &owner = state->record.owner;
    const bool running = state->held && state->record.outcome == locks::Outcome::running;
    if (!running || owner.process != *script || owner.supervisor.pid <= 1)
        return tell(options, failed(name, name + " is not held by process " + std::to_string(script->pid) +
                                              (running ? ", but by process " + std::to_string(owner.process.pid)
                                                       : std::string()) +
                                              "; only the script that took it can release it (--holder $$ names it)"));
    Outcome outcome{.name = name, .result = "released"};
    const auto keeper = ProcessHandle::open(owner.supervisor);
    if (!keeper && keeper.status().code != Code::not_found) return tell(options, failed(name, keeper.status()));
    if (!keeper) return tell(options, outcome);  // it ended just now, and the kernel released the lock
    if (const Status sent = keeper->signal(options.ended_badly ? keeper_failed : keeper_done); !sent)
        return tell(options, sent.code == Code::not_found ? outcome : failed(name, sent));
    if (!keeper->ended(boot_clock().ns + 60 * second_ns))
        return tell(options, failed(name, "the keeper, pid " + std::to_string(owner.supervisor.pid) +
                                              ", does not end; if it is stopped, kill -CONT it"));
    return tell(options, outcome);
}

// dcs_lock pass: judges all atoms of one script by the script's start time (the paper's `now`), so that they
// expire and elapse together.
int begin_pass(const locks::World &world, const Options &options) {
    const std::string text = pass_text(world);
    if (options.words.empty()) {
        if (options.json) print(JsonObject("dcs_lock.pass/1").add("DCS_LOCK_NOW", text).text() + "\n");
        else print("DCS_LOCK_NOW=" + text + "; export DCS_LOCK_NOW\n");
        return exits::ok;
    }
    ::setenv("DCS_LOCK_NOW", text.c_str(), 1);
    const std::vector<char *> argv = pointers_to(options.words);
    ::execvp(argv[0], argv.data());
    const int error = errno;
    Outcome outcome = failed("", options.words[0] + ": " + std::strerror(error));
    outcome.exit = error == ENOENT ? exits::not_found : exits::cannot_execute;
    return tell(options, outcome);
}

}  // namespace dcs::lock_command
