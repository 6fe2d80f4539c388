#pragma once
// Deliberate bugs, by name, to show that tests find them. Released programs link planted.cc, which never plants one;
// dcs_sim, the test builds of daemons, library and command, and unit tests link a definition that plants named ones.
namespace dcs {
// `name`: folder.bug, as in "core.sequence_gap".
bool planted(const char *name) noexcept;
}  // namespace dcs
