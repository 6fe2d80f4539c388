#pragma once
// Whose session an input or an effect is about; the empty key: nobody's in particular.
#include "scheduler/core/decision.h"

namespace dcs::turn {

SessionKey concerns(const core::Input &input);
SessionKey concerns(const core::Effect &effect);

}  // namespace dcs::turn
