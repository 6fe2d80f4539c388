#pragma once
#include <cstddef>
#include <functional>

namespace dcs {

// part(0) to part(count - 1), each once, on as many threads as there are cores, four at most; returns when all are
// done. For long work on memory whose parts do not touch each other, so that its result is the same on one core.
void in_parts(std::size_t count, const std::function<void(std::size_t)> &part);

}  // namespace dcs
