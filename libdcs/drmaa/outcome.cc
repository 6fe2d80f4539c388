#include "outcome.h"

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
