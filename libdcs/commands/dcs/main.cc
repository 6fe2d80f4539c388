#include "process/clean_start.h"
#include "command.h"

int main(int argc, char **argv) {
    dcs::clean_start();
    return dcs::commands::run_command({argv + (argc > 0), argv + argc});
}
