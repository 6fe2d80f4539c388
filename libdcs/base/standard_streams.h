#pragma once

namespace dcs {

// For the begin of main(): descriptors 0 to 2 that the caller has left closed lead to /dev/null, or the first files and
// pipes that are opened would take their places and get what is said there. Reading and writing fail as they would have.
void occupy_standard_streams();

}  // namespace dcs
