#pragma once
// Named points before and after durable steps, sends and forks. In what users run they do nothing.
// The test build of a daemon (dcs_scheduler_test ...) is made of the very same objects, but links
// tests/support/failpoint.cc, which can stop the process at the n-th visit of a point.
namespace dcs {
// `name`: folder.step.place, as in "store.root.before_rename". Never throws, may not return.
void failpoint(const char *name) noexcept;
}  // namespace dcs
