// The real store on the real disk, while libc's file calls fail one after the other (faulty.c, preloaded): with
// EIO, ENOSPC, EDQUOT, EMFILE, EINTR, by half, done and reported as failed all the same, or with a kill -9 instead of
// the call; once, and from then on; while turns are committed, and inside recovery. Afterwards a store without
// faults must show every acknowledged turn whole, no refused one, and one in doubt whole or not at all.
//
//   LD_PRELOAD=build/release/tests/libfaulty.so build/release/bin/crash_calls
//   DCS_SEED=N                another choice of faults
//   DCS_CRASH_STATES=N        (any N) every fault at every call
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "crash/calls/faulty.h"
#include "crash/store/workload.h"
#include "store/disk_posix.h"
#include "support/catch.h"

namespace dcs::test {
namespace {

using namespace store;

constexpr long calls_max = 1 << 16;
constexpr unsigned hang_after_s = 30;  // a run takes milliseconds
constexpr int ended_well = 0, ended_in_doubt = 1, open_refused = 3;

// clang-format off
struct Kind { const char *name; faulty_fault fault; int error; };
constexpr Kind all_kinds[] = {
    {"EIO", faulty_error, EIO},       {"EIO though done", faulty_error_done, EIO},
    {"ENOSPC", faulty_error, ENOSPC}, {"EDQUOT", faulty_error, EDQUOT},
    {"EMFILE", faulty_error, EMFILE}, {"EINTR", faulty_error, EINTR},
    {"half", faulty_short, 0},        {"kill", faulty_kill, 0}};
// Where a run begins: an empty directory, or what a kill -9 at a call of a first process left.
struct Beginning { long killed_at = 0; };
// clang-format on

bool everything() { return std::getenv("DCS_CRASH_STATES") != nullptr; }

bool applies(const Kind &kind, char call) {
    if (kind.fault == faulty_short) return call == faulty_writes || call == faulty_reads;
    if (kind.error == EMFILE) return call == faulty_opens;
    return true;
}

// What the process under test leaves behind, even when it is killed.
struct Shared {
    faulty_notes notes;
    char kinds[calls_max];
    std::size_t recovered, acknowledged, started;  // turns, +1 for `recovered`: 0 is "did not open"
    unsigned done, nothing;
    char wrong[1024];
};

struct Tally {
    std::uint64_t runs = 0, hit = 0, done = 0, nothing = 0, in_doubt = 0, refused_opens = 0, killed = 0, bad = 0;
    std::string first_bad;
};

std::string scratch_parent() { return ::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp"; }

void collect(Store &store, const std::string &directory, Files &files) {
    const auto names = store.list(directory);
    if (!names) return;
    for (const std::string &name : *names) {
        const std::string path = directory.empty() ? name : directory + "/" + name;
        if (name.back() == '/') {
            collect(store, path.substr(0, path.size() - 1), files);
            continue;
        }
        const auto bytes = store.read(path, 0, 1 << 20);
        files[path] = bytes ? *bytes : "unreadable: " + bytes.status().text;
    }
}

std::string difference(Store &store, const Workload &workload, std::size_t turn) {
    Files files;
    collect(store, "", files);
    if (without_spares(std::move(files)) == workload.states[turn]) return "";
    return "the trees are not those of turn " + std::to_string(turn);
}

class Bench {
public:
    Bench(const Workload &workload, StoreOptions options) : workload_(workload), options_(options) {
        watch_ = reinterpret_cast<faulty_watch_function *>(::dlsym(RTLD_DEFAULT, "faulty_watch"));
        stop_ = reinterpret_cast<faulty_stop_function *>(::dlsym(RTLD_DEFAULT, "faulty_stop"));
        if (!watch_ || !stop_) FAIL("not under LD_PRELOAD: see the head of tests/crash/calls/calls_test.cc");
        void *memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        REQUIRE(memory != MAP_FAILED);
        shared_ = static_cast<Shared *>(memory);
        directory_ = scratch_parent() + "/dcs-calls-XXXXXX";
        REQUIRE(::mkdtemp(directory_.data()) != nullptr);
    }
    ~Bench() {
        std::filesystem::remove_all(directory_);
        ::munmap(shared_, sizeof(Shared));
    }
    Bench(const Bench &) = delete;

    // A process that opens the store and continues with the workload up to `until`. Returns the calls it made.
    int process(const faulty_plan &plan, std::size_t until) {
        *shared_ = Shared{};
        shared_->notes.size = calls_max;
        shared_->notes.kinds = shared_->kinds;
        const pid_t pid = ::fork();
        REQUIRE(pid >= 0);
        if (pid == 0) child(plan, until);
        int status = 0;
        REQUIRE(::waitpid(pid, &status, 0) == pid);
        return status;
    }

    // An empty directory again.
    void empty() {
        for (const auto &entry : std::filesystem::directory_iterator(directory_)) std::filesystem::remove_all(entry);
    }

    // What a store without faults finds: a turn of low..high, whole, and nothing else on the disk.
    std::string verdict(std::size_t low, std::size_t high) const {
        auto disk = open_posix_disk(directory_);
        if (!disk) return disk.status().text;
        RecoveryReport report;
        auto store = Store::open(**disk, test_forest(), options_, &report);
        if (!store) return "does not open again: " + store.status().text;
        if (!report.damaged.empty()) return report.damaged[0].path + ": " + report.damaged[0].what;
        const std::size_t turn = (*store)->turn();
        if (turn < low || turn > high)
            return "is at turn " + std::to_string(turn) + " of " + std::to_string(low) + ".." + std::to_string(high);
        if (std::string text = difference(**store, workload_, turn); !text.empty()) return text;
        for (const auto &entry : std::filesystem::recursive_directory_iterator(directory_)) {
            const std::string name = entry.path().filename().string();
            const bool left = entry.path().extension() == ".tmp" || entry.path().extension() == ".new";
            if (left && name != "reserve.tmp") return "a temporary is left: " + entry.path().string();
        }
        return "";
    }

    const Shared &told() const { return *shared_; }
    std::vector<char> kinds_of_calls() const {
        return {shared_->kinds, shared_->kinds + std::min(shared_->notes.calls, calls_max)};
    }

private:
    [[noreturn]] void child(const faulty_plan &plan, std::size_t until) {
        ::alarm(hang_after_s);
        watch_(directory_.c_str(), &plan, &shared_->notes);
        auto disk = open_posix_disk(directory_);
        if (!disk) ::_exit(open_refused);
        auto opened = Store::open(**disk, test_forest(), options_, nullptr);
        if (!opened) ::_exit(open_refused);
        Store &store = **opened;
        shared_->recovered = store.turn() + 1;
        shared_->acknowledged = shared_->started = store.turn();
        for (std::size_t turn = store.turn(); turn < until; ++turn) {
            shared_->started = turn + 1;
            if (!commit(store, turn, plan.from_then_on != 0)) ::_exit(ended_in_doubt);
            shared_->acknowledged = turn + 1;
            ++shared_->done;
            if (workload_.turns[turn].flush_after && store.flush().answer != Answer::done) ::_exit(ended_in_doubt);
            // What a single fault did shows within a few turns.
            if (shared_->notes.hits > 0 && !everything()) until = std::min(until, turn + 4);
        }
        ::_exit(ended_well);
    }

    // False: in doubt, the process must end.
    bool commit(Store &store, std::size_t turn, bool again_with_fault) {
        const std::vector<TreeUpdate> &updates = workload_.turns[turn].updates;
        CommitResult result = store.commit(updates);
        if (result.answer == Answer::nothing && again_with_fault) {
            ++shared_->nothing;
            result = store.commit(updates);
        }
        if (result.answer == Answer::nothing) {
            ++shared_->nothing;
            stop_();
            if (result.status) wrong("nothing, but no reason");
            if (store.turn() != turn) wrong("a refused turn counts");
            wrong(difference(store, workload_, turn));
            result = store.commit(updates);
            if (result.answer != Answer::done) wrong("does not go on when the cause is gone: " + result.status.text);
        }
        if (result.answer == Answer::done) return true;
        if (store.commit(updates).answer != Answer::unknown) wrong("answers again after `unknown`");
        return false;
    }

    void wrong(const std::string &text) {
        if (shared_->wrong[0] == '\0') std::strncpy(shared_->wrong, text.c_str(), sizeof shared_->wrong - 1);
    }

    const Workload &workload_;
    const StoreOptions options_;
    Shared *shared_ = nullptr;
    std::string directory_;
    faulty_watch_function *watch_ = nullptr;
    faulty_stop_function *stop_ = nullptr;
};

class Runs {
public:
    Runs(const Workload &workload, StoreOptions options, Tally &tally, std::uint64_t seed)
        : workload_(workload), bench_(workload, options), tally_(tally), random_(seed) {}

    // A run without faults: the calls that it makes.
    const std::vector<char> &calls(const Beginning &beginning, std::size_t until) {
        begin(beginning);
        REQUIRE(bench_.process(faulty_plan{}, until) == 0);
        return call_ = bench_.kinds_of_calls();
    }

    void one(const Beginning &beginning, long at, const Kind &kind, bool from_then_on, std::size_t until) {
        begin(beginning);
        const faulty_plan plan{at, from_then_on, kind.fault, kind.error};
        const int status = bench_.process(plan, until);
        const Shared &told = bench_.told();
        ++tally_.runs;
        tally_.hit += told.notes.hits > 0;
        tally_.done += told.done;
        tally_.nothing += told.nothing;
        const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        tally_.in_doubt += code == ended_in_doubt;
        tally_.refused_opens += code == open_refused;
        const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && kind.fault == faulty_kill;
        tally_.killed += killed;
        std::string wrong = told.wrong;
        if (WIFSIGNALED(status) && !killed)
            wrong = WTERMSIG(status) == SIGALRM ? "hangs" : "ended by signal " + std::to_string(WTERMSIG(status));
        else if (!killed && code != ended_well && code != ended_in_doubt && code != open_refused)
            wrong = "ended with exit code " + std::to_string(code);
        else if (call_[at - 1] == faulty_syncs && told.notes.hits > 0 && code == ended_well)
            wrong = "went on after a failed sync";
        else if (told.recovered != 0 && (told.recovered - 1 < low_ || told.recovered - 1 > high_))
            wrong = "came to turn " + std::to_string(told.recovered - 1);
        if (wrong.empty())
            wrong = bench_.verdict(told.recovered ? told.acknowledged : low_, told.recovered ? told.started : high_);
        if (!wrong.empty() && tally_.bad++ == 0)
            tally_.first_bad = workload_.name + ", begun after a kill at call " + std::to_string(beginning.killed_at) +
                               " (0: none), call " + std::to_string(at) + ", " + kind.name +
                               (from_then_on ? " from then on: " : " once: ") + wrong;
    }

    // Every call; every fault that applies to it, or `of_each` of them by lot.
    void all(const Beginning &beginning, std::size_t until, std::size_t of_each) {
        calls(beginning, until);
        for (std::size_t i = 0; i < call_.size(); ++i) {
            if (stop_at_first_bad && tally_.bad > 0) return;
            for (const bool from_then_on : {false, true}) {
                std::vector<Kind> kinds;
                for (const Kind &kind : all_kinds)
                    if (applies(kind, call_[i]) && !(from_then_on && kind.fault == faulty_kill)) kinds.push_back(kind);
                while (!everything() && kinds.size() > of_each)
                    kinds.erase(kinds.begin() + static_cast<std::ptrdiff_t>(random_.below(kinds.size())));
                for (const Kind &kind : kinds) one(beginning, static_cast<long>(i) + 1, kind, from_then_on, until);
            }
        }
    }

    // The bounds of what a process that is killed at this call leaves.
    void begin(const Beginning &beginning) {
        bench_.empty();
        low_ = high_ = 0;
        if (beginning.killed_at == 0) return;
        bench_.process(faulty_plan{beginning.killed_at, 0, faulty_kill, 0}, workload_.turns.size());
        low_ = bench_.told().acknowledged;
        high_ = bench_.told().started;
    }
    std::size_t high() const { return high_; }
    bool stop_at_first_bad = false;

private:
    const Workload &workload_;
    Bench bench_;
    Tally &tally_;
    Random random_;
    std::vector<char> call_;  // kind of each
    std::size_t low_ = 0, high_ = 0;
};

StoreOptions options_of(unsigned variant) {
    StoreOptions options;
    options.inline_limit = variant % 2 ? 24 : 1000;
    options.flush_turns = 2 + variant;
    options.sync_all_above = variant % 2 ? 4 : 16;
    options.reserve_bytes = 4096;
    options.journal_bytes = options.journal_turn_bytes = variant % 2 ? 64 * 1024 : 0;
    return options;
}

std::uint64_t seed() {
    const char *text = std::getenv("DCS_SEED");
    return text ? std::strtoull(text, nullptr, 10) : 1;
}

void print(const char *what, const Tally &t) {
    const auto n = [](std::uint64_t v) { return static_cast<unsigned long long>(v); };
    std::printf(
        "%s (seed %llu): %llu runs, %llu with a fault; commits: %llu done, %llu nothing; %llu runs ended in "
        "doubt, %llu opens refused, %llu killed; %llu bad\n",
        what, n(seed()), n(t.runs), n(t.hit), n(t.done), n(t.nothing), n(t.in_doubt), n(t.refused_opens), n(t.killed),
        n(t.bad));
}

}  // namespace

TEST_CASE("a listing whose calls fail says which, also where the file system does not say what its entries are") {
    std::string directory = scratch_parent() + "/dcs-calls-XXXXXX";
    REQUIRE(::mkdtemp(directory.data()) != nullptr);
    auto *watch = reinterpret_cast<faulty_watch_function *>(::dlsym(RTLD_DEFAULT, "faulty_watch"));
    auto *stop = reinterpret_cast<faulty_stop_function *>(::dlsym(RTLD_DEFAULT, "faulty_stop"));
    REQUIRE((watch && stop));
    std::vector<std::string> told;
    faulty_notes notes{};
    for (long at = 0; at <= 1 || notes.hits > 0; ++at) {  // call after call, until none is left to fail
        REQUIRE(at < 100);
        notes = {};
        const faulty_plan plan{at, 0, faulty_error, EIO};
        watch(directory.c_str(), &plan, &notes);
        const auto disk = open_posix_disk(directory);
        if (disk && at == 0) {
            REQUIRE((*disk)->create("file", "bytes"));
            REQUIRE(*(*disk)->make_dir("directory"));
        }
        const auto names = disk ? (*disk)->list("") : Result<std::vector<std::string>>(disk.status());
        stop();
        if (at == 0) CHECK(*names == std::vector<std::string>{"directory/", "file"});
        else told.push_back(names ? "" : names.status().text);
    }
    for (const auto &t : told) UNSCOPED_INFO(t);
    for (const char *words : {"list ", "stat "})
        CHECK(std::any_of(told.begin(), told.end(), [&](const std::string &text) {
            return text.find(words + directory) == 0 && text.find(": Input/output error") != std::string::npos;
        }));
    for (const char *name : {"directory", "file"})
        CHECK(std::count(told.begin(), told.end(), "stat " + directory + "/" + name + ": Input/output error") == 1);
    std::filesystem::remove_all(directory);
}

TEST_CASE("every call to libc may fail") {
    Tally tally;
    const Workload written = written_workload();
    Runs(written, options_of(3), tally, seed()).all(Beginning{}, written.turns.size(), 1);
    const Workload drawn = drawn_workload(seed() + 100, everything() ? 12 : 4);
    Runs(drawn, options_of(0), tally, seed()).all(Beginning{}, drawn.turns.size(), 1);
    print("calls", tally);
    INFO(tally.first_bad);
    CHECK(tally.bad == 0);
    CHECK(tally.hit > 1000);
    CHECK(tally.nothing > 100);
    CHECK(tally.in_doubt > 100);
}

TEST_CASE("every call of a recovery may fail") {
    Tally tally;
    Random random(seed());
    const Workload written = written_workload();
    Runs runs(written, options_of(3), tally, seed());
    const auto calls = static_cast<long>(runs.calls(Beginning{}, written.turns.size()).size());
    const long beginnings = everything() ? 40 : 4;
    for (long i = 0; i < beginnings; ++i) {
        const Beginning beginning{calls * i / beginnings + 1 +
                                  static_cast<long>(random.below(static_cast<std::uint64_t>(calls / beginnings)))};
        runs.begin(beginning);
        const std::size_t until = std::min(runs.high() + 1, written.turns.size());
        runs.all(beginning, until, 1);
    }
    print("calls of recoveries", tally);
    INFO(tally.first_bad);
    CHECK(tally.bad == 0);
    CHECK(tally.refused_opens > 100);
}

TEST_CASE("planted bugs are caught by failing calls") {
    const char *const plants[] = {"ignore_failed_sync", "no_flush_before_remove", "no_flush_before_shrink",
                                  "reverse_replay", "keep_strays"};
    const Workload written = written_workload();
    for (const char *const plant : plants) {
        StoreOptions options = options_of(3);
        options.plant = plant;
        Tally tally;
        Runs runs(written, options, tally, seed());
        runs.stop_at_first_bad = true;
        runs.all(Beginning{}, written.turns.size(), 2);
        std::printf("planted %s: %s\n", plant, tally.first_bad.c_str());
        CHECK(tally.bad > 0);
    }
}

}  // namespace dcs::test
