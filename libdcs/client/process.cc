#include "client/process.h"

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <map>
#include <mutex>
#include <new>

#include <pthread.h>
#include <sys/random.h>

namespace dcs::client {
namespace {

struct OpenSession {
    std::uint64_t opening = 0;  // which d_open_ses this entry is from
    std::int32_t next = 0;
    bool taking = false, closed = false;
};

struct Process {
    std::mutex mutex;
    std::condition_variable *freed = new std::condition_variable;
    Credentials credentials;
    std::string inherited;
    std::map<int, OpenSession> sessions;
    std::uint64_t openings = 0, last_request = 0;
    bool met = false;
    std::uint64_t epoch = 0;
};

void before_fork();
void after_fork_parent();
void after_fork_child();

std::uint64_t random_bits() {
    std::uint64_t v = 0;
    std::size_t have = 0;
    while (have < sizeof v) {
        const ssize_t n = ::getrandom(reinterpret_cast<char *>(&v) + have, sizeof v - have, 0);
        DCS_REQUIRE(n > 0 || errno == EINTR, "the kernel has no random bytes");
        if (n > 0) have += static_cast<std::size_t>(n);
    }
    return v;
}

Process &process() {
    // Never destroyed: threads may still be in a call while the process exits.
    static Process *p = [] {
        auto *made = new Process;
        made->last_request = random_bits();
        ::pthread_atfork(before_fork, after_fork_parent, after_fork_child);
        return made;
    }();
    return *p;
}

void before_fork() { process().mutex.lock(); }
void after_fork_parent() { process().mutex.unlock(); }
void after_fork_child() {
    Process &p = process();
    p.last_request = random_bits();  // else two processes would use the same ids
    p.freed = new std::condition_variable;  // the old one counts waiters that are not here
    for (auto &[number, session] : p.sessions) session.taking = false;
    p.mutex.unlock();
}

}  // namespace

Credentials credentials() {
    const std::lock_guard lock(process().mutex);
    return process().credentials;
}

void set_credentials(Credentials c) {
    const std::lock_guard lock(process().mutex);
    process().credentials = std::move(c);
    process().inherited.clear();
}

void forget_token(const std::string &token) {
    const std::lock_guard lock(process().mutex);
    if (process().credentials.token == token) process().credentials = {};
    if (process().inherited == token) process().inherited.clear();
}

std::string inherited_token() {
    const std::lock_guard lock(process().mutex);
    return process().inherited;
}

void set_inherited_token(std::string token) {
    const std::lock_guard lock(process().mutex);
    process().inherited = std::move(token);
}

std::uint64_t next_request_id() {
    const std::lock_guard lock(process().mutex);
    if (++process().last_request == 0) ++process().last_request;
    return process().last_request;
}

std::uint64_t random_seed() { return random_bits(); }

bool scheduler_met() {
    const std::lock_guard lock(process().mutex);
    return process().met;
}

void note_scheduler_met() {
    const std::lock_guard lock(process().mutex);
    process().met = true;
}

std::uint64_t epoch_met() {
    const std::lock_guard lock(process().mutex);
    return process().epoch;
}

void note_epoch(std::uint64_t epoch) {
    const std::lock_guard lock(process().mutex);
    process().epoch = std::max(process().epoch, epoch);
}

void session_opened(int number, std::int32_t next) {
    Process &p = process();
    const std::lock_guard lock(p.mutex);
    p.sessions[number] = OpenSession{++p.openings, next};
    p.freed->notify_all();
}

void session_closed(int number) {
    const std::lock_guard lock(process().mutex);
    const auto it = process().sessions.find(number);
    if (it != process().sessions.end()) it->second.closed = true;
}

std::optional<std::int32_t> session_next(int number) {
    const std::lock_guard lock(process().mutex);
    const auto it = process().sessions.find(number);
    if (it == process().sessions.end() || it->second.closed) return std::nullopt;
    return it->second.next;
}

TakeResult::TakeResult(int number, bool block) : number_(number) {
    Process &p = process();
    std::unique_lock lock(p.mutex);
    for (;;) {
        const auto it = p.sessions.find(number);
        if (it == p.sessions.end()) {
            status_ = fail(Code::session_unknown, "session " + std::to_string(number) +
                                                      " was not opened by this program");
            return;
        }
        if (it->second.closed) {
            status_ = fail(Code::session_closed,
                           "session " + std::to_string(number) + " was closed by this program");
            return;
        }
        if (!it->second.taking) {
            it->second.taking = holds_ = true;
            opening_ = it->second.opening;
            next_ = it->second.next;
            return;
        }
        if (!block) {
            status_ = fail(Code::nothing_yet, "another thread waits for the next result of session " +
                                                  std::to_string(number));
            return;
        }
        p.freed->wait(lock);
    }
}

TakeResult::~TakeResult() {
    if (!holds_) return;
    const std::lock_guard lock(process().mutex);
    const auto it = process().sessions.find(number_);
    if (it != process().sessions.end() && it->second.opening == opening_) it->second.taking = false;
    process().freed->notify_all();
}

void TakeResult::taken(std::int32_t new_next) {
    const std::lock_guard lock(process().mutex);
    const auto it = process().sessions.find(number_);
    // Opened anew by another thread in the meantime: that opening said where to go on.
    if (it != process().sessions.end() && it->second.opening == opening_) it->second.next = new_next;
}

}  // namespace dcs::client
