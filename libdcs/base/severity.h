#pragma once
// How much a line of a log matters; cores and turns give it, daemon/log.h writes by it.
#include <cstdint>

namespace dcs {

enum class Severity : std::uint8_t { debug, info, warning, error };

}  // namespace dcs
