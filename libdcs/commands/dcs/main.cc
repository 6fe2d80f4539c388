#include <csignal>

#include <fcntl.h>

#include "call.h"

namespace {

// A caller may leave them closed; then a pipe to a daemon that is being started would get such a number, and in the
// daemon its log takes that place. Reading and writing still fail.
void occupy_standard_streams() {
    for (int fd = 0; fd <= 2; ++fd)
        if (::fcntl(fd, F_GETFD) < 0) (void)::open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
}

}  // namespace

int main(int argc, char **argv) {
    // A caller who ignores it has it ignored here too, and then no child tells how it ended: a promotion that failed
    // would look like one that worked.
    std::signal(SIGCHLD, SIG_DFL);
    occupy_standard_streams();
    return dcs::commands::run_command({argv + (argc > 0), argv + argc});
}
