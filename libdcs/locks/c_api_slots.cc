#include <memory>

#include "base/sized.h"
#include "locks/c_api.h"

using namespace dcs::locks;
using c_api::guarded;
using c_api::refuse;

int d_slot_take(const char *const names[], const int limits[], std::size_t count, std::int64_t wait, const char *note,
                d_slots **slots) {
    if (slots == nullptr) return refuse(D_LOCK_FAILED, "d_slot_take needs a pointer for the slots");
    *slots = nullptr;
    if (names == nullptr || limits == nullptr || count == 0) return refuse(D_LOCK_FAILED, "no limit was named");
    return guarded([&] {
        std::vector<SlotWish> wishes;
        for (std::size_t i = 0; i < count; ++i) {
            if (names[i] == nullptr) return refuse(D_LOCK_FAILED, "the name of a limit is missing");
            const auto place = place_of(std::string(names[i]), ".slots");
            if (!place) return refuse(place.status());
            wishes.push_back({*place, limits[i]});
        }
        auto taken = Slots::take(this_world(), wishes, c_api::deadline(wait), note == nullptr ? "" : note);
        if (!taken)
            return refuse(taken.status().code == dcs::Code::limit ? D_LOCK_LIMIT : D_LOCK_FAILED, taken.status().text);
        *slots = new d_slots{std::move(*taken)};
        return static_cast<int>(D_LOCK_GRANTED);
    });
}

int d_slot_number(const d_slots *slots, std::size_t which) {
    if (slots == nullptr) return -1;
    const auto numbers = slots->slots.numbers();
    return which < numbers.size() ? numbers[which] : -1;
}

int d_slot_fd(const d_slots *slots, std::size_t which) {
    if (slots == nullptr) return -1;
    const auto fds = slots->slots.lock_fds();
    return which < fds.size() ? fds[which] : -1;
}

int d_slot_release(d_slots *slots) {
    if (slots == nullptr) return refuse(D_LOCK_FAILED, "there are no slots to release");
    return guarded([&] {
        const std::unique_ptr<d_slots> owned(slots);
        owned->slots.release();
        return static_cast<int>(D_LOCK_GRANTED);
    });
}

int d_slot_list(const char *name, d_slot_holder *holders, std::size_t room, std::size_t *count) {
    if (name == nullptr || count == nullptr || (holders == nullptr && room > 0))
        return refuse(D_LOCK_FAILED, "d_slot_list needs a name, a count and an array for the holders");
    *count = 0;
    const std::size_t stride = room > 0 ? holders->struct_size : 0;
    if (room > 0 && !dcs::sound_size<d_slot_holder>(stride)) return refuse(dcs::bad_struct_size("holders[0]", stride));
    return guarded([&] {
        const auto place = place_of(std::string(name), ".slots");
        if (!place) return refuse(place.status());
        const auto seen = slot_holders(*place);
        if (!seen) return refuse(seen.status());
        for (const SlotHolder &holder : *seen) {
            if (!holder.held) continue;
            if (const std::size_t i = (*count)++; i < room) {
                d_slot_holder to{};
                to.number = holder.number;
                to.pid = holder.owner.process.pid;
                to.uid = holder.owner.uid;
                to.since = holder.since_wall;
                c_api::copy(to.command, holder.owner.command);
                c_api::copy(to.note, holder.note);
                dcs::copy_out(to, dcs::at_stride(holders, stride, i), stride);
            }
        }
        return static_cast<int>(D_LOCK_GRANTED);
    });
}
