#pragma once
// Shared by the files that implement the C functions (include/dcs_lock.h).
#include <cstdint>
#include <exception>
#include <string>

#include "dcs_lock.h"
#include "locks/adaptive_lock.h"
#include "locks/counted_slots.h"

struct d_lock {
    dcs::locks::AdaptiveLock lock;
    dcs::locks::Slots instance;  // of the operator, if instances are counted
};

struct d_slots {
    dcs::locks::Slots slots;
};

namespace dcs::locks::c_api {

int refuse(int reason, const std::string &text);  // returns `reason`, sets this thread's error text
inline int refuse(const Status &status) { return refuse(D_LOCK_FAILED, status.text); }
Deadline deadline(std::int64_t wait);
void copy(char *to, std::size_t room, const std::string &from);
template <std::size_t Room> void copy(char (&to)[Room], const std::string &from) { copy(to, Room, from); }

// No exception leaves a C function.
template <class Body> int guarded(Body body) {
    try {
        return body();
    } catch (const std::exception &problem) {
        return refuse(D_LOCK_FAILED, std::string("out of memory: ") + problem.what());
    }
}

}  // namespace dcs::locks::c_api
