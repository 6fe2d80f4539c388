// The ledger grain (ledger.c has what it does) with C++ streams. how "own": streams with buffers of their own.
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string>
#include <thread>

#include "grainlib.hpp"

namespace {
unsigned long lines = 0, sum = 0;

void enter(const std::string &text) {
    ++lines;
    sum = (sum * 31 + text.size()) % 1000003;
    std::cout << lines << ' ' << sum << ' ' << text << '\n';
    if (lines % 100 == 7) std::cerr << "note at line " << lines << '\n';
}
}  // namespace

int main(int argc, char **argv) {
    const unsigned long pause = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 0;
    const unsigned long every = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 0;
    const std::string how = argc > 3 ? argv[3] : "";
    if (how == "own") std::ios::sync_with_stdio(false);
    dcs_grain::handler();
    std::string text, word;
    while (std::getline(std::cin, text)) {
        if (lines == 0 && text.rfind("#ledger ", 0) == 0) {
            std::istringstream(text) >> word >> lines >> sum;
            continue;
        }
        enter(text);
        if (d_time_to_ckpt() || (every > 0 && lines % every == 0)) {
            dcs_grain::checkpoint("line " + std::to_string(lines),
                                  [](std::ostream &state) { state << "#ledger " << lines << ' ' << sum << '\n'; });
            if (how == "again") return D_EXIT_AGAIN;
        }
        if (pause > 0 && lines % pause == 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    std::cout << "end " << lines << ' ' << sum << '\n';
    return 0;
}
