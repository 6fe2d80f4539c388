#pragma once
// What main() begins with, and where its program lies.
#include <string>

namespace dcs {

// The running executable, and its folder; empty if the kernel does not say.
std::string own_path();
std::string own_folder();

// Undoes what a caller may have left in the process.
// Descriptors 0 to 2 that are closed lead to /dev/null, or the first files and pipes that are opened would take their
// places and get what is said there; reading and writing fail as they would have. SIGCHLD is not ignored, or no child
// would tell how it ended, and one that failed would look like one that worked.
void clean_start();

// For a program that passes on files and frames: malloc keeps the memory of their buffers for the next
// ones. Otherwise it gives each back to the kernel, which clears it, page by page, for the next one.
void keep_buffers();

}  // namespace dcs
