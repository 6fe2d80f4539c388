#pragma once
// Bugs on purpose, by name, to measure whether the simulator finds them. In what users run the answer
// is always no; dcs_sim is made of the very same objects, but links another definition of this.
namespace dcs {
// `name`: folder.bug, as in "core.sequence_gap".
bool planted(const char *name) noexcept;
}  // namespace dcs
