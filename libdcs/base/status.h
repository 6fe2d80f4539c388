#pragma once
// Errors as values. A Code is the number that a control program sees (dcs.h repeats these names
// as D_E_...; the client library static_asserts that they agree). Text says what and why for the
// case at hand; code_advice() says in one sentence what to do.
#include <optional>
#include <string>
#include <utility>

#include "base/require.h"

namespace dcs {

enum class Code : int {
    ok = 0,
    unreachable = 1,  // no scheduler answers
    broken = 2,       // the connection broke and the answer is unknown
    no_auth = 3,      // no or unknown authorization token
    refused = 4,      // not permitted
    invalid = 5,      // bad argument
    session_active = 6,
    session_closed = 7,  // terminated
    session_unknown = 8,
    session_taken = 9,  // bound to another control ident, or taken over since
    grain_exists = 10,
    grain_differs = 11,  // same number, other parameters
    grain_unknown = 12,
    nothing_yet = 13,   // non-blocking wait: nothing finished that was not reported
    nothing_left = 14,  // no unfinished and no unreported grain in the session
    cannot_run = 15,    // no configured host could ever run what remains
    no_space = 16,      // backing store is full
    io_error = 17,      // backing store failed
    limit = 18,         // a limit of the installation
    protocol = 19,      // peer speaks another version or sent nonsense
    replay_end = 20,    // replay of a terminated session met something new
    not_found = 21,     // program, file or directory of a grain is missing
    internal = 22,
    last = internal
};

const char *code_name(Code code);    // "SESSION_ACTIVE": the part after D_E_
const char *code_advice(Code code);  // one sentence: what it means and what to do

struct [[nodiscard]] Status {
    Code code = Code::ok;
    std::string text;  // what and why; empty when ok
    explicit operator bool() const { return code == Code::ok; }
    static Status ok() { return {}; }
};

inline Status fail(Code code, std::string text) { return Status{code, std::move(text)}; }
Status fail_errno(Code code, const std::string &what, int error);  // "what: strerror"

// A value or the Status that says why there is none.
template <class T> class [[nodiscard]] Result {
public:
    Result(T value) : value_(std::move(value)) {}
    Result(Status status) : status_(std::move(status)) {
        DCS_REQUIRE(status_.code != Code::ok, "a Result without value needs an error");
    }
    explicit operator bool() const { return value_.has_value(); }
    const Status &status() const { return status_; }
    T &operator*() { return *value_; }
    const T &operator*() const { return *value_; }
    T *operator->() { return &*value_; }
    const T *operator->() const { return &*value_; }

private:
    std::optional<T> value_;
    Status status_;
};

}  // namespace dcs
