#pragma once
#include <memory>
#include <string>
#include <utility>

#include "scheduler/core/input.h"

namespace dcs::turn {

inline core::Payload payload_of(std::string bytes) {
    return core::Payload{std::make_shared<const std::string>(std::move(bytes))};
}

}  // namespace dcs::turn
