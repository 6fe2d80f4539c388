// Durable submissions a second, by how many share a commit, beside SQLite (WAL, synchronous=FULL,
// the same grouping) and a plain log (append, fdatasync), on the same disk in the same minute.
//   scheduler  a submission decided, applied, planned and committed (core, record, store)
//   frames     the same from the bytes of its frame on, decoding and fingerprint included
// Usage: perf_store [SECONDS A MEASUREMENT [DIRECTORY]]
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <functional>
#include <mutex>
#include <thread>

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include "perf/figures.h"
#include "perf/pool.h"

namespace dcs::perf {
namespace {

using Clock = std::chrono::steady_clock;
double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Makes `count` submissions durable together; numbers go on from call to call.
class Backend {
public:
    virtual ~Backend() = default;
    virtual void commit(int count) = 0;
};

std::string packed(std::int32_t number) { return wire::pack(small_grain(number)); }

class Scheduler final : public Backend {
public:
    explicit Scheduler(const std::string &directory) : pool_(directory) {
        (void)pool_.control("ann", 1);
        state_ = pool_.turn->state();
        caller_.conn = ConnId{2};
        caller_.user = "ann";
        caller_.has_token = true;
        caller_.token = state_.auth.begin()->first;
    }
    void commit(int count) override {
        record::TurnChanges changes;
        core::Undo undo;
        for (int i = 0; i < count; ++i) decide(changes, undo);
        record::Plan plan = changes.plan(state_, false, 0);
        for (const core::SetSession &length : plan.lengths) core::apply(state_, length, undo);
        must(pool_.store->commit(plan.updates).status, "commit");
    }

private:
    void decide(record::TurnChanges &changes, core::Undo &undo) {
        core::SubmitGrain submit;
        submit.session = 1;
        submit.grain = next_;
        std::string params = packed(next_++);
        std::memcpy(submit.fingerprint.data(), params.data(), submit.fingerprint.size());
        submit.params.bytes = std::make_shared<const std::string>(std::move(params));
        caller_.request = core::RequestId{(std::uint64_t{1} << 62) + static_cast<std::uint64_t>(next_)};
        const core::Decision decision =
            core::decide(state_, pool_.outside->clock, core::UserCall{caller_, std::move(submit)});
        for (const core::Change &change : decision.changes) {
            changes.add(state_, change);
            core::apply(state_, change, undo);
        }
    }
    Pool pool_;
    core::State state_;
    core::Caller caller_;
    std::int32_t next_ = 0;
};

class Frames final : public Backend {
public:
    explicit Frames(const std::string &directory) : pool_(directory) { conn_ = pool_.control("ann", 1); }
    void commit(int count) override {
        for (int i = 0; i < count; ++i, ++next_) pool_.post(conn_, wire::Gexec{1, next_, small_grain(next_)});
        pool_.pump();
    }

private:
    Pool pool_;
    ConnId conn_{};
    std::int32_t next_ = 0;
};

class Sqlite final : public Backend {
public:
    explicit Sqlite(const std::string &directory) {
        check(sqlite3_open((directory + "/db").c_str(), &db_));
        run("PRAGMA journal_mode=WAL");
        run("PRAGMA synchronous=FULL");
        run("CREATE TABLE grains(session INTEGER, grain INTEGER, status INTEGER, fingerprint BLOB, params BLOB, "
            "PRIMARY KEY(session, grain)) WITHOUT ROWID");
        check(sqlite3_prepare_v2(db_, "INSERT INTO grains VALUES(1, ?, 0, ?, ?)", -1, &insert_, nullptr));
    }
    ~Sqlite() override {
        sqlite3_finalize(insert_);
        sqlite3_close(db_);
    }
    void commit(int count) override {
        run("BEGIN");
        for (int i = 0; i < count; ++i, ++next_) {
            const std::string params = packed(next_);
            sqlite3_bind_int(insert_, 1, next_);
            sqlite3_bind_blob(insert_, 2, params.data(), 16, SQLITE_TRANSIENT);
            sqlite3_bind_blob(insert_, 3, params.data(), static_cast<int>(params.size()), SQLITE_TRANSIENT);
            if (sqlite3_step(insert_) != SQLITE_DONE) check(SQLITE_ERROR);
            sqlite3_reset(insert_);
        }
        run("COMMIT");
    }

private:
    void check(int code) {
        if (code != SQLITE_OK) must(fail(Code::internal, sqlite3_errmsg(db_)), "SQLite");
    }
    void run(const char *sql) { check(sqlite3_exec(db_, sql, nullptr, nullptr, nullptr)); }
    sqlite3 *db_ = nullptr;
    sqlite3_stmt *insert_ = nullptr;
    std::int32_t next_ = 0;
};

class PlainLog final : public Backend {
public:
    explicit PlainLog(const std::string &directory)
        : fd_(::open((directory + "/log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)) {}
    ~PlainLog() override { ::close(fd_); }
    void commit(int count) override {
        std::string batch;
        for (int i = 0; i < count; ++i) batch += packed(next_++);
        if (::write(fd_, batch.data(), batch.size()) != static_cast<ssize_t>(batch.size()) || ::fdatasync(fd_) != 0)
            must(fail(Code::io_error, std::strerror(errno)), "log");
    }

private:
    int fd_;
    std::int32_t next_ = 0;
};

struct Entry {
    const char *name;
    std::function<std::unique_ptr<Backend>(const std::string &)> make;
};

double one_caller(Backend &backend, int group, double seconds) {
    const auto start = Clock::now();
    std::int64_t done = 0;
    do {
        backend.commit(group);
        done += group;
    } while (since(start) < seconds);
    return static_cast<double>(done) / since(start);
}

// Each caller waits for its own submission; a caller that finds no commit under way commits for all
// that wait.
double many_callers(Backend &backend, int callers, double seconds) {
    std::mutex mutex;
    std::condition_variable changed;
    bool committing = false;
    std::uint64_t waiting = 0, asked = 0, done = 0;
    const auto start = Clock::now();
    const auto call = [&] {
        std::unique_lock<std::mutex> lock(mutex);
        const std::uint64_t mine = ++asked;
        ++waiting;
        while (done < mine) {
            if (committing) {
                changed.wait(lock);
                continue;
            }
            committing = true;
            const std::uint64_t group = std::exchange(waiting, 0), last = asked;
            lock.unlock();
            backend.commit(static_cast<int>(group));
            lock.lock();
            done = last;
            committing = false;
            changed.notify_all();
        }
    };
    std::vector<std::thread> threads;
    for (int i = 0; i < callers; ++i)
        threads.emplace_back([&] {
            while (since(start) < seconds) call();
        });
    for (std::thread &thread : threads) thread.join();
    return static_cast<double>(done) / since(start);
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

constexpr int rounds = 3;

// The backends take turns, so that a slow minute of the disk is each caller's.
void measure(const std::string &directory, const std::vector<Entry> &entries, const std::string &what,
             const std::function<double(Backend &)> &trial) {
    std::vector<std::vector<double>> figures(entries.size());
    for (int round = 0; round < rounds; ++round) {
        for (std::size_t i = 0; i < entries.size(); ++i) {
            const std::string place = directory + "/" + entries[i].name;
            std::filesystem::create_directories(place);
            auto backend = entries[i].make(place);
            figures[i].push_back(trial(*backend));
            backend.reset();
            std::filesystem::remove_all(place);
        }
        figure("store, " + what + " a commit: submissions, of SQLite", figures[0].back(), figures[2].back(), "/s");
        figure("store, " + what + " a commit: submissions, of a plain log", figures[0].back(), figures[3].back(), "/s");
    }
    std::printf("%-12s", what.c_str());
    for (const auto &of_backend : figures) std::printf(" %11.0f", median(of_backend));
    std::printf("   %.2f   %.2f\n", median(figures[0]) / median(figures[2]), median(figures[0]) / median(figures[3]));
    std::fflush(stdout);
}

int run(int argc, char **argv) {
    const double seconds = argc > 1 ? std::atof(argv[1]) : 0.7;
    const char *place = argc > 2 ? argv[2] : std::getenv("TMPDIR");
    std::string pattern = std::string(place ? place : "/var/tmp") + "/dcs-perf-XXXXXX";
    if (!::mkdtemp(pattern.data())) must(fail(Code::io_error, std::strerror(errno)), pattern.c_str());
    const std::vector<Entry> entries = {
        {"scheduler", [](const std::string &d) { return std::make_unique<Scheduler>(d); }},
        {"frames", [](const std::string &d) { return std::make_unique<Frames>(d); }},
        {"sqlite", [](const std::string &d) { return std::make_unique<Sqlite>(d); }},
        {"log", [](const std::string &d) { return std::make_unique<PlainLog>(d); }}};
    std::printf("durable submissions a second, median of %d; %zu bytes of parameters each\n", rounds,
                packed(100'000).size());
    std::printf("%-12s %11s %11s %11s %11s   of SQLite, of the log\n", "a commit", "scheduler", "frames", "SQLite",
                "plain log");
    for (const int group : {1, 10, 100, 1'000, 10'000})
        measure(pattern, entries, std::to_string(group),
                [&](Backend &backend) { return one_caller(backend, group, seconds); });
    measure(pattern, entries, "64 callers", [&](Backend &backend) { return many_callers(backend, 64, seconds); });
    std::filesystem::remove_all(pattern);
    return 0;
}

}  // namespace
}  // namespace dcs::perf

int main(int argc, char **argv) { return dcs::perf::run(argc, argv); }
