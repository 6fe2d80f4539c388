#pragma once
// Programs of this host, run by the process outside of the container.
#include <functional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace dcs::container {

// Keys and values of what such a program gets; nothing of the grain's, which its user chose.
struct Environment {
    std::string home;     // a private directory
    std::string configs;  // of podman; empty: none
};
// Starts it with no signal blocked. `fds`: take the places from 3 on. Standard input is empty; both outputs go to
// `log`. -1 and errno.
pid_t start(const std::vector<std::string> &argv, const Environment &environment, const std::vector<int> &fds, int log);
// Runs it to its end: its status as of wait(2), -1 if it cannot be started. `goes_on` is called many times a second: if
// it is false, the program and all other children end, and -1 is returned.
int run(const std::vector<std::string> &argv, const Environment &environment, int log,
        const std::function<bool()> &goes_on = {});
// Ends podman, conmon and what else is left. As the subreaper, this process gets them all.
void end_all();
// The last part of a log.
std::string tail_of(int log);

}  // namespace dcs::container
