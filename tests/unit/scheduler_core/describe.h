#pragma once
// Inputs, changes and effects as one line of text, for scenarios, logs and people. State gives
// hosts their names. Payloads appear as lengths; tokens do not appear.
#include <string>

#include "scheduler/state/decision.h"

namespace dcs::core {

std::string describe(const State &state, const Input &input);
std::string describe(const State &state, const Change &change);
std::string describe(const State &state, const Effect &effect);
std::string describe(const State &state, const Grain &grain);
std::string describe(const SessionInfo &info);
std::string describe(const Host &host);
std::string describe(const wire::AnyMessage &message);  // those that core sends

}  // namespace dcs::core
