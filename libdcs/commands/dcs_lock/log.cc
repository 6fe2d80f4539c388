// dcs_lock log: the log of all transactions. dcs_lock advise: limits that suit an atom.
#include <deque>

#include "call.h"
#include "base/json.h"
#include "locks/advice.h"
#include "locks/files/run_log.h"
#include "locks/files/sample.h"
#include "places.h"
#include "quantity.h"
#include "say.h"

namespace dcs::lock_command {
namespace {

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
    print(out);
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
    else print(out);
    return exits::ok;
}

}  // namespace dcs::lock_command
