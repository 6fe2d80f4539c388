#include "base/program_start.h"
#include "verbs.h"

int main(int argc, char **argv) {
    dcs::clean_start();
    dcs::keep_buffers();
    return dcs::commands::run_command({argv + (argc > 0), argv + argc});
}
