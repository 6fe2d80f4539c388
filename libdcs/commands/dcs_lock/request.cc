#include "request.h"

#include <charconv>
#include <cstdlib>

#include <unistd.h>

#include "base/clock.h"
#include "base/planted.h"
#include "base/text.h"

namespace dcs::lock_command {
namespace {

// Replaces %u by the user's number and %% by a percent sign.
Result<std::string> with_user(const std::string &name) {
    std::string out;
    for (std::size_t i = 0; i < name.size(); ++i) {
        if (name[i] != '%') {
            out += name[i];
            continue;
        }
        const char next = i + 1 < name.size() ? name[i + 1] : '\0';
        if (next != 'u' && next != '%')
            return fail(Code::invalid, "-l " + name + ": % must be followed by u (the user's number) or %");
        out += next == 'u' ? std::to_string(::geteuid()) : "%";
        ++i;
    }
    return out;
}

std::string digits_of(const locks::BootId &id) { return hex_of(std::string(id.begin(), id.end())); }

}  // namespace

Result<locks::Place> atom_place(const Options &options) {
    auto place = options.atom ? locks::place_of(*options.atom, ".lock") : locks::place_of(options.name, ".lock");
    if (place && options.adaptive) place->adopt = true;     // a request for records states that it is not a data file
    if (place && options.at_most) place->one_kind = false;  // beside its slots
    return place;
}

Result<locks::Place> slots_place(const Options &options) {
    Result<locks::Place> place = fail(Code::invalid, "");
    if (options.atom) {
        place = locks::place_of(locks::Atom{options.atom->operation, "", ""}, ".slots");
    } else if (options.adaptive && options.name.find('/') != std::string::npos) {
        place = locks::place_of(options.name + ".slots", "");  // the atom uses the path itself
    } else {
        place = locks::place_of(options.name, ".slots");
    }
    if (place) place->adopt = true;
    if (place && !options.slots_only()) place->one_kind = false;  // beside its atom
    return place;
}

Result<std::vector<locks::SlotWish>> slot_wishes(const Options &options) {
    std::vector<locks::SlotWish> wishes;
    if (options.at_most) {
        auto place = slots_place(options);
        if (!place) return place.status();
        wishes.push_back({*place, *options.at_most});
    }
    for (const Limit &limit : options.limits) {
        const auto name = with_user(limit.name);
        if (!name) return name.status();
        auto place = locks::place_of(*name, ".slots");
        if (!place) return place.status();
        place->adopt = true;
        for (const locks::SlotWish &other : wishes)
            if (other.place.path == place->path) return fail(Code::invalid, "-l " + limit.name + " is given twice");
        wishes.push_back({*place, limit.count});
    }
    if (planted("lock_command.first_limit_only") && !wishes.empty()) wishes.resize(1);
    return wishes;
}

locks::Deadline deadline_of(const Options &options) {
    if (!options.waits()) return locks::Deadline::none();
    if (!options.wait) return locks::Deadline::never();
    return locks::Deadline{boot_clock().ns + *options.wait};  // by the kernel's clock, independent of `world`
}

Result<locks::LockRequest> lock_request(const locks::World &world, const Options &options,
                                        const locks::Deadline &until) {
    auto place = atom_place(options);
    if (!place) return place.status();
    const auto pass = pass_of_environment(world);
    if (!pass) return pass.status();
    locks::LockRequest request;
    request.place = std::move(*place);
    request.if_elapsed = options.if_elapsed;
    request.expire_after = options.expire_after;
    request.since = options.since;
    request.pass = *pass;
    request.wait = until;
    request.queue = options.queue;
    request.shared = options.shared;
    if (options.expire_max) request.bounds.expire_max = *options.expire_max;
    request.bounds.expire_min = std::min(request.bounds.expire_min, request.bounds.expire_max);
    request.grace = options.grace;
    request.max_kills = options.max_kills;
    request.mode = options.mode;
    request.literal = options.literal;
    return request;
}

std::string pass_text(const locks::World &world) {
    const locks::Moment now = world.now();
    return std::to_string(now.wall) + "," + std::to_string(now.mono) + "," + std::to_string(now.boot) + "," +
           digits_of(world.boot);
}

Result<locks::Moment> pass_of_environment(const locks::World &world) {
    locks::Moment moment;
    const char *value = std::getenv("DCS_LOCK_NOW");
    if (value == nullptr || *value == '\0') return moment;
    const std::string text = value;
    std::int64_t *const parts[] = {&moment.wall, &moment.mono, &moment.boot};
    const char *at = text.data(), *const end = text.data() + text.size();
    bool good = true;
    for (std::int64_t *part : parts) {
        const auto [next, error] = std::from_chars(at, end, *part);
        good = good && error == std::errc() && next != end && *next == ',';
        if (!good) break;
        at = next + 1;
    }
    if (!good || text.substr(static_cast<std::size_t>(at - text.data())) != digits_of(world.boot))
        return fail(Code::invalid, "DCS_LOCK_NOW=" + text +
                                       " is not the start of a pass on this host since it booted; "
                                       "set it with eval \"$(dcs_lock pass)\" at the beginning of the script");
    return moment;
}

}  // namespace dcs::lock_command
