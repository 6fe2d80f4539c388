#pragma once

namespace dcs {

// At the start of a program that passes on files and frames: malloc keeps the memory of their buffers for the next
// ones. Otherwise it gives each back to the kernel, which clears it, page by page, for the next one.
void keep_buffers();

}  // namespace dcs
