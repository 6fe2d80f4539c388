// dcs_lock list: holders, their age, and waiters. Read-only: takes no lock, creates no file.
// dcs_lock log: the log of all transactions. dcs_lock advise: limits that suit an atom.
#include <algorithm>
#include <deque>

#include "call.h"
#include "base/json.h"
#include "base/text.h"
#include "places.h"
#include "quantity.h"
#include "say.h"
#include "locks/learn.h"
#include "locks/files/run_log.h"
#include "locks/files/record.h"

namespace dcs::lock_command {
namespace {

std::int64_t age_of(const locks::World &world, const locks::Record &record) {
    const locks::Moment now = world.now();
    return std::max<std::int64_t>(
        0, record.started_boot == world.boot ? now.mono - record.started.mono : now.wall - record.started.wall);
}

const char *state_of(const Seen &seen) {
    if (!seen.trouble) return "unreadable";
    if (seen.counted) return seen.slots.empty() ? "free" : "held";
    if (!seen.atom.held) return seen.atom.damaged ? "damaged" : "free";
    return seen.atom.shared ? "shared" : "held";
}

// The record describes the present holder only while it runs; a foreign program that locks the file writes none.
bool holder_known(const Seen &seen) {
    return seen.atom.held && !seen.atom.shared && seen.atom.record.outcome == locks::Outcome::running;
}

std::string row(const std::string &name, const std::string &state, pid_t pid, const std::string &age,
                const std::string &uid, const std::string &waiting, const std::string &about) {
    const auto padded = [](std::string text, std::size_t width) {
        text.resize(std::max(width, text.size()), ' ');
        return text + " ";
    };
    return padded(printable(name), 28) + padded(state, 10) + padded(pid > 0 ? std::to_string(pid) : "-", 8) +
           padded(age, 9) + padded(uid, 6) + padded(waiting, 8) + printable(about) + "\n";
}

std::string last_run(const locks::World &world, const locks::Record &record) {
    if (record.outcome == locks::Outcome::none) return "never run";
    if (record.outcome == locks::Outcome::running) return "last: crashed";  // and the lock is not held
    return std::string("last: ") + locks::outcome_name(record.outcome) + ", " +
           spoken(std::max<std::int64_t>(0, world.now().wall - record.ended.wall)) + " ago";
}

void print_seen(const locks::World &world, const Seen &seen, std::string &out) {
    const std::string name = shown_name(seen.place.atom), waiting = std::to_string(seen.waiting.size());
    const locks::Record &record = seen.atom.record;
    if (!seen.trouble) {
        out += row(name, state_of(seen), 0, "-", "-", "-", seen.trouble.text);
    } else if (seen.counted) {
        if (seen.slots.empty()) out += row(name, "free", 0, "-", "-", waiting, "counted slots");
        for (const locks::SlotHolder &slot : seen.slots)
            out += row(name, "slot " + std::to_string(slot.number), slot.owner.process.pid,
                       spoken(std::max<std::int64_t>(0, world.now().mono - slot.since_mono)),
                       std::to_string(slot.owner.uid), waiting,
                       slot.owner.command.empty() ? slot.note : slot.owner.command);
    } else if (holder_known(seen)) {
        out += row(name, state_of(seen), record.owner.process.pid, spoken(age_of(world, record)),
                   std::to_string(record.owner.uid), waiting, record.owner.command);
    } else if (!seen.unrecorded.empty()) {
        for (const locks::Owner &owner : seen.unrecorded)
            out += row(name, state_of(seen), owner.process.pid, "-", std::to_string(owner.uid), waiting, owner.command);
    } else {
        const std::string about = seen.atom.held      ? "by a process that left no record"
                                  : seen.atom.foreign ? "not a file of dcs_lock"
                                                      : last_run(world, record);
        out += row(name, state_of(seen), 0, "-", "-", waiting, about);
    }
    for (const locks::Waiter &waiter : seen.waiting)
        out += row("", "waiting", waiter.process.pid,
                   spoken(std::max<std::int64_t>(0, world.now().wall - waiter.since_wall)), "-", "",
                   waiter.state == 'T' ? "stopped, and blocks all behind it"
                   : waiter.shared     ? "shared"
                                       : "");
}

std::string waiter_json(const locks::Waiter &waiter) {
    JsonObject o;
    o.add("ticket", waiter.ticket).add("pid", waiter.process.pid).add("shared", waiter.shared);
    o.add("state", std::string(1, waiter.state)).add_raw("since_s", json_seconds(waiter.since_wall));
    return o.text();
}

std::string slot_json(const locks::World &world, const locks::SlotHolder &slot) {
    JsonObject o;
    o.add("slot", slot.number).add_raw("holder", as_json(slot.owner)).add("note", slot.note);
    o.add_raw("since_s", json_seconds(slot.since_wall))
        .add_raw("age_s", json_seconds(std::max<std::int64_t>(0, world.now().mono - slot.since_mono)));
    return o.text();
}

std::string seen_json(const locks::World &world, const Seen &seen) {
    const locks::Record &record = seen.atom.record;
    JsonObject o;
    o.add("name", shown_name(seen.place.atom)).add("path", seen.place.path);
    o.add("kind", seen.counted ? "slots" : seen.atom.foreign ? "foreign" : "atom").add("state", state_of(seen));
    if (!seen.trouble) o.add("error", seen.trouble.text);
    if (holder_known(seen)) {
        o.add_raw("holder", as_json(record.owner))
            .add_raw("age_s", json_seconds(age_of(world, record)))
            .add("token", record.generation);
        o.add_raw("expire_after_s", json_seconds(record.expire_after));
        o.add_raw("if_elapsed_s", json_seconds(record.if_elapsed));
    } else if (!seen.counted && record.outcome != locks::Outcome::none) {
        const bool crashed = record.outcome == locks::Outcome::running && !seen.atom.held;
        o.add_raw("last", JsonObject()
                              .add("result", crashed ? "crashed" : locks::outcome_name(record.outcome))
                              .add_raw("ended_s", json_seconds(record.ended.wall))
                              .add("token", record.generation)
                              .text());
    }
    if (!seen.unrecorded.empty()) o.add_raw("holder", as_json(seen.unrecorded.front()));
    if (!seen.counted) o.add("grants", record.grants).add("expiries", record.expiries).add("crashes", record.crashes);
    const auto slot = [&](const locks::SlotHolder &one) { return slot_json(world, one); };
    if (seen.counted) o.add_list("slots", seen.slots, slot);
    return o.add_list("waiting", seen.waiting, waiter_json).text();
}

std::string log_json(const locks::LogLine &line) {
    JsonObject o;
    o.add_raw("time_s", json_seconds(line.wall)).add("event", line.event);
    const auto atom = locks::decoded_name(line.name);
    o.add("name", atom ? shown_name(*atom) : line.name).add("pid", line.pid).add("uid", line.uid);
    if (line.generation != 0) o.add("token", line.generation);
    if (line.runtime >= 0) o.add_raw("runtime_s", json_seconds(line.runtime));
    if (line.cpu >= 0) o.add_raw("cpu_s", json_seconds(line.cpu));
    if (line.io >= 0) o.add("io_bytes", line.io);
    if (line.waited >= 0) o.add_raw("waited_s", json_seconds(line.waited));
    if (line.limit >= 0) o.add_raw("limit_s", json_seconds(line.limit));
    if (!line.text.empty()) o.add("message", line.text);
    return o.text();
}

std::string advice_json(const std::string &name, const locks::Learned &learned) {
    JsonObject o;
    o.add("name", name).add("runs", learned.runs).add("killed", learned.killed);
    o.add_raw("longest_s", json_seconds(learned.longest)).add_raw("interval_s", json_seconds(learned.interval));
    o.add_raw("expire_after_s", json_seconds(learned.soft)).add_raw("expire_after_hard_s", json_seconds(learned.hard));
    o.add_raw("if_elapsed_s", json_seconds(learned.if_elapsed));
    o.add_raw("false_kills_per_1000", decimal_seconds(static_cast<std::int64_t>(learned.false_kills * 1e9)));
    o.add("starving", learned.starving).add("spammed", learned.spammed);
    if (!learned.spammer.empty()) o.add("spammer", learned.spammer);
    return o.text();
}

}  // namespace

int list_locks(const locks::World &world, const Options &options) {
    auto all = look_around(world, options);
    if (!all) return tell(options, failed(shown_name(options), all.status()));
    if (!options.has_atom())  // `dcs map` claims sessions by other bytes of its files
        std::erase_if(*all, [](const Seen &seen) { return seen.place.atom.operation == "dcs-map"; });
    if (options.json) {
        const auto json = [&](const Seen &seen) { return seen_json(world, seen); };
        print(JsonObject("dcs_lock.list/1").add_list("locks", *all, json).text() + "\n");
        return exits::ok;
    }
    std::string out;
    for (const Seen &seen : *all) print_seen(world, seen, out);
    if (out.empty())
        complain(options.has_atom() ? shown_name(options) + ": was never taken" : "no lock was ever taken");
    else print(row("NAME", "STATE", 0, "AGE", "UID", "WAITING", "COMMAND").replace(39, 3, "PID") + out);
    return exits::ok;
}

int print_log(const Options &options) {
    const auto directory = locks::lock_directory();
    if (!directory) return tell(options, failed("", directory.status()));
    std::string wanted;
    if (options.has_atom()) {
        const auto place = options.atom ? locks::place_of(*options.atom, "") : locks::place_of(options.name, "");
        const auto name = place ? locks::encoded_name(place->atom) : Result<std::string>(place.status());
        if (!name) return tell(options, failed(shown_name(options), name.status()));
        wanted = *name;
    }
    std::deque<std::string> lines;
    locks::read_log(*directory, [&](const locks::LogLine &line) {
        if (!wanted.empty() && line.name != wanted) return;
        if (options.last && lines.size() == static_cast<std::size_t>(*options.last)) {
            if (lines.empty()) return;
            lines.pop_front();
        }
        lines.push_back(options.json ? log_json(line) : locks::printed(line));
    });
    if (options.json) {
        print(JsonObject("dcs_lock.log/1").add_raw("events", json_array({lines.begin(), lines.end()})).text() + "\n");
        return exits::ok;
    }
    std::string out;
    for (const std::string &line : lines) out += line + (!line.empty() && line.back() == '\n' ? "" : "\n");
    print(printable(out, true));
    return exits::ok;
}

int advise(const locks::World &world, const Options &options) {
    const auto all = look_around(world, options);
    if (!all) return tell(options, failed(shown_name(options), all.status()));
    locks::LearnBounds bounds;
    if (options.expire_max) bounds.expire_max = *options.expire_max;
    std::vector<std::string> items;
    std::string out;
    for (const Seen &seen : *all) {
        if (seen.counted || seen.atom.foreign) continue;
        auto file = locks::LockFile::look(seen.place);
        if (!file || !file->keeps_records()) continue;
        const auto samples = locks::read_samples(*file);
        const auto denials = locks::read_denials(*file);
        const std::string name = shown_name(seen.place.atom);
        if (options.json) items.push_back(advice_json(name, locks::learn(samples, denials, bounds, 0, -1, -1)));
        else out += (out.empty() ? "" : "\n") + locks::advice(name, samples, denials, bounds, 0);
    }
    if (options.json) print(JsonObject("dcs_lock.advise/1").add_raw("atoms", json_array(items)).text() + "\n");
    else if (out.empty())
        complain((options.has_atom() ? shown_name(options) + ": " : std::string()) +
                 "no run is recorded; run it with -i or -e");
    else print(printable(out, true));
    return exits::ok;
}

}  // namespace dcs::lock_command
