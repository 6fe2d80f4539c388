#include "call.h"

#include <algorithm>
#include <cstring>

#include "dcs.h"

namespace dcs::drmaa {
namespace {

int code_of(int error) {
    switch (error) {
    case D_OK: return DRMAA_ERRNO_SUCCESS;
    case D_E_UNREACHABLE:
    case D_E_BROKEN:
    case D_E_PROTOCOL: return DRMAA_ERRNO_DRM_COMMUNICATION_FAILURE;
    case D_E_NO_AUTH:
    case D_E_REFUSED:
    case D_E_SESSION_TAKEN: return DRMAA_ERRNO_AUTH_FAILURE;
    case D_E_SESSION_UNKNOWN:
    case D_E_GRAIN_UNKNOWN: return DRMAA_ERRNO_INVALID_JOB;
    case D_E_GRAIN_EXISTS:
    case D_E_GRAIN_DIFFERS:
    case D_E_CANNOT_RUN:
    case D_E_NOT_FOUND:
    case D_E_INVALID: return DRMAA_ERRNO_DENIED_BY_DRM;
    case D_E_NO_SPACE:
    case D_E_IO_ERROR:
    case D_E_LIMIT: return DRMAA_ERRNO_TRY_LATER;
    default: return DRMAA_ERRNO_INTERNAL_ERROR;
    }
}

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

Outcome of_dcs(int error) {
    const char *text = d_errortext();
    return {code_of(error), *text ? text : d_strerror(error)};
}

void copy_text(const std::string &text, char *to, std::size_t length) {
    if (!to || length == 0) return;
    const std::size_t fits = std::min(text.size(), length - 1);
    std::memcpy(to, text.data(), fits);
    to[fits] = 0;
}

int told(const Outcome &outcome, char *diagnosis, std::size_t length) {
    if (outcome.good()) return outcome.code;
    copy_text(outcome.text.empty() ? drmaa_strerror(outcome.code) : outcome.text, diagnosis, length);
    return outcome.code;
}

}  // namespace dcs::drmaa

using namespace dcs::drmaa;

// The calls that say what this is.
extern "C" {

const char *drmaa_strerror(int drmaa_errno) {
    return drmaa_errno >= 0 && drmaa_errno < DRMAA_NO_ERRNO ? meanings[drmaa_errno] : "";
}

int drmaa_version(unsigned int *major, unsigned int *minor, char *diagnosis, size_t length) {
    return call(diagnosis, length, [&]() -> Outcome {
        if (!major || !minor) return missing("the place of a number");
        *major = 1;
        *minor = 0;
        return {};
    });
}

int drmaa_get_DRM_system(char *drm_system, size_t drm_system_len, char *diagnosis, size_t length) {
    return text_call(std::string("DCS ") + d_version_string(), drm_system, drm_system_len, diagnosis, length);
}

int drmaa_get_DRMAA_implementation(char *drmaa_impl, size_t drmaa_impl_len, char *diagnosis, size_t length) {
    return text_call(std::string("DCS ") + d_version_string(), drmaa_impl, drmaa_impl_len, diagnosis, length);
}

}  // extern "C"
