#include "client/pool.h"

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstdlib>
#include <utility>

#include <pthread.h>
#include <sys/random.h>

#include "base/limits.h"
#include "base/per_thread.h"

namespace dcs::client {

// What all pools share: one mutex, so that a fork has one thing to hold, beside that of process_mutex().
struct Forks {
    std::mutex beside_pools, mutex;
    std::condition_variable *freed = new std::condition_variable;
    std::vector<Pool *> pools;
    std::uint64_t opened = 0, last_request = 0;

    static void before();
    static void after_in_parent();
    static void after_in_child();
};

namespace {

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

Forks &process() {
    // Never destroyed: threads may still be in a call while the process exits.
    static Forks *p = [] {
        auto *made = new Forks;
        made->last_request = random_bits();
        ::pthread_atfork(Forks::before, Forks::after_in_parent, Forks::after_in_child);
        return made;
    }();
    return *p;
}

using Held = std::lock_guard<std::mutex>;
template <class Value> Value guarded(const Value &value) {
    const Held held(process().mutex);
    return value;
}

// Made at load: what one thread makes at its first call stays half made in a child that another forks meanwhile.
[[maybe_unused]] const Pool &made_at_load = default_pool();

// Of one thread, to the pools that it has spoken to. The pool has a weak pointer to each, to close them.
struct ThreadLine {
    std::uint64_t pool = 0;
    std::shared_ptr<Line> line;
};

}  // namespace

void Forks::before() {
    process().beside_pools.lock();
    process().mutex.lock();
}
void Forks::after_in_parent() {
    process().mutex.unlock();
    process().beside_pools.unlock();
}
void Forks::after_in_child() {
    Forks &p = process();
    p.last_request = random_bits();                   // else two processes would use the same ids
    p.freed = new (p.freed) std::condition_variable;  // in its place: it counts waiters that are not here
    for (Pool *pool : p.pools) {
        for (auto &[number, session] : pool->sessions_) session.taking = false;
        pool->authorizing_ = false;
        pool->submitting_.abandon();
    }
    after_in_parent();
}

std::mutex &process_mutex() { return process().beside_pools; }

Pool &default_pool() {
    static Pool *pool = new Pool(PoolOptions{});  // never closed, as process() is not
    return *pool;
}

std::uint64_t next_request_id() {
    const Held held(process().mutex);
    if (++process().last_request == 0) ++process().last_request;
    return process().last_request;
}

std::uint64_t random_seed() { return random_bits(); }

AuthTurn::AuthTurn(Pool &pool) : pool_(pool) {
    std::unique_lock lock(process().mutex);
    while (pool_.authorizing_) process().freed->wait(lock);
    pool_.authorizing_ = true;
}

AuthTurn::~AuthTurn() {
    const Held held(process().mutex);
    pool_.authorizing_ = false;
    process().freed->notify_all();
}

TakeResult::TakeResult(Pool &pool, int number, bool block) : pool_(pool), number_(number) {
    const bool nameless = pool.credentials().token.empty() && pool.ident().empty();
    Forks &p = process();
    std::unique_lock lock(p.mutex);
    for (;;) {
        const auto it = pool.sessions_.find(number);
        if (it == pool.sessions_.end()) {
            status_ = nameless ? no_auth_yet()
                               : fail(Code::session_unknown,
                                      "session " + std::to_string(number) + " was not opened by this program");
            return;
        }
        if (it->second.closed) {
            status_ = fail(Code::session_closed, "session " + std::to_string(number) + " was closed by this program");
            return;
        }
        if (!it->second.taking) {
            it->second.taking = holds_ = true;
            opening_ = it->second.opening;
            next_ = it->second.next;
            without_result_ = it->second.grains.without_result();
            if (it->second.resumes_failed) failed_from_ = it->second.results;
            return;
        }
        if (!block) {
            status_ = fail(Code::nothing_yet,
                           "another thread waits for the next result of session " + std::to_string(number));
            return;
        }
        p.freed->wait(lock);
    }
}

OpenSession *TakeResult::mine() {
    const auto it = pool_.sessions_.find(number_);
    return it != pool_.sessions_.end() && it->second.opening == opening_ ? &it->second : nullptr;
}

TakeResult::~TakeResult() {
    if (!holds_) return;
    const Held held(process().mutex);
    if (OpenSession *session = mine()) {
        DCS_REQUIRE(session->taking, "one thread at a time takes results, and it is this one");
        session->taking = false;
    }
    process().freed->notify_all();
}

void TakeResult::taken(std::span<const wire::GrainResult> results) {
    const Held held(process().mutex);
    DCS_REQUIRE(holds_ && !results.empty() && results.back().sent > next_,
                "results are taken in their order, each once");
    // Reopened by another thread in the meantime: that opening says where to continue.
    OpenSession *session = mine();
    if (!session) return;
    session->next = results.back().sent;
    for (const wire::GrainResult &result : results) session->grains.taken(result.grain);
}

}  // namespace dcs::client

using namespace dcs;
using namespace dcs::client;

d_pool::d_pool(PoolOptions options)
    : options_(std::move(options)),
      patience_s_(options_.patience_s),
      number_([this] {
          const Held held(process().mutex);
          process().pools.push_back(this);
          return ++process().opened;
      }()),
      submitting_(process().mutex) {}

d_pool::~d_pool() {
    std::vector<std::shared_ptr<Line>> lines;
    {
        const Held held(process().mutex);
        auto &pools = process().pools;
        pools.erase(std::remove(pools.begin(), pools.end(), this), pools.end());
        for (const auto &line : lines_)
            if (auto standing = line.lock()) lines.push_back(std::move(standing));
    }
    for (const auto &line : lines) {
        line->transport.close();
        line->handed_out.clear();
        line->over = true;
    }
}

Duration d_pool::patience() const {
    constexpr double most_s = 1e9;  // for ever; of which four times still count
    if (const double own = patience_s_; own >= 0) return seconds_of(std::min(own, most_s));
    if (const char *text = std::getenv("DCS_PATIENCE_S"); text && *text) {
        char *end = nullptr;
        const double s = std::strtod(text, &end);
        if (*end == '\0' && s >= 0) return seconds_of(std::min(s, most_s));
    }
    return seconds(30);
}

Credentials d_pool::credentials() const { return guarded(credentials_); }
std::string d_pool::inherited_token() const { return guarded(inherited_); }
bool d_pool::scheduler_met() const { return guarded(met_); }
std::uint64_t d_pool::epoch_met() const { return guarded(epoch_); }
RemotePtr d_pool::remote() const { return guarded(remote_); }
Instant d_pool::renewal_not_before() const { return guarded(renewal_not_before_); }

void d_pool::set_credentials(Credentials c) {
    const Held held(process().mutex);
    credentials_ = std::move(c);
    inherited_.clear();
}

void d_pool::forget_token(const std::string &token) {
    const Held held(process().mutex);
    if (credentials_.token == token) credentials_ = {};
    if (inherited_ == token) inherited_.clear();
}

void d_pool::set_inherited_token(std::string token) {
    const Held held(process().mutex);
    inherited_ = std::move(token);
}

void d_pool::note_scheduler_met() {
    const Held held(process().mutex);
    met_ = true;
}

void d_pool::note_epoch(std::uint64_t epoch) {
    const Held held(process().mutex);
    epoch_ = std::max(epoch_, epoch);
}

void d_pool::session_opened(int number, OpenSession as) {
    DCS_REQUIRE(number >= 0, "the number of a session was checked");
    const Held held(process().mutex);
    as.opening = ++openings_;
    sessions_[number] = std::move(as);
    process().freed->notify_all();
}

void d_pool::submitted(int number, const std::vector<int> &grains, const wire::Done &done) {
    const Held held(process().mutex);
    if (const auto it = sessions_.find(number); it != sessions_.end()) it->second.grains.submitted(grains, done);
}

std::optional<int> d_pool::only_taken(int number) const {
    const Held held(process().mutex);
    const auto it = sessions_.find(number);
    return it == sessions_.end() ? std::nullopt : it->second.grains.only_taken();
}

void d_pool::session_closed(int number) {
    const Held held(process().mutex);
    if (const auto it = sessions_.find(number); it != sessions_.end()) it->second.closed = true;
}

Status d_pool::resume_failed(int number, bool in_order) {
    const Held held(process().mutex);
    const auto it = sessions_.find(number);
    if (it == sessions_.end())
        return fail(Code::session_unknown, "session " + std::to_string(number) + " was not opened by this program");
    if (it->second.replay)
        return fail(Code::session_closed,
                    "session " + std::to_string(number) + " is closed: d_reopen_ses makes it active again");
    it->second.resumes_failed = true;
    it->second.in_order = in_order;
    return Status::ok();
}

d_pool::Again d_pool::again_in(int session) const {
    const Held held(process().mutex);
    const auto it = sessions_.find(session);
    return it == sessions_.end() ? Again{} : Again{it->second.resumes_failed, it->second.in_order};
}

std::optional<std::int32_t> d_pool::session_next(int number) const {
    const Held held(process().mutex);
    const auto it = sessions_.find(number);
    if (it == sessions_.end() || it->second.closed) return std::nullopt;
    return it->second.next;
}

void d_pool::set_remote(RemotePtr remote) {
    DCS_REQUIRE(remote != nullptr, "a pool whose scheduler is elsewhere stays so");
    const Held held(process().mutex);
    remote_ = std::move(remote);
}

bool d_pool::take_renewal(Instant now, Duration pause, bool (*due)(const Remote &)) {
    const Held held(process().mutex);
    if (!remote_ || now < renewal_not_before_ || !due(*remote_)) return false;
    renewal_not_before_ = now + pause;
    return true;
}

Line &d_pool::line() {
    auto &mine = PerThread<std::vector<ThreadLine>>::mine();
    for (const ThreadLine &own : mine)
        if (own.pool == number_) return *own.line;
    const auto made = std::make_shared<Line>();
    {
        const Held held(process().mutex);
        const auto gone = [](const std::weak_ptr<Line> &line) { return line.expired(); };
        lines_.erase(std::remove_if(lines_.begin(), lines_.end(), gone), lines_.end());
        lines_.push_back(made);
    }
    mine.erase(std::remove_if(mine.begin(), mine.end(), [](const ThreadLine &own) { return own.line->over.load(); }),
               mine.end());
    mine.push_back({number_, made});
    return *made;
}
