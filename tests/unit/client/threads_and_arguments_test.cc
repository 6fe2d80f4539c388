// The C calls with threads, forks, wrong arguments, large requests.
#include <atomic>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include "base/limits.h"
#include "client/auth.h"
#include "client/pool.h"
#include "c_calls.h"

using namespace dcs;
using namespace dcs::test;

namespace {

// Returns a bit for each thing that went wrong.
int without_auth() {
    FakeScheduler fake;
    ::setenv("DCS_PATIENCE_S", "1", 1);
    int bad = 0;
    fake.script([](const wire::AnyMessage &m, int) {
        Act a = as_usual(m);
        if (std::holds_alternative<wire::GetAuth>(m)) a.reply = wire::ErrorReply{D_E_REFUSED, "no"};
        return a;
    });
    bad |= d_get_auth("another") != D_E_REFUSED;
    // The ident of an earlier test is still this process's; a lost token ends it.
    fake.script([](const wire::AnyMessage &m, int) {
        Act a = as_usual(m);
        if (std::holds_alternative<wire::OpenSession>(m)) a.reply = wire::ErrorReply{D_E_NO_AUTH, "expired"};
        return a;
    });
    (void)d_open_ses(1);
    fake.script(nullptr);
    bad |= (d_open_ses(1) != D_E_NO_AUTH) << 1;
    struct d_result result;
    d_result_init(&result, 1);
    bad |= (d_gwait_result(D_BLOCK, 1, &result) != D_E_NO_AUTH) << 6;
    bad |= (d_gexec(1, 1, words, nullptr, nullptr, 0, 0, 0, 0) != D_E_NO_AUTH) << 2;
    d_info *info = nullptr;
    bad |= (d_query(D_Q_SYSTEM, nullptr, -1, -1, &info) != NO_ERROR) << 3;
    d_query_free(info);
    bad |= (d_get_auth("tester") != NO_ERROR) << 4;
    bad |= (d_open_ses(1) != NO_ERROR) << 5;
    return bad;
}

}  // namespace

TEST_CASE("without d_get_auth: no_auth, queries work") {
    const pid_t child = ::fork();  // a process that never called d_get_auth
    if (child == 0) ::_exit(without_auth());
    int status = -1;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
}

TEST_CASE("threads that begin together are one program") {
    FakeScheduler fake;
    fake.script([](const wire::AnyMessage &m, int) {
        if (std::holds_alternative<wire::GetAuth>(m)) ::usleep(100'000);  // all ask before the first has an answer
        return as_usual(m);
    });
    const pid_t child = ::fork();
    if (child == 0) {
        std::atomic<int> bad = 0;
        std::vector<std::thread> all;
        for (int i = 0; i < 8; ++i)
            all.emplace_back([&bad, i] {
                bad += d_get_auth("together") != NO_ERROR;
                bad += d_open_ses(1 + i) != NO_ERROR;
            });
        for (std::thread &t : all) t.join();
        ::_exit(bad);
    }
    int status = -1;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    CHECK(fake.all<wire::GetAuth>().size() == 1);
    CHECK(fake.all<wire::OpenSession>().size() == 8);
}

TEST_CASE("each thread has a connection of its own, closed when the thread ends") {
    FakeScheduler fake;
    get_auth();
    REQUIRE(d_gkill(1, 1) == NO_ERROR);
    const int before = fake.connections();
    std::vector<std::thread> threads;
    std::atomic<int> good{0};
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&, i] {
            if (d_gkill(1, i) == NO_ERROR && d_gkill(2, i) == NO_ERROR) ++good;
        });
    for (auto &t : threads) t.join();
    CHECK(good == 4);
    CHECK(fake.connections() == before + 4);
    for (int i = 0; i < 6000 && fake.open_now() > 1; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    CHECK(fake.open_now() == 1);  // this thread's
}

TEST_CASE("threads that wait on one session get different results") {
    FakeScheduler fake;
    get_auth();
    REQUIRE(d_open_ses(9) == NO_ERROR);
    std::mutex mutex;
    std::multiset<int> grains;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&] {
            for (int n = 0; n < 25; ++n) {
                int grain = -1;
                const int e = wait_for(D_BLOCK, 9, &grain);
                const std::lock_guard lock(mutex);
                grains.insert(e == NO_ERROR ? grain : -e);
            }
        });
    for (auto &t : threads) t.join();
    REQUIRE(grains.size() == 100);
    for (int i = 0; i < 100; ++i) CHECK(grains.count(100 + i) == 1);
}

TEST_CASE("a forked child speaks on a connection of its own, under ids of its own") {
    FakeScheduler fake;
    get_auth();
    REQUIRE(d_gkill(1, 1) == NO_ERROR);
    const pid_t child = ::fork();
    if (child == 0) ::_exit(d_gkill(1, 2) == NO_ERROR ? 0 : 1);
    int status = -1;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    REQUIRE(d_gkill(1, 3) == NO_ERROR);
    std::vector<test::Seen> kills;
    for (const auto &s : fake.seen())
        if (std::holds_alternative<wire::Gkill>(s.message)) kills.push_back(s);
    REQUIRE(kills.size() == 3);
    CHECK(kills[0].connection == kills[2].connection);
    CHECK(kills[1].connection != kills[0].connection);
    CHECK(kills[2].request == kills[0].request + 1);
    CHECK(kills[1].request != kills[2].request);
}

TEST_CASE("a forked child does not keep the parent's connections open") {
    FakeScheduler fake;
    get_auth();
    std::atomic<bool> connected{false}, end{false};
    std::thread other([&] {
        connected = d_gkill(1, 1) == NO_ERROR;
        while (!end) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    });
    while (!connected) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    int hold[2];
    REQUIRE(::pipe(hold) == 0);
    const pid_t child = ::fork();
    if (child == 0) {
        char c;
        ::close(hold[1]);
        ::_exit(::read(hold[0], &c, 1) == 0 ? 0 : 1);  // lives until the parent lets go
    }
    const int before = fake.open_now();
    end = true;
    other.join();
    for (int i = 0; i < 6000 && fake.open_now() >= before; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    CHECK(fake.open_now() == before - 1);  // the scheduler saw the end although the child lives
    ::close(hold[0]), ::close(hold[1]);
    int status = -1;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
}

// Returns what the children that were forked meanwhile ended with.
template <class Call> int forks_while(const Call &call) {
    std::atomic<bool> end{false};
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i)
        threads.emplace_back([&] {
            while (!end) call();
        });
    int ended = 0;
    for (int i = 0; i < 300; ++i) {
        const pid_t child = ::fork();
        if (child == 0) {
            ::alarm(120);  // only ends a child that waits for ever
            call();
            ::_exit(0);
        }
        int status = -1;
        if (child < 0 || ::waitpid(child, &status, 0) != child) status = -1;
        ended |= status;
        if (ended != 0) break;
    }
    end = true;
    for (auto &thread : threads) thread.join();
    return ended;
}

TEST_CASE("a child that was forked while other threads call, and read files, can do so as well") {
    const std::vector<d_file> files(64, d_file{sizeof(d_file), "name", "/etc/passwd", nullptr, 0, 0});
    char *argv[] = {const_cast<char *>("/bin/true"), nullptr};
    d_grain grain;
    d_grain_init(&grain);
    grain.gargv = argv;
    grain.files = files.data();
    grain.file_count = files.size();
    CHECK(d_gexec_grain(-1, 1, &grain) == D_E_INVALID);                   // makes the default pool
    CHECK(forks_while([&] { (void)d_gexec_grain(1, 1, &grain); }) == 0);  // refused: the files have one name
    CHECK(forks_while([] { (void)dcs::client::adopt_remote(dcs::client::default_pool()); }) == 0);
}

TEST_CASE("a path longer than a socket address") {
    FakeScheduler fake(true, std::string(200, 'd'));
    CHECK(d_get_auth("long-path") == NO_ERROR);
    CHECK(d_gkill(1, 1) == NO_ERROR);
}

TEST_CASE("arguments are checked here, in words") {
    FakeScheduler fake;
    get_auth();
    const std::size_t seen = fake.seen().size();
    auto says = [](const char *part) { return std::string(d_errortext()).find(part) != std::string::npos; };
    for (const char *ident : {"", ".x", "-x", "a b", "a/b", "\xc3\xa9"}) CHECK(d_get_auth(ident) == D_E_INVALID);
    CHECK(d_get_auth(nullptr) == D_E_INVALID);
    CHECK(d_get_auth(std::string(65, 'a').c_str()) == D_E_INVALID);
    CHECK((d_open_ses(-1) == D_E_INVALID && says("session_num is -1")));
    CHECK((d_gexec(1, -5, words, nullptr, "", 0, 0, 0, 0) == D_E_INVALID && says("grain_num is -5")));
    CHECK(d_gkill(1, -1) == D_E_INVALID);
    char *none[] = {nullptr};
    CHECK((d_gexec(1, 1, none, nullptr, "", 0, 0, 0, 0) == D_E_INVALID && says("gargv[0]")));
    CHECK(d_gexec(1, 1, nullptr, nullptr, "", 0, 0, 0, 0) == D_E_INVALID);
    char *env[] = {const_cast<char *>("A=1"), const_cast<char *>("NOVALUE"), nullptr};
    CHECK((d_gexec(1, 1, words, env, "", 0, 0, 0, 0) == D_E_INVALID && says("NOVALUE")));
    CHECK((d_gexec(1, 1, words, nullptr, "", 0, -1, 0, 0) == D_E_INVALID && says("thrash is -1")));
    CHECK((d_gexec(1, 1, words, nullptr, "", 0, 0, 0, -2) == D_E_INVALID && says("notice is -2")));
    const std::string big(limits::input_bytes + 1, 'x');
    CHECK((d_gexec(1, 1, words, nullptr, big.c_str(), 0, 0, 0, 0) == D_E_LIMIT && says("16777217")));
    std::vector<char *> many(limits::argv_items + 1, words[0]);
    many.push_back(nullptr);
    CHECK(d_gexec(1, 1, many.data(), nullptr, "", 0, 0, 0, 0) == D_E_LIMIT);
    std::string wide(limits::argv_env_bytes, 'x');
    char *wide_words[] = {words[0], wide.data(), nullptr};
    CHECK(d_gexec(1, 1, wide_words, nullptr, "", 0, 0, 0, 0) == D_E_LIMIT);
    d_grain g;
    d_grain_init(&g);
    CHECK(g.attempts == 3);
    g.gargv = words;
    g.attempts = 0;
    CHECK((d_gexec_grain(1, 1, &g) == D_E_INVALID && says("attempts is 0: it must be 1 to 255")));
    g.attempts = 1;
    g.input_length = 5;
    CHECK((d_gexec_grain(1, 1, &g) == D_E_INVALID && says("input is NULL")));
    CHECK(d_gexec_grain(1, 1, nullptr) == D_E_INVALID);
    CHECK(d_query(99, nullptr, 0, 0, nullptr) == D_E_INVALID);
    d_info *info = nullptr;
    CHECK((d_query(99, nullptr, 0, 0, &info) == D_E_INVALID && says("query_type is 99")));
    FILE *f = nullptr;
    CHECK((d_grain_stream(nullptr, 1, 1, "stdout", &f) == D_E_INVALID && says("\"stdout\"")));
    CHECK(wait_for(0, 1234, nullptr) == D_E_SESSION_UNKNOWN);
    CHECK(fake.seen().size() == seen);  // nothing of this went out
    d_grain_init(&g);
    g.gargv = words;
    g.input = "a\0b";
    g.input_length = 3;
    g.directory = "/dir";
    g.label = "for people";
    CHECK(d_gexec_grain(1, 1, &g) == NO_ERROR);
    const auto spec = fake.all<wire::Gexec>().at(0).second.spec;
    CHECK(spec.input == std::string("a\0b", 3));
    CHECK(spec.directory == "/dir");
    CHECK(spec.label == "for people");
}

TEST_CASE("the largest input goes through, a refusal is heard although no party reads on") {
    FakeScheduler fake;
    get_auth();
    const std::string input(limits::input_bytes, 'x');
    CHECK(d_gexec(1, 1, words, nullptr, input.c_str(), 0, 0, 0, 0) == NO_ERROR);
    CHECK(fake.all<wire::Gexec>().at(0).second.spec.input.size() == limits::input_bytes);
    fake.stop();
    fake.script([](const wire::AnyMessage &m, int) {
        Act a = as_usual(m);
        a.append = wire::encode(wire::ErrorReply{D_E_LIMIT, "no room for you"}, 0);
        a.cut_after = true;
        return a;
    });
    fake.start();
    CHECK(d_gexec(1, 1, words, nullptr, input.c_str(), 0, 0, 0, 0) == D_E_LIMIT);
    CHECK(std::string(d_errortext()) == "no room for you");
}

TEST_CASE("every error has a name and advice") {
    CHECK(std::string(d_errorname(NO_ERROR)) == "NO_ERROR");
    CHECK(std::string(d_errorname(D_E_SESSION_ACTIVE)) == "D_E_SESSION_ACTIVE");
    CHECK(std::string(d_errorname(D_E_INTERNAL)) == "D_E_INTERNAL");
    std::set<std::string> advice;
    for (int e = 0; e <= D_E_INTERNAL; ++e) CHECK(advice.insert(d_strerror(e)).second);
    CHECK(d_strerror(-1));
    CHECK(d_strerror(1000));
    CHECK(d_errorname(1000));
}
