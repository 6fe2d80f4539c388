#pragma once
// What all calls of the standard have in common: how each ends, and lists of strings.
#include <cstddef>
#include <new>
#include <string>
#include <vector>

#include "drmaa.h"

// The lists of strings that programs get and release.
struct StringList {
    std::vector<std::string> texts;
    std::size_t next = 0;
};
struct drmaa_attr_names_s : StringList {};
struct drmaa_attr_values_s : StringList {};
struct drmaa_job_ids_s : StringList {};

namespace dcs::drmaa {

// A number of the standard, and a sentence for its error_diagnosis.
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

// f() with its outcome as a number and a sentence; nothing is thrown across the border of C.
template <class F> int call(char *diagnosis, std::size_t length, F &&f) {
    try {
        return told(f(), diagnosis, length);
    } catch (const std::bad_alloc &) {
        copy_text("there is not enough memory", diagnosis, length);
        return DRMAA_ERRNO_NO_MEMORY;
    } catch (...) {
        copy_text("a bug of this library", diagnosis, length);
        return DRMAA_ERRNO_INTERNAL_ERROR;
    }
}

inline Outcome missing(const char *what) { return {DRMAA_ERRNO_INVALID_ARGUMENT, std::string(what) + " is NULL"}; }

Outcome in_session();  // DRMAA_ERRNO_NO_ACTIVE_SESSION outside of one

}  // namespace dcs::drmaa
