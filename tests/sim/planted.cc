// What planted() answers in dcs_sim: yes for the one bug that --plant names.
#include "sim/planted.h"

#include <cstring>

#include "base/planted.h"

namespace dcs {
namespace {
const char *active = nullptr;
std::uint64_t asked = 0;
}  // namespace

namespace sim {
void plant(const char *name) { active = name; }
std::uint64_t plant_hits() { return asked; }
}  // namespace sim

bool planted(const char *name) noexcept {
    if (active == nullptr || std::strcmp(active, name) != 0) return false;
    ++asked;
    return true;
}

}  // namespace dcs
