// What the compiler writes for the large variants: once here, not again in each file that has one in its hands.
#include "scheduler/state/decision.h"

namespace dcs::core {

UserRequest::UserRequest() = default;
UserRequest::UserRequest(const UserRequest &) = default;
UserRequest::UserRequest(UserRequest &&) noexcept = default;
UserRequest &UserRequest::operator=(const UserRequest &) = default;
UserRequest &UserRequest::operator=(UserRequest &&) noexcept = default;
UserRequest::~UserRequest() = default;

Input::Input() = default;
Input::Input(const Input &) = default;
Input::Input(Input &&) noexcept = default;
Input &Input::operator=(const Input &) = default;
Input &Input::operator=(Input &&) noexcept = default;
Input::~Input() = default;

Change::Change() = default;
Change::Change(const Change &) = default;
Change::Change(Change &&) noexcept = default;
Change &Change::operator=(const Change &) = default;
Change &Change::operator=(Change &&) noexcept = default;
Change::~Change() = default;

Effect::Effect() = default;
Effect::Effect(const Effect &) = default;
Effect::Effect(Effect &&) noexcept = default;
Effect &Effect::operator=(const Effect &) = default;
Effect &Effect::operator=(Effect &&) noexcept = default;
Effect::~Effect() = default;

}  // namespace dcs::core
