// dcs_lock break: ends a holder at an operator's request, as its limit would; no lock is taken from a living process.
// --head ends the first waiter of the queue, for example when it is stopped and blocks all others.
#include <csignal>
#include <unistd.h>

#include "call.h"
#include "base/clock.h"
#include "base/json.h"
#include "locks/belief.h"
#include "locks/files/run_log.h"
#include "locks/files/slot_table.h"
#include "places.h"
#include "quantity.h"
#include "say.h"

namespace dcs::lock_command {
namespace {

Outcome said(const std::string &name, const char *result, int exit, const std::string &message) {
    return {.name = name, .result = result, .exit = exit, .message = name + ": " + message};
}

void log_break(const locks::World &world, const locks::Place &place, const locks::Owner &owner,
               const std::string &text) {
    locks::LogLine line;
    line.wall = world.now().wall;
    if (auto name = locks::encoded_name(place.atom)) line.name = *name;
    line.event = "kill";
    line.pid = owner.process.pid;
    line.uid = ::geteuid();
    line.text = text;
    if (!place.directory.empty()) locks::append_log(place.directory, line);
}

// `slot`: its number, or -1 for an atom. The record is read again through the descriptor by which it is judged, because
// the name may refer to another file by now.
Outcome end_holder(const locks::World &world, const Options &options, const locks::Place &place, int slot) {
    const std::string name = shown_name(options);
    const int in_file = slot < 0 ? 0 : slot % locks::slots_per_file;
    const auto file = locks::LockFile::look(slot < 0 ? place : locks::shard_place(place, slot / locks::slots_per_file));
    if (!file) return failed(name, file.status());
    const locks::Owner owner =
        slot < 0 ? locks::read_record(*file, nullptr).owner : locks::read_holder(*file, slot).owner;
    const std::int64_t byte = slot < 0 ? locks::holder_byte : locks::slot_byte + in_file;
    const std::string who = "pid " + std::to_string(owner.process.pid) + " (" + owner.command + ")";
    const locks::KillReport report = locks::kill_believed(world, *file, byte, owner, options.grace);
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
            if (seen.atom.shared || seen.atom.record.outcome != locks::Outcome::running)
                return tell(options, failed(name, name +
                                                      ": its holder left no record, so it cannot be identified; "
                                                      "`fuser " +
                                                      seen.place.path + "` may show it"));
            return tell(options, end_holder(world, options, seen.place, -1));
        }
    }
    return tell(options, said(name, "free", exits::ok, options.head ? "there is no waiter" : "it is not held"));
}

}  // namespace dcs::lock_command
