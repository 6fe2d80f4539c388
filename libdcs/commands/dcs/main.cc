#include <csignal>

#include "base/standard_streams.h"
#include "call.h"

int main(int argc, char **argv) {
    dcs::occupy_standard_streams();
    // A caller who ignores it has it ignored here too, and then no child tells how it ended: a promotion that failed
    // would look like one that worked.
    std::signal(SIGCHLD, SIG_DFL);
    return dcs::commands::run_command({argv + (argc > 0), argv + argc});
}
