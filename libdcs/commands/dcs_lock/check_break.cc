// dcs_lock check: whether a request would be granted. Takes and records nothing. dcs_lock wait: returns when it would.
// dcs_lock break: ends a holder at an operator's request, as its limit would; no lock is taken from a living process.
// --head ends the first waiter of the queue, for example when it is stopped and blocks all others.
#include <csignal>
#include <unistd.h>

#include "call.h"
#include "base/json.h"
#include "places.h"
#include "quantity.h"
#include "request.h"
#include "say.h"
#include "base/clock.h"
#include "locks/kill_carefully.h"
#include "locks/files/lock_search.h"
#include "locks/run_end.h"
#include "locks/files/run_log.h"
#include "locks/files/slot_table.h"

namespace dcs::lock_command {
namespace {

Outcome said(const std::string &name, const char *result, int exit, const std::string &message) {
    return {.name = name, .result = result, .exit = exit, .message = name + ": " + message};
}

Outcome verdict(const Options &options, const char *result, int exit, const std::string &message) {
    return said(shown_name(options), result, exit, message);
}

Outcome check_slots(const Options &options, int limit) {
    const auto place = slots_place(options);
    if (!place) return failed(shown_name(options), place.status());
    const auto holders = locks::slot_holders(*place);
    if (!holders && holders.status().code == Code::not_found)
        if (const Status s = locks::check_one_kind(*place, locks::FileKind::slots); !s)
            return failed(shown_name(options), s);
    if (!holders && holders.status().code != Code::not_found) return failed(shown_name(options), holders.status());
    int held = 0;
    std::string who;
    if (holders)
        for (const locks::SlotHolder &holder : *holders) {
            if (!holder.held) continue;
            ++held;
            if (held <= 3 && holder.owner.process.pid > 0) who += " " + std::to_string(holder.owner.process.pid);
        }
    const std::string count = std::to_string(held) + " of " + std::to_string(limit) + " taken";
    if (held < limit) return verdict(options, "free", exits::ok, count);
    return verdict(options, "busy", exits::busy, count + (who.empty() ? "" : ", by" + who + (held > 3 ? " ..." : "")));
}

Outcome check_atom(const locks::World &world, const Options &options) {
    const auto place = atom_place(options);
    if (!place) return failed(shown_name(options), place.status());
    const auto state = locks::look_at(world, *place);
    if (!state) return failed(shown_name(options), state.status());
    if (!state->exists) {
        if (const Status s = locks::check_one_kind(*place, locks::FileKind::atom); !s)
            return failed(shown_name(options), s);
        return verdict(options, "free", exits::ok, "free, and never run");
    }
    const locks::Record &record = state->record;
    locks::Asked asked;
    asked.if_elapsed = options.if_elapsed_given && options.if_elapsed >= 0 ? options.if_elapsed : record.if_elapsed;
    asked.expire_after = record.expire_after;
    asked.since = options.since;
    asked.clock = world.now();
    const auto pass = pass_of_environment(world);
    if (!pass) return failed(shown_name(options), pass.status());
    asked.now = pass->wall != 0 ? *pass : asked.clock;
    const locks::Ruling ruling = locks::rule(world, record, state->held, asked);
    if (state->held) {
        const bool known = record.outcome == locks::Outcome::running && !state->shared;
        const auto owners = known ? std::vector<locks::Owner>() : look_closely(world, *place, false).unrecorded;
        const std::string overdue =
            ruling.verdict == locks::Verdict::expired ? ", past its limit of " + spoken(record.expire_after) : "";
        Outcome outcome = verdict(options, "busy", exits::busy,
                                  known ? "held by pid " + std::to_string(record.owner.process.pid) + " (" +
                                              record.owner.command + ") for " + spoken(ruling.age) + overdue
                                  : state->shared  ? std::string("shared")
                                  : owners.empty() ? std::string("held by a process that left no record")
                                                   : "held by " + locks::described(owners.front(), world) +
                                                         ", which left no record; `dcs_lock break " +
                                                         shown_name(options) + "` ends it");
        if (known) {
            outcome.holder = record.owner;
            outcome.age = ruling.age;
        } else if (!owners.empty()) {
            outcome.holder = owners.front();
        }
        return outcome;
    }
    if (ruling.verdict == locks::Verdict::too_soon) {
        Outcome outcome = verdict(
            options, "too-soon", exits::too_soon,
            "free, but too soon: it ran " + spoken(ruling.elapsed) + " ago; again in " + spoken(ruling.again_in));
        outcome.elapsed = ruling.elapsed;
        outcome.again_in = ruling.again_in;
        return outcome;
    }
    // As from a release that permitted both kinds, or beside an adaptive lock with -j.
    const auto slots = slots_place(options);
    const std::size_t taken = slots && place->one_kind ? look_closely(world, *slots, true).slots.size() : 0;
    const std::string beside = taken > 0 ? ", but " + std::to_string(taken) + " of its counted slots taken (-j N)" : "";
    return verdict(options, "free", exits::ok, "free" + beside);
}

void log_break(const locks::World &world, const locks::Place &place, const locks::Owner &owner,
               const std::string &text) {
    locks::LogLine line{.wall = world.now().wall};
    if (auto name = locks::encoded_name(place.atom)) line.name = *name;
    line.event = "kill";
    line.pid = owner.process.pid;
    line.uid = ::geteuid();
    line.text = text;
    if (!place.directory.empty()) locks::append_log(place.directory, line);
}

Outcome end_owner(const locks::World &world, const Options &options, const locks::Place &place,
                  const locks::LockFile &file, std::int64_t byte, const locks::Owner &owner) {
    const std::string name = shown_name(options);
    const std::string who = "pid " + std::to_string(owner.process.pid) + " (" + owner.command + ")";
    const locks::KillReport report = locks::kill_believed(world, file, byte, owner, options.grace);
    const std::string why = report.text.empty() ? "" : ": " + report.text;
    log_break(world, place, owner, report.result == locks::Killed::gone ? "broken by an operator" : "not broken" + why);
    switch (report.result) {
    case locks::Killed::gone: return said(name, "broken", exits::ok, who + " has ended");
    case locks::Killed::not_permitted:
        return said(name, "not-permitted", exits::not_permitted, who + " is not ended" + why);
    case locks::Killed::own_ancestor:
        return said(name, "own-ancestor", exits::busy, who + " is an ancestor of dcs_lock" + why);
    case locks::Killed::elsewhere:
        return said(name, "elsewhere", exits::busy, who + " runs on another host or in another pid namespace" + why);
    case locks::Killed::unkillable: break;
    }
    return said(name, "unkillable", exits::busy, who + " does not end" + why);
}

// `slot`: its number, or -1 for an atom. The record is read again through the descriptor by which it is judged, because
// the name may refer to another file by now. If it names no process that runs, the kernel tells who has the lock.
Outcome end_holder(const locks::World &world, const Options &options, const locks::Place &place, int slot) {
    const std::string name = shown_name(options);
    const int in_file = slot < 0 ? 0 : slot % locks::slots_per_file;
    const auto file = locks::LockFile::look(slot < 0 ? place : locks::shard_place(place, slot / locks::slots_per_file));
    if (!file) return failed(name, file.status());
    const std::int64_t byte = slot < 0 ? locks::holder_byte : locks::slot_byte + in_file;
    const locks::Record record = slot < 0 ? locks::read_record(*file, nullptr) : locks::Record{};
    const locks::Owner owner = slot < 0 ? record.owner : locks::read_holder(*file, slot).owner;
    const auto runs = [](const ProcessIdentity &process) {
        return process.pid > 0 && ProcessHandle::open(process).status().code != Code::not_found;
    };
    const bool over = !runs(owner.process) && !runs(owner.supervisor);
    std::vector<locks::Owner> owners;
    if (record.outcome == locks::Outcome::running || (slot >= 0 && !over)) owners.push_back(owner);
    if (owners.empty() || over)
        for (locks::Owner &one : locks::owners_of_lock(world, *file, byte)) owners.push_back(std::move(one));
    Outcome outcome = failed(name, name + ": its holder left no record, and you may not see it; `fuser " +
                                       file->path() + "`, as root, may show it");
    for (const locks::Owner &one : owners) {
        outcome = end_owner(world, options, place, *file, byte, one);
        if (outcome.exit != exits::ok) break;
    }
    return outcome;
}

// There is at least one waiter.
Outcome send_head_home(const Options &options, const Seen &seen) {
    const std::string name = shown_name(options);
    const locks::Waiter &head = seen.waiting.front();
    const std::string who = "pid " + std::to_string(head.process.pid);
    if (head.process.pid <= 1)
        return said(name, "error", exits::failed, "the first waiter is not known: it left no note; `ps` may show it");
    const auto process = ProcessHandle::open(head.process);
    if (!process && process.status().code != Code::not_found) return failed(name, process.status());
    if (!process) return said(name, "broken", exits::ok, who + " has ended already");
    const auto file = locks::LockFile::look(seen.place);
    if (!file) return failed(name, file.status());
    if (const Status s = locks::believe_waiter(*file, locks::ticket_byte + head.ticket, head.process, ::geteuid()); !s)
        return said(name, "not-permitted", exits::not_permitted, s.text);
    for (int signal : {SIGTERM, SIGCONT})
        if (const Status status = process->signal(signal); !status && status.code == Code::refused)
            return said(name, "not-permitted", exits::not_permitted,
                        who + " belongs to another user; ask that user or root");
    if (!process->ended(boot_clock().ns + options.grace.after_term))
        return said(name, "unkillable", exits::busy, who + " received TERM and has not ended");
    return said(name, "broken", exits::ok, who + " has left the queue");
}

}  // namespace

int check_lock(const locks::World &world, const Options &options) {
    Outcome outcome;
    if (options.at_most) {
        Options slots = options;
        slots.adaptive = false;
        outcome = check_slots(slots, *options.at_most);
    } else {
        outcome = check_atom(world, options);
    }
    if (outcome.exit != exits::failed && !options.json) {
        print(outcome.message + "\n");
        return outcome.exit;
    }
    return tell(options, outcome);
}

int wait_for_lock(const locks::World &world, const Options &options) {
    const std::string name = shown_name(options);
    const locks::Deadline until = deadline_of(options);
    bool free = false;
    if (options.at_most) {
        const auto place = slots_place(options);
        if (!place) return tell(options, failed(name, place.status()));
        auto slots = locks::Slots::take(world, {{*place, *options.at_most}}, until, "dcs_lock wait", options.mode);
        if (!slots && slots.status().code != Code::limit) return tell(options, failed(name, slots.status()));
        free = bool{slots};
        if (free) slots->release();
    } else {
        const auto place = atom_place(options);
        if (!place) return tell(options, failed(name, place.status()));
        auto file = locks::LockFile::look(*place);
        if (!file && file.status().code == Code::not_found) {
            if (const Status s = locks::check_one_kind(*place, locks::FileKind::atom); !s)
                return tell(options, failed(name, s));
            free = true;
        } else if (!file) {
            return tell(options, failed(name, file.status()));
        } else {
            // A shared lock is taken for an instant: the kernel grants it when the exclusive holder ends.
            const auto got = file->hold(true, until);
            if (!got) return tell(options, failed(name, got.status()));
            free = *got;
            if (free) file->let_go();
        }
    }
    Outcome outcome = free ? verdict(options, "free", exits::ok, "free")
                           : verdict(options, "busy", exits::busy,
                                     "still busy" + (options.wait ? " after " + spoken(*options.wait) : std::string()));
    outcome.quiet = free;
    return tell(options, outcome);
}

namespace {

std::string listed(const std::vector<locks::Owner> &owners) {
    std::string text;
    for (const locks::Owner &owner : owners)
        text += (text.empty() ? "" : ", ") + std::to_string(owner.process.pid) + " (" + owner.command + ")";
    return text.empty() ? "its holders, which are not visible to you" : "these processes with kill(1): " + text;
}

}  // namespace

int break_lock(const locks::World &world, const Options &options) {
    const std::string name = shown_name(options);
    const auto all = look_around(world, options);
    if (!all) return tell(options, failed(name, all.status()));
    for (const Seen &seen : *all) {
        if (!seen.trouble) return tell(options, failed(name, seen.trouble));
        if (options.head) {
            if (!seen.waiting.empty()) return tell(options, send_head_home(options, seen));
            continue;
        }
        if (seen.counted && !seen.slots.empty()) {
            if (!options.slot)
                return tell(options,
                            failed(name, name + ": " + std::to_string(seen.slots.size()) +
                                             " slots are taken; select one with --slot, `dcs_lock list` shows them"));
            for (const locks::SlotHolder &slot : seen.slots)
                if (slot.number == *options.slot)
                    return tell(options, end_holder(world, options, seen.place, slot.number));
        }
        if (!seen.counted && seen.atom.held && !options.slot) {
            if (seen.atom.shared)
                return tell(options, failed(name, name + ": it is shared; end " + listed(seen.unrecorded)));
            return tell(options, end_holder(world, options, seen.place, -1));
        }
    }
    return tell(options, said(name, "free", exits::ok, options.head ? "there is no waiter" : "it is not held"));
}

}  // namespace dcs::lock_command
