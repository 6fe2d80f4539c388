// dcs_lock get and put: GetLock and ReleaseCurrentLock of the paper for shell scripts. The script's own process is the
// holder; a keeper process has the kernel lock as long as the script lives.
#include <csignal>

#include <fcntl.h>
#include <unistd.h>

#include "base/clock.h"
#include "call.h"
#include "keeper.h"
#include "quantity.h"
#include "request.h"
#include "say.h"

namespace dcs::lock_command {
namespace {

Result<ProcessIdentity> script_of(const Options &options) {
    const pid_t pid = options.holder != 0 ? options.holder : ::getppid();
    if (pid <= 1) return fail(Code::invalid, "the calling script has ended; call dcs_lock from a script that runs on");
    const auto script = identify(pid);
    if (!script)
        return fail(Code::not_found, "process " + std::to_string(pid) +
                                         " does not run; --holder must name the script, as in "
                                         "--holder $$");
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
    Outcome outcome;
    outcome.name = name;
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
    Outcome outcome;
    outcome.name = name;
    outcome.result = "released";
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

}  // namespace dcs::lock_command
