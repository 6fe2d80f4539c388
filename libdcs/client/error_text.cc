// d_strerror, d_errortext, d_errorname, and the numbers of dcs.h against ours.
#include <array>
#include <cerrno>

#include "base/per_thread.h"
#include "client/call.h"

namespace dcs::client {
namespace {

#define DCS_SAME(c_name, our_name) static_assert(static_cast<int>(Code::our_name) == c_name)
DCS_SAME(D_OK, ok);
DCS_SAME(D_E_UNREACHABLE, unreachable);
DCS_SAME(D_E_BROKEN, broken);
DCS_SAME(D_E_NO_AUTH, no_auth);
DCS_SAME(D_E_REFUSED, refused);
DCS_SAME(D_E_INVALID, invalid);
DCS_SAME(D_E_SESSION_ACTIVE, session_active);
DCS_SAME(D_E_SESSION_CLOSED, session_closed);
DCS_SAME(D_E_SESSION_UNKNOWN, session_unknown);
DCS_SAME(D_E_SESSION_TAKEN, session_taken);
DCS_SAME(D_E_GRAIN_EXISTS, grain_exists);
DCS_SAME(D_E_GRAIN_DIFFERS, grain_differs);
DCS_SAME(D_E_GRAIN_UNKNOWN, grain_unknown);
DCS_SAME(D_E_NOTHING_YET, nothing_yet);
DCS_SAME(D_E_NOTHING_LEFT, nothing_left);
DCS_SAME(D_E_CANNOT_RUN, cannot_run);
DCS_SAME(D_E_NO_SPACE, no_space);
DCS_SAME(D_E_IO_ERROR, io_error);
DCS_SAME(D_E_LIMIT, limit);
DCS_SAME(D_E_PROTOCOL, protocol);
DCS_SAME(D_E_REPLAY_END, replay_end);
DCS_SAME(D_E_NOT_FOUND, not_found);
DCS_SAME(D_E_INTERNAL, internal);
static_assert(static_cast<int>(Code::last) == D_E_INTERNAL, "a new Code needs its D_E_ name");
#undef DCS_SAME

struct LastError {
    std::string text;
    int number = 0;
};
LastError &last() { return PerThread<LastError>::mine(); }

constexpr int codes = static_cast<int>(Code::last) + 1;

// Made at load (pool.cc), and never destroyed.
const std::array<std::string, codes> &names = *[] {
    auto *n = new std::array<std::string, codes>;
    (*n)[0] = "NO_ERROR";
    for (int i = 1; i < codes; ++i)
        (*n)[static_cast<std::size_t>(i)] = std::string("D_E_") + code_name(static_cast<Code>(i));
    return n;
}();

}  // namespace

int report(const Status &status) {
    LastError &now = last();
    now.text = status.text;
    if (!status && now.text.empty()) now.text = code_advice(status.code);
    if (status.code == Code::unreachable) errno = ECONNREFUSED;
    if (status.code == Code::broken) errno = ECONNRESET;
    return now.number = static_cast<int>(status.code);
}

}  // namespace dcs::client

extern "C" {

const char *d_strerror(int error) {
    if (error < 0 || error > static_cast<int>(dcs::Code::last)) return "Not a DCS error number.";
    return dcs::code_advice(static_cast<dcs::Code>(error));
}

int d_errornumber(void) { return dcs::client::last().number; }

const char *d_errortext(void) { return dcs::client::last().text.c_str(); }

const char *d_errorname(int error) {
    if (error < 0 || error >= dcs::client::codes) return "D_E_?";
    return dcs::client::names[static_cast<std::size_t>(error)].c_str();
}
}
