#pragma once
// How a call ends: a number of the standard, and a sentence for its error_diagnosis.
#include <cstddef>
#include <string>

#include "drmaa.h"

namespace dcs::drmaa {

struct [[nodiscard]] Outcome {
    int code = DRMAA_ERRNO_SUCCESS;
    std::string text;
    bool good() const { return code == DRMAA_ERRNO_SUCCESS; }
};

// What the last failure of libdcs in this thread means here.
Outcome of_dcs(int error);

// As much of `text` as fits, always with a NUL.
void copy_text(const std::string &text, char *to, std::size_t length);

// The number, with its sentence in the caller's buffer.
int told(const Outcome &outcome, char *diagnosis, std::size_t length);

}  // namespace dcs::drmaa
