#pragma once
// The first process of the container: starts the grain's program under the confinement of the host, waits for it, and
// tells its exact end.

namespace dcs::container {

int run_inside();

}  // namespace dcs::container
