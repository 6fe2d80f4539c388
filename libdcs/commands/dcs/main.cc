#include "call.h"

int main(int argc, char **argv) {
    return dcs::commands::run_command({argv + (argc > 0), argv + argc});
}
