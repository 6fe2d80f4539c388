#pragma once
// What the library keeps for the whole process: the token, the sessions that this process opened and
// how far their results were handed out, the numbers of requests. Thread-safe, and sound in the child
// of a fork (which goes on with the same token and sessions, but with request ids of its own).
#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"

namespace dcs::client {

struct Credentials {
    std::string ident;   // empty: d_get_auth has not succeeded
    std::string token;   // 32 bytes, or empty
};
Credentials credentials();
void set_credentials(Credentials c);
// The scheduler does not know this token any more: the next d_get_auth asks for a new one.
void forget_token(const std::string &token);
// The token that dcs_begin left, until set_credentials or forget_token.
std::string inherited_token();
void set_inherited_token(std::string token);

std::uint64_t next_request_id();  // never 0
std::uint64_t random_seed();
bool scheduler_met();             // a scheduler welcomed this process at least once
void note_scheduler_met();
// The highest epoch of a scheduler of another host that welcomed this process; a fork knows it too.
std::uint64_t epoch_met();
void note_epoch(std::uint64_t epoch);

// Place of d_gwait in a session.
void session_opened(int number, std::int32_t next);
void session_closed(int number);
std::optional<std::int32_t> session_next(int number);  // nothing: not opened here

// The turn of one thread to take a session's next result. Several threads may wait on one session;
// they get different results, one after the other.
class TakeResult {
public:
    // block false: Code::nothing_yet while another thread waits (there is nothing, or it had it).
    TakeResult(int number, bool block);
    ~TakeResult();
    TakeResult(const TakeResult &) = delete;
    TakeResult &operator=(const TakeResult &) = delete;

    const Status &status() const { return status_; }
    std::int32_t next() const { return next_; }
    void taken(std::int32_t new_next);

private:
    int number_;
    std::uint64_t opening_ = 0;
    std::int32_t next_ = 0;
    bool holds_ = false;
    Status status_;
};

}  // namespace dcs::client
