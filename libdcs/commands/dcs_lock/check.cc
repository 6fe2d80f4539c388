// dcs_lock check: whether a request would be granted. Takes and records nothing. dcs_lock wait: returns when it would.
#include "call.h"
#include "base/json.h"
#include "places.h"
#include "quantity.h"
#include "request.h"
#include "say.h"

namespace dcs::lock_command {
namespace {

Outcome verdict(const Options &options, const char *result, int exit, const std::string &message) {
    Outcome outcome;
    outcome.name = shown_name(options);
    outcome.result = result;
    outcome.exit = exit;
    outcome.message = outcome.name + ": " + message;
    return outcome;
}

Outcome check_slots(const Options &options, int limit) {
    const auto place = slots_place(options);
    if (!place) return failed(shown_name(options), place.status());
    const auto holders = locks::slot_holders(*place);
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
        if (const auto slots = slots_place(options);
            slots && slots->path != place->path && locks::LockFile::look(*slots))
            return failed(shown_name(options),
                          shown_name(options) + " is a set of counted slots; -j N asks for one of N");
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
        const std::string overdue =
            ruling.verdict == locks::Verdict::expired ? ", past its limit of " + spoken(record.expire_after) : "";
        Outcome outcome = verdict(options, "busy", exits::busy,
                                  known ? "held by pid " + std::to_string(record.owner.process.pid) + " (" +
                                              record.owner.command + ") for " + spoken(ruling.age) + overdue
                                  : state->shared ? std::string("shared")
                                                  : std::string("held by a process that left no record"));
        if (known) {
            outcome.holder = record.owner;
            outcome.age = ruling.age;
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
    return verdict(options, "free", exits::ok, "free");
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

}  // namespace dcs::lock_command
