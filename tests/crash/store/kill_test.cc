// The real disk and a real kill -9, at any moment: a child commits turn after turn and reports each
// acknowledgement; what it acknowledged must be there, and nothing may be there in part.
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "crash/store/workload.h"
#include "store/disk_posix.h"
#include "support/catch.h"

namespace dcs::test {
namespace {

using namespace store;

StoreOptions options_of(unsigned round) {
    StoreOptions options;
    options.inline_limit = round % 2 ? 24 : 1000;
    options.flush_turns = 1 + round % 7;
    options.reserve_bytes = 64 * 1024;
    options.journal_bytes = round % 3 ? 64 * 1024 : 0;
    options.journal_turn_bytes = options.journal_bytes;
    options.behind_turns = round % 5;
    return options;
}

void collect(Store &store, const std::string &directory, Files &files) {
    const auto names = store.list(directory);
    REQUIRE(names);
    for (const std::string &name : *names) {
        const std::string path = directory.empty() ? name : directory + "/" + name;
        if (name.back() == '/') {
            collect(store, path.substr(0, path.size() - 1), files);
            continue;
        }
        const auto bytes = store.read(path, 0, 1 << 20);
        REQUIRE(bytes);
        files[path] = *bytes;
    }
}

// Only calls that a child may make; the exit code says what went wrong.
[[noreturn]] void child(const std::string &directory, const Workload &workload, unsigned round, int acknowledge) {
    auto disk = open_posix_disk(directory);
    if (!disk) ::_exit(2);
    auto store = Store::open(**disk, test_forest(), options_of(round), nullptr);
    if (!store) ::_exit(3);
    for (std::size_t turn = (*store)->turn(); turn < workload.turns.size(); ++turn) {
        if ((*store)->commit(workload.turns[turn].updates).answer != Answer::done) ::_exit(4);
        const char byte = 1;
        if (::write(acknowledge, &byte, 1) != 1) ::_exit(5);
    }
    ::_exit(0);
}

}  // namespace

TEST_CASE("kill -9 of a process that commits to a real disk") {
    char directory[] = "/tmp/dcs-store-kill-XXXXXX";
    REQUIRE(::mkdtemp(directory) != nullptr);
    const Workload workload = drawn_workload(4711, 600);
    Random random(99);
    std::size_t known = 0, finished_again = 0;
    unsigned round = 0;
    for (; round < 25 && known < workload.turns.size(); ++round) {
        int pipe_ends[2];
        REQUIRE(::pipe(pipe_ends) == 0);
        const pid_t pid = ::fork();
        REQUIRE(pid >= 0);
        if (pid == 0) child(directory, workload, round, pipe_ends[1]);
        ::close(pipe_ends[1]);
        std::size_t acknowledged = known;
        char bytes[4096];
        for (std::uint64_t wait = random.below(30); wait > 0 && ::read(pipe_ends[0], bytes, 1) == 1; --wait)
            ++acknowledged;
        ::usleep(static_cast<useconds_t>(random.below(4000)));
        ::kill(pid, SIGKILL);
        for (ssize_t n; (n = ::read(pipe_ends[0], bytes, sizeof bytes)) > 0;)
            acknowledged += static_cast<std::size_t>(n);
        ::close(pipe_ends[0]);
        int status = 0;
        REQUIRE(::waitpid(pid, &status, 0) == pid);
        REQUIRE((WIFSIGNALED(status) || WEXITSTATUS(status) == 0));

        auto disk = open_posix_disk(directory);
        REQUIRE(disk);
        RecoveryReport report;
        auto store = Store::open(**disk, test_forest(), options_of(round + 1), &report);
        INFO("round " << round << ", " << (store ? "" : store.status().text));
        REQUIRE(store);
        finished_again += report.turns_finished;
        const std::size_t turn = (*store)->turn();
        CHECK(turn >= acknowledged);
        CHECK(turn <= acknowledged + 1);
        Files files;
        collect(**store, "", files);
        CHECK(without_spares(std::move(files)) == workload.states[turn]);
        known = turn;
    }
    std::printf("kill -9: %u rounds, %zu turns, %zu of them finished by recovery\n", round, known, finished_again);
    CHECK(known > 0);
    const std::string clean = std::string("rm -r ") + directory;
    CHECK(::system(clean.c_str()) == 0);
}

}  // namespace dcs::test
