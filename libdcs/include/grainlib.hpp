// grainlib.hpp: grainlib.h for programs that read and write by C++ streams. Header only, C++11.
//
// std::cin and std::cout may be tied to stdio (the default) or have buffers of their own
// (std::ios::sync_with_stdio(false)): both are counted and flushed exactly. Call dcs_grain::handler()
// first in main, and at a point where the program's state is consistent:
//
//     if (d_time_to_ckpt())
//         dcs_grain::checkpoint("half way", [&](std::ostream &state) { state << i << ' ' << sum << '\n'; });
//
// A program that replaced the buffer of std::cin calls d_opencheck, d_input_offset and d_closecheck itself.
#ifndef DCS_GRAINLIB_HPP
#define DCS_GRAINLIB_HPP

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <ios>
#include <iostream>
#include <limits>
#include <sstream>
#include <string>

#include "grainlib.h"

namespace dcs_grain {

// What was lost once cannot be written again: the grain must go on from its last checkpoint elsewhere.
inline void flush_streams() {
    std::ostream *streams[] = {&std::cout, &std::clog, &std::cerr};
    for (std::ostream *stream : streams) {
        stream->flush();
        if (stream->bad()) {
            std::fputs("grainlib: cannot write to an output stream\n", stderr);
            std::_Exit(D_EXIT_WRITE_ERROR);
        }
    }
}

inline void handler() {
    d_handler();
    // The library would drop what it cannot write when it ends, and no status would say so.
    static const bool registered = std::atexit(flush_streams) == 0;
    (void)registered;
}

template <class WriteState> void checkpoint(const std::string &message, WriteState write_state) {
    // As text first: a state that throws leaves no checkpoint open, and no precision is lost by accident. In the locale
    // in which std::cin reads it, whatever the program's is.
    std::ostringstream state;
    state.imbue(std::cin.getloc());
    state.precision(std::numeric_limits<long double>::max_digits10);
    write_state(static_cast<std::ostream &>(state));
    const std::string text = state.str();
    flush_streams();
    // Not tellg(), which knows nothing once the end of the input was seen.
    const std::streamoff consumed = std::cin.rdbuf()->pubseekoff(0, std::ios_base::cur, std::ios_base::in);
    FILE *file = d_opencheck(message.c_str());
    std::fwrite(text.data(), 1, text.size(), file);
    if (consumed >= 0) d_input_offset(consumed);
    d_closecheck(file);
}

}  // namespace dcs_grain

#endif
