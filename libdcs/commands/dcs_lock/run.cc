// dcs_lock NAME CMD: takes all locks or none, runs the command, releases them.
#include <algorithm>
#include <cstdlib>
#include <string_view>

#include <fcntl.h>
#include <unistd.h>

#include "base/planted.h"
#include "call.h"
#include "process/table.h"
#include "locks/files/run_log.h"
#include "quantity.h"
#include "request.h"
#include "say.h"

namespace dcs::lock_command {
namespace {

using locks::Keep;

struct Holdings {
    locks::Slots slots;
    locks::AdaptiveLock atom;
    std::string slots_name, slots_directory;  // for the log; empty: no slots
};

// Slots without an atom have no record, so their transactions are logged here.
void log_slots(const locks::World &world, const Holdings &held, const char *event, const locks::RunEnd *end,
               const std::string &text) {
    if (held.slots_directory.empty()) return;
    locks::LogLine line;
    line.wall = world.now().wall;
    line.name = held.slots_name;
    line.event = event;
    line.pid = ::getpid();
    line.uid = ::geteuid();
    line.text = text;
    if (end != nullptr) {
        line.runtime = end->runtime;
        line.cpu = end->cpu;
        line.io = end->io;
    }
    locks::append_log(held.slots_directory, line);
}

// True: taken, or none were requested. False: `outcome` gives the reason.
bool take_slots(const locks::World &world, const Options &options, const locks::Deadline &until, Holdings &held,
                Outcome &outcome) {
    const std::string name = shown_name(options);
    const auto wishes = slot_wishes(options);
    if (!wishes) {
        outcome = failed(name, wishes.status());
        return false;
    }
    if (wishes->empty()) return true;
    std::string note;
    for (const std::string &word : options.words) note += (note.empty() ? "" : " ") + word;
    auto slots = locks::Slots::take(world, *wishes, until, note.substr(0, 64), options.mode);
    if (auto encoded = locks::encoded_name(wishes->front().place.atom)) held.slots_name = *encoded;
    held.slots_directory = wishes->front().place.directory;
    if (slots) {
        held.slots = std::move(*slots);
        outcome.slots = held.slots.numbers();
        return true;
    }
    if (slots.status().code == Code::limit) {
        locks::Answer answer{.denied = locks::Denied::busy, .text = slots.status().text};
        for (const locks::SlotWish &wish : *wishes) answer.text = with_name(answer.text, wish.place);
        answer.ruling.again_in = locks::no_limit;
        outcome = denied(options, name, answer);
        log_slots(world, held, "busy", nullptr, answer.text);
    } else {
        outcome = failed(name, slots.status());
    }
    return false;
}

bool take_atom(const locks::World &world, const Options &options, const locks::Deadline &until, Holdings &held,
               Outcome &outcome) {
    if (!options.has_atom() || options.slots_only()) return true;
    const std::string name = shown_name(options);
    const auto request = lock_request(world, options, until);
    if (!request) {
        outcome = failed(name, request.status());
        return false;
    }
    locks::Answer answer = locks::AdaptiveLock::get(world, *request, held.atom);
    answer.text = with_name(answer.text, request->place);
    if (answer.denied != locks::Denied::no) {
        outcome = denied(options, name, answer);
        return false;
    }
    outcome.token = held.atom.generation();
    outcome.elapsed = answer.ruling.elapsed;
    outcome.took_over = answer.took_over;
    outcome.after_crash = answer.after_crash;
    if (!answer.text.empty() && (answer.took_over || options.verbose) && !options.json) complain(answer.text);
    return true;
}

// Processes that the command left running have copies of the locks and, with Keep::both, hold them until they end.
bool left_something(const Options &options, const locks::RunEnd &end) {
    return end.started && options.keep == Keep::both && !own_children().empty() &&
           !planted("lock_command.strays_lose_it");
}

void release(const locks::World &world, const Options &options, Holdings &held, const locks::RunEnd &end) {
    const bool left = left_something(options, end);
    if (held.atom.held()) {
        locks::AdaptiveLock::End last;
        last.outcome = end.started ? end.outcome : locks::Outcome::failed;
        last.ended = end.ended;
        last.cpu = end.cpu;
        last.io = end.io;
        last.progressing = end.progressing;
        last.inherited = left;
        held.atom.release(last);
    }
    if (!held.slots.held()) return;
    if (!options.has_atom() || options.slots_only())
        log_slots(world, held, locks::outcome_name(end.outcome), &end, shown_name(options));
    if (left) held.slots.abandon();
    else held.slots.release();
}

void describe_end(const locks::RunEnd &end, std::int64_t limit, Outcome &outcome) {
    outcome.ran = end.started;
    outcome.exit = end.status;
    outcome.result = end.started ? locks::outcome_name(end.outcome) : "error";
    outcome.message = end.text;
    outcome.runtime = end.started ? end.runtime : -1;
    outcome.cpu = end.started ? end.cpu : -1;
    if (!end.started || !outcome.message.empty()) return;
    outcome.quiet = end.outcome != locks::Outcome::expired;
    if (outcome.quiet)
        outcome.message = outcome.name + ": ran " + spoken(end.runtime) + ", exit code " + std::to_string(end.status);
    else if (end.runtime >= limit)
        outcome.message = outcome.name + ": ended after " + spoken(end.runtime) + ", at its limit; set another with -e";
    else
        outcome.message = outcome.name + ": ended after " + spoken(end.runtime) +
                          " on request, by dcs_lock break or by a requester with a shorter limit";
}

locks::Supervision supervision_of(const locks::World &world, const Options &options, Holdings &held) {
    locks::Supervision what{
        .argv = options.words, .keep = options.keep, .lock_fds = held.slots.lock_fds(), .grace = options.grace};
    if (held.atom.held()) {
        what.lock_fds.push_back(held.atom.fd());
        if (!options.literal) {  // in the paper only the next requester ends a holder
            what.soft = held.atom.soft();
            what.hard = held.atom.hard();
        }
        what.environment.push_back("DCS_LOCK_TOKEN=" + std::to_string(held.atom.generation()));
        what.cookie = held.atom.cookie();
    }
    what.started = [&world, &held](const locks::Owner &owner) {
        if (held.atom.held()) held.atom.set_owner(owner);
        if (held.slots.held()) held.slots.set_owner(world, owner);
    };
    what.ended = [&world, &options, &held, limit = what.soft](const locks::RunEnd &end) {
        release(world, options, held, end);
        Outcome outcome{.name = shown_name(options)};
        describe_end(end, limit, outcome);
        if (!outcome.quiet) complain(outcome.message);
    };
    return what;
}

// Without a lock, because locking failed and --fail-open was given.
int run_unlocked(const locks::World &world, const Options &options, const Outcome &why) {
    complain(why.message + "; running without the lock (--fail-open)");
    locks::Supervision what;
    what.argv = options.words;
    what.keep = options.keep == Keep::fd || options.keep == Keep::exec ? Keep::fd : Keep::leader;
    const locks::RunEnd end = locks::supervise(world, what);
    Outcome outcome{.name = shown_name(options)};
    describe_end(end, locks::no_limit, outcome);
    return tell(options, outcome);
}

bool is_there(const std::string &command) {
    if (command.find('/') != std::string::npos) return ::access(command.c_str(), X_OK) == 0;
    const char *path = std::getenv("PATH");
    for (std::string_view rest = path != nullptr ? path : ""; !rest.empty();) {
        const std::string_view folder = rest.substr(0, rest.find(':'));
        if (::access((std::string(folder) + "/" + command).c_str(), X_OK) == 0) return true;
        rest.remove_prefix(std::min(rest.size(), folder.size() + 1));
    }
    return false;
}

}  // namespace

int run_command(const locks::World &world, const Options &options) {
    if (options.report_fd >= 0 && ::fcntl(options.report_fd, F_SETFD, FD_CLOEXEC) != 0)
        return tell(options, failed("", "--report " + std::to_string(options.report_fd) +
                                            ": that descriptor is not open; open it, as in 3>report"));
    if (!options.if_not_found.empty() && !is_there(options.words[0]))
        return tell(options, failed("", options.if_not_found));
    Holdings held;
    Outcome outcome{.name = shown_name(options)};
    const std::int64_t asked = world.now().mono;
    const locks::Deadline until = deadline_of(options);
    // Slots first: returning them leaves no trace, but an atom that was taken counts as run.
    if (!take_slots(world, options, until, held, outcome) || !take_atom(world, options, until, held, outcome)) {
        if (held.slots.held()) held.slots.release();
        if (outcome.exit == exits::failed && !outcome.wrong_use &&
            (options.fail_open || planted("lock_command.fails_open")))
            return run_unlocked(world, options, outcome);
        return tell(options, outcome);
    }
    outcome.waited = world.now().mono - asked;
    if (options.verbose && !options.json)
        complain(outcome.name + ": taken" +
                 (outcome.waited > second_ns / 100 ? " after " + spoken(outcome.waited) : "") +
                 (outcome.token != 0 ? ", token " + std::to_string(outcome.token) : ""));
    const locks::Supervision what = supervision_of(world, options, held);
    const locks::RunEnd end = locks::supervise(world, what);
    release(world, options, held, end);
    describe_end(end, what.soft, outcome);
    return tell(options, outcome);
}

int lock_descriptor(const Options &options) {
    const std::string name = shown_name(options);
    if (const int flags = ::fcntl(options.descriptor, F_GETFD); flags < 0)
        return tell(options, failed(name, "descriptor " + std::to_string(options.descriptor) +
                                              " is not open; open it before, as in exec " +
                                              std::to_string(options.descriptor) + ">>FILE"));
    locks::LockFile file = locks::LockFile::around(options.descriptor);
    const auto got = file.hold(options.shared, deadline_of(options));
    if (!got) return tell(options, failed(name, got.status()));
    Outcome outcome{.name = name};
    if (*got) {
        outcome.result = "taken";
        return tell(options, outcome);
    }
    locks::Answer answer{.denied = locks::Denied::busy};
    answer.ruling.again_in = locks::no_limit;
    answer.text = name + ": busy, another process has locked the file" +
                  (options.wait && *options.wait > 0 ? " for the last " + spoken(*options.wait) : "");
    return tell(options, denied(options, name, answer));
}

}  // namespace dcs::lock_command
