// The calls that say what this is.
#include "call.h"
#include "dcs.h"

using dcs::drmaa::call;
using dcs::drmaa::copy_text;
using dcs::drmaa::missing;
using dcs::drmaa::Outcome;

namespace {

constexpr const char *meanings[] = {
    "success",
    "an internal error of this library",
    "the scheduler cannot be reached",
    "the scheduler does not permit this",
    "an argument is invalid",
    "there is no session: call drmaa_init first",
    "there is not enough memory",
    "the contact string is invalid",
    "the session of the default contact string cannot be used",
    "there is no default contact string",
    "the session cannot be begun",
    "there is a session: call drmaa_exit first",
    "the session cannot be ended",
    "the attribute's value has the wrong format",
    "the attribute's value is not one of those that it can have",
    "attributes contradict each other",
    "the scheduler cannot take the job now: try it later",
    "the scheduler does not take the job",
    "there is no such job",
    "the job cannot be resumed in its state",
    "the job cannot be suspended in its state",
    "the job cannot be held in its state",
    "the job cannot be released in its state",
    "the time is over",
    "there is no record of what the job used",
    "the list has no further element",
};
static_assert(sizeof meanings / sizeof *meanings == DRMAA_NO_ERRNO);

int text_call(const std::string &text, char *to, size_t length, char *diagnosis, size_t diagnosis_length) {
    return call(diagnosis, diagnosis_length, [&]() -> Outcome {
        if (!to) return missing("the place of the text");
        copy_text(text, to, length);
        return {};
    });
}

}  // namespace

extern "C" {

const char *drmaa_strerror(int drmaa_errno) {
    return drmaa_errno >= 0 && drmaa_errno < DRMAA_NO_ERRNO ? meanings[drmaa_errno] : "";
}

int drmaa_version(unsigned int *major, unsigned int *minor, char *error_diagnosis, size_t error_diag_len) {
    return call(error_diagnosis, error_diag_len, [&]() -> Outcome {
        if (!major || !minor) return missing("the place of a number");
        *major = 1;
        *minor = 0;
        return {};
    });
}

int drmaa_get_DRM_system(char *drm_system, size_t drm_system_len, char *error_diagnosis, size_t error_diag_len) {
    return text_call(std::string("DCS ") + d_version_string(), drm_system, drm_system_len, error_diagnosis,
                     error_diag_len);
}

int drmaa_get_DRMAA_implementation(char *drmaa_impl, size_t drmaa_impl_len, char *error_diagnosis,
                                   size_t error_diag_len) {
    return text_call(std::string("DCS ") + d_version_string(), drmaa_impl, drmaa_impl_len, error_diagnosis,
                     error_diag_len);
}

}  // extern "C"
