#pragma once
// A pool as this program uses it: how it is found, who the program is there, the sessions that it opened and how far
// their results were delivered, and a connection for each thread. Thread-safe, and sound in the child of a fork (which
// continues with the same tokens and sessions, but with request ids and connections of its own).
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/instant.h"
#include "base/status.h"
#include "client/grains_of_run.h"
#include "client/grouped.h"
#include "client/transport.h"
#include "dcs.h"
#include "wire/user_calls.h"

namespace dcs::client {

struct Credentials {
    std::string ident;  // empty: d_get_auth has not succeeded
    std::string token;  // 32 bytes, or empty
};

struct PoolOptions {
    std::string directory;       // empty: the environment names it
    std::string ident;           // to authorize with unasked; empty: none
    double patience_s = -1;      // negative: the environment says it
    bool by_environment = true;  // it is the one for which dcs_begin has begun this program, if it has
};

// Place of the waits in a session.
struct OpenSession {
    std::uint64_t opening = 0;  // which d_open_ses this entry is from
    std::int32_t next = 0;
    bool taking = false, closed = false;
    GrainsOfRun grains;
    bool resumes_failed = false, in_order = false;  // as wire::Gexec: again and only_failed, and in_order
    bool replay = false;                            // of a closed session
    std::int32_t results = 0;                       // places of results that it had then
};

// The connection of one thread to one pool, and for which token and socket, or scheduler elsewhere, it was made.
struct Remote;
using RemotePtr = std::shared_ptr<const Remote>;
class TakeResult;
class AuthTurn;
struct Forks;

struct Line {
    Transport transport;
    std::atomic<bool> over{false};  // its pool is closed
    std::string token, path, user;
    RemotePtr remote;
    bool greeted = false;
    wire::PeerForm form;           // once greeted
    std::size_t at = 0, next = 0;  // of the remote's addresses: the last that was connected to, the first to try now
    std::vector<wire::GrainResult> handed_out;  // by this thread's last wait; the caller has their texts until its next
};

}  // namespace dcs::client

struct d_pool {
public:
    explicit d_pool(dcs::client::PoolOptions options);
    ~d_pool();  // closes the connections of all threads
    d_pool(const d_pool &) = delete;
    d_pool &operator=(const d_pool &) = delete;

    const std::string &directory() const { return options_.directory; }
    const std::string &ident() const { return options_.ident; }
    bool by_environment() const { return options_.by_environment; }
    dcs::Duration patience() const;
    void set_patience(double seconds) { patience_s_ = seconds; }  // negative: as the environment says

    dcs::client::Credentials credentials() const;
    void set_credentials(dcs::client::Credentials c);
    // The scheduler does not know this token any more: the next d_get_auth asks for a new one.
    void forget_token(const std::string &token);
    // The token that dcs_begin left, until set_credentials or forget_token.
    std::string inherited_token() const;
    void set_inherited_token(std::string token);

    bool scheduler_met() const;  // a scheduler welcomed this program at least once
    void note_scheduler_met();
    // The highest epoch of a scheduler of another host that welcomed this program; a fork knows it too.
    std::uint64_t epoch_met() const;
    void note_epoch(std::uint64_t epoch);

    void session_opened(int number, dcs::client::OpenSession as);
    dcs::client::Submitting &submitting() { return submitting_; }
    void submitted(int number, const std::vector<int> &grains, const dcs::wire::Done &done);
    void session_closed(int number);
    dcs::Status resume_failed(int number, bool in_order);
    std::optional<int> only_taken(int number) const;             // as GrainsOfRun
    std::optional<std::int32_t> session_next(int number) const;  // nothing: not opened here

    // What goes along with sessions that are opened from here on. Set before other threads open any.
    struct NewSessions {
        std::string label;
        std::int32_t nice = 0;
    };
    NewSessions new_sessions;
    // What submissions change, as in wire::Gexec. Set while no other thread submits.
    bool new_demands = false, new_environment = false, again = false, from_start = false;
    bool may_resume_failed = true;  // if the environment says so; not commands, which have options for it
    template <class Submission> void put_changes(Submission &to) const;
    // Called once in a call that has waited for the scheduler for a few seconds: why (empty: it is connected, and does
    // not answer), and after how long the call gives up. Set before other threads call.
    using Waits = void (*)(const std::string &why, dcs::Duration gives_up);
    std::atomic<Waits> waits{nullptr};

    // How to get to a scheduler on another host; null: it is on this one (remote.h).
    dcs::client::RemotePtr remote() const;
    void set_remote(dcs::client::RemotePtr remote);
    // True when `due` says so of the remote: for one thread, and then not again before `pause` has passed.
    bool take_renewal(dcs::Instant now, dcs::Duration pause, bool (*due)(const dcs::client::Remote &));
    dcs::Instant renewal_not_before() const;

    // This thread's connection.
    dcs::client::Line &line();

private:
    struct Again {
        bool failed = false, in_order = false;
    };
    Again again_in(int session) const;

    friend class dcs::client::TakeResult;
    friend class dcs::client::AuthTurn;
    friend struct dcs::client::Forks;

    const dcs::client::PoolOptions options_;
    std::atomic<double> patience_s_;
    const std::uint64_t number_;  // of all pools that this process opened

    // All that follows is guarded by the one mutex of pools, which a fork holds.
    dcs::client::Credentials credentials_;
    std::string inherited_;
    bool authorizing_ = false;  // of AuthTurn
    std::map<int, dcs::client::OpenSession> sessions_;
    std::uint64_t openings_ = 0;
    bool met_ = false;
    std::uint64_t epoch_ = 0;
    dcs::client::RemotePtr remote_;
    dcs::Instant renewal_not_before_{};
    std::vector<std::weak_ptr<dcs::client::Line>> lines_;  // of all threads
    dcs::client::Submitting submitting_;
};

template <class Submission> void d_pool::put_changes(Submission &to) const {
    const Again own = again_in(to.session);
    to.new_demands = new_demands || own.failed;
    to.new_environment = new_environment;
    to.again = again || own.failed;
    to.from_start = from_start;
    to.only_failed = own.failed;
    to.in_order = own.in_order;
}

namespace dcs::client {

using Pool = ::d_pool;
Pool &default_pool();  // opened by its first use, never closed
inline Pool &pool_of(d_pool *pool) { return pool != nullptr ? *pool : default_pool(); }

// Of what the process has beside its pools. A fork holds it, so that the child finds it free; not locked within a pool.
std::mutex &process_mutex();

std::uint64_t next_request_id();  // never 0, and another one for each request of this process
std::uint64_t random_seed();

inline Status no_auth_yet() { return fail(Code::no_auth, "d_get_auth has not been called, or did not succeed"); }

// One thread at a time asks who the program is: those that begin together are one program, with one token.
class AuthTurn {
public:
    explicit AuthTurn(Pool &pool);
    ~AuthTurn();
    AuthTurn(const AuthTurn &) = delete;
    AuthTurn &operator=(const AuthTurn &) = delete;

private:
    Pool &pool_;
};

// The turn of one thread to take a session's next result. Several threads may wait on one session;
// they get different results, one after the other.
class TakeResult {
public:
    // block false: Code::nothing_yet while another thread waits (there is nothing, or it had it).
    TakeResult(Pool &pool, int number, bool block);
    ~TakeResult();
    TakeResult(const TakeResult &) = delete;
    TakeResult &operator=(const TakeResult &) = delete;

    const Status &status() const { return status_; }
    std::int32_t next() const { return next_; }
    // As GrainsOfRun::without_result() when the turn began.
    std::optional<std::size_t> without_result() const { return without_result_; }
    std::int32_t failed_from() const { return failed_from_; }  // as in wire::Gwait
    void taken(std::span<const wire::GrainResult> results);

private:
    OpenSession *mine();  // null: reopened meanwhile

    Pool &pool_;
    int number_;
    std::uint64_t opening_ = 0;
    std::int32_t next_ = 0, failed_from_ = 0;
    std::optional<std::size_t> without_result_;
    bool holds_ = false;
    Status status_;
};

}  // namespace dcs::client
