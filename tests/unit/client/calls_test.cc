// The C calls against a scheduler that misbehaves.
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <set>

#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/limits.h"
#include "dcs.h"
#include "fake_scheduler.h"
#include "support/catch.h"

using namespace dcs;
using dcs::test::Act;
using dcs::test::FakeScheduler;
using dcs::test::plausible;
using Clock = std::chrono::steady_clock;

namespace {

char *words[] = {const_cast<char *>("bin/ecm"), const_cast<char *>("12"), nullptr};

double seconds_since(Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); }

void get_auth() { REQUIRE(d_get_auth("tester") == NO_ERROR); }

Act answer(const wire::AnyMessage &m) {
    Act a;
    a.reply = plausible(m);
    return a;
}

}  // namespace

TEST_CASE("a session from open to close, on one connection") {
    FakeScheduler fake;
    get_auth();
    REQUIRE(d_open_ses(3) == NO_ERROR);
    REQUIRE(d_gexec(3, 17, words, nullptr, "input", 5, 64, 1, 2) == NO_ERROR);
    int grain = 0, completed = 0, sent = 0, termsig = -1, retcode = -1;
    size_t outlen = 0, errlen = 0;
    char *out = nullptr, *err = nullptr;
    rusage usage;
    REQUIRE(d_gwait(D_BLOCK, 3, &grain, &completed, &sent, &termsig, &retcode, &usage, &outlen, &out, &errlen, &err) == NO_ERROR);
    CHECK(grain == 100);
    CHECK(completed == 9);
    CHECK(sent == 1);
    CHECK(std::strcmp(out, "out") == 0);
    CHECK(std::strcmp(err, "err") == 0);
    CHECK(outlen == 3);
    REQUIRE(d_gkill(3, 18) == NO_ERROR);
    REQUIRE(d_close_ses(3) == NO_ERROR);
    CHECK(std::string(d_errortext()).empty());

    const auto execs = fake.all<wire::Gexec>();
    REQUIRE(execs.size() == 1);
    const wire::GrainSpec &spec = execs[0].second.spec;
    CHECK(spec.argv == std::vector<std::string>{"bin/ecm", "12"});
    CHECK(spec.input == "input");
    CHECK(spec.host_class == 5);
    CHECK(spec.thrash == 64);
    CHECK(spec.urgent);
    CHECK(spec.notice == 2);
    CHECK(spec.attempts == 3);
    CHECK(fake.all<wire::CloseSession>().at(0).second.acknowledged == 1);
    CHECK(fake.all<wire::Gkill>().at(0).second.grain == 18);
    const auto hellos = fake.all<wire::Hello>();
    REQUIRE(hellos.size() == 2);  // without a token for d_get_auth, then with it
    CHECK(hellos[0].second.token.empty());
    CHECK(hellos[1].second.token == std::string(32, 't'));
    std::set<std::uint64_t> ids;
    for (const auto &s : fake.seen())
        if (!std::holds_alternative<wire::Hello>(s.message)) CHECK(ids.insert(s.request).second);
    CHECK(d_gwait(D_BLOCK, 3, &grain, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr) ==
          D_E_SESSION_CLOSED);
}

TEST_CASE("results are asked for by their index, and a failed wait does not move it") {
    FakeScheduler fake;
    get_auth();
    REQUIRE(d_open_ses(4) == NO_ERROR);
    auto wait = [](int *grain) {
        return d_gwait(D_NO_BLOCK, 4, grain, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr);
    };
    int grain = 0;
    REQUIRE(wait(&grain) == NO_ERROR);
    fake.script([](const wire::AnyMessage &, int) {
        Act a;
        a.reply = wire::ErrorReply{D_E_NOTHING_YET, ""};
        return a;
    });
    CHECK(wait(&grain) == D_E_NOTHING_YET);
    CHECK(std::string(d_errortext()) == d_strerror(D_E_NOTHING_YET));
    fake.script([](const wire::AnyMessage &, int) {  // index 1 is a hole
        Act a;
        wire::GrainResult r;
        r.grain = 55, r.sent = 3;
        a.reply = r;
        return a;
    });
    REQUIRE(wait(&grain) == NO_ERROR);
    CHECK(grain == 55);
    fake.script(nullptr);
    REQUIRE(wait(&grain) == NO_ERROR);
    CHECK(grain == 103);
    std::vector<int> asked;
    for (const auto &[id, m] : fake.all<wire::Gwait>()) asked.push_back(m.next);
    CHECK(asked == std::vector<int>{0, 1, 1, 3});
}

TEST_CASE("resume goes on where the record says, sent_reset from the first result") {
    FakeScheduler fake;
    get_auth();
    fake.script([](const wire::AnyMessage &m, int) {
        Act a = answer(m);
        if (std::holds_alternative<wire::OpenSession>(m)) a.reply = wire::OpenReply{wire::OpenedAs::resumed, 6, 8};
        return a;
    });
    int grain = 0;
    REQUIRE(d_resume_ses(5, 0) == NO_ERROR);
    REQUIRE(d_gwait(0, 5, &grain, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr) == NO_ERROR);
    CHECK(grain == 106);
    REQUIRE(d_resume_ses(5, 1) == NO_ERROR);
    REQUIRE(d_gwait(0, 5, &grain, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr) == NO_ERROR);
    CHECK(grain == 100);
    const auto opens = fake.all<wire::OpenSession>();
    REQUIRE(opens.size() == 2);
    CHECK(opens[0].second.mode == wire::OpenMode::resume);
    CHECK(!opens[0].second.sent_reset);
    CHECK(opens[1].second.sent_reset);
}

TEST_CASE("a connection cut before, inside or after the reply: the same request again") {
    for (int how = 0; how < 3; ++how) {
        INFO("cut " << how);
        FakeScheduler fake;
        get_auth();
        fake.script([how](const wire::AnyMessage &m, int nth) {
            Act a = answer(m);
            if (nth == 0) a.cut_before = how == 0, a.cut_inside = how == 1, a.cut_after = how == 2;
            return a;
        });
        CHECK(d_gexec(3, 1, words, nullptr, nullptr, 0, 0, 0, 0) == NO_ERROR);
        CHECK(d_gexec(3, 2, words, nullptr, nullptr, 0, 0, 0, 0) == NO_ERROR);
        const auto execs = fake.all<wire::Gexec>();
        if (how < 2) {
            REQUIRE(execs.size() == 3);
            CHECK(execs[0].first == execs[1].first);
            CHECK(execs[1].first != execs[2].first);
        } else {
            REQUIRE(execs.size() == 2);
        }
    }
}

TEST_CASE("a scheduler that comes late is found") {
    FakeScheduler fake(false);
    std::thread later([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        fake.start();
    });
    CHECK(d_get_auth("tester") == NO_ERROR);
    later.join();
}

TEST_CASE("no scheduler: unreachable after patience, with errno") {
    FakeScheduler fake;
    get_auth();
    fake.stop();
    ::setenv("DCS_PATIENCE_S", "0.3", 1);
    const auto begin = Clock::now();
    errno = 0;
    CHECK(d_open_ses(3) == D_E_UNREACHABLE);
    CHECK(errno == ECONNREFUSED);
    CHECK(seconds_since(begin) >= 0.29);
    CHECK(seconds_since(begin) < 3);
    CHECK(std::string(d_errortext()).find("user.sock") != std::string::npos);
    ::setenv("DCS_DIR", (fake.dir() + "/nowhere").c_str(), 1);
    ::setenv("DCS_PATIENCE_S", "100", 1);
    CHECK(d_open_ses(3) == D_E_UNREACHABLE);  // no pool at all: at once
    CHECK(seconds_since(begin) < 5);
    CHECK(std::string(d_errortext()).find("dcs up") != std::string::npos);
}

TEST_CASE("a scheduler that dies on the request: broken, with errno") {
    FakeScheduler fake;
    get_auth();
    ::setenv("DCS_PATIENCE_S", "0.3", 1);
    fake.script([](const wire::AnyMessage &m, int nth) {
        Act a = answer(m);
        a.cut_before = nth >= 0;
        return a;
    });
    errno = 0;
    CHECK(d_open_ses(3) == D_E_BROKEN);
    CHECK(errno == ECONNRESET);
    CHECK(fake.all<wire::OpenSession>().size() >= 2);
}

TEST_CASE("patience 0 tries once") {
    FakeScheduler fake;
    get_auth();
    fake.stop();
    ::setenv("DCS_PATIENCE_S", "0", 1);
    const auto begin = Clock::now();
    CHECK(d_open_ses(3) == D_E_UNREACHABLE);
    CHECK(seconds_since(begin) < 0.2);
}

TEST_CASE("garbage, foreign versions and wrong replies are protocol errors, at once") {
    FakeScheduler fake;
    get_auth();
    std::string foreign = wire::encode(wire::Done{}, 1);
    foreign[6] = 9;
    std::string damaged = wire::encode(wire::ErrorReply{1, "abc"}, 1);
    damaged.back() = 'x';
    for (const std::string &raw : {std::string(100, 'x'), foreign, damaged, wire::encode(wire::Done{}, 12345)}) {
        fake.script([raw](const wire::AnyMessage &m, int nth) {
            Act a = answer(m);
            if (nth >= 0) a.raw = raw;
            return a;
        });
        CHECK(d_gkill(3, 1) == D_E_PROTOCOL);
    }
    fake.script([](const wire::AnyMessage &m, int nth) {
        Act a = answer(m);
        if (nth >= 0) a.reply = wire::Welcome{};
        return a;
    });
    CHECK(d_gkill(3, 1) == D_E_PROTOCOL);
    CHECK(std::string(d_errortext()) == "the scheduler answered Gkill with Welcome");
    fake.script([](const wire::AnyMessage &m, int nth) {
        Act a = answer(m);
        if (nth >= 0) a.reply = wire::ErrorReply{4711, "from the future"};
        return a;
    });
    CHECK(d_gkill(3, 1) == D_E_PROTOCOL);
    fake.script(nullptr);
    CHECK(d_gkill(3, 1) == NO_ERROR);
}

TEST_CASE("a blocking wait outlasts a restart of the scheduler and patience") {
    FakeScheduler fake;
    get_auth();
    REQUIRE(d_open_ses(3) == NO_ERROR);
    ::setenv("DCS_PATIENCE_S", "0.1", 1);
    fake.script([](const wire::AnyMessage &m, int) {
        Act a = answer(m);
        a.park = std::holds_alternative<wire::Gwait>(m);
        return a;
    });
    std::thread restart([&] {
        while (fake.all<wire::Gwait>().empty()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
        fake.stop();
        fake.script(nullptr);
        std::this_thread::sleep_for(std::chrono::milliseconds(600));
        fake.start();
    });
    int grain = 0;
    CHECK(d_gwait(D_BLOCK, 3, &grain, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr) == NO_ERROR);
    restart.join();
    CHECK(grain == 100);
    const auto waits = fake.all<wire::Gwait>();
    REQUIRE(waits.size() == 2);
    CHECK(waits[0].first == waits[1].first);
    CHECK(waits[1].second.next == 0);
    CHECK(waits[1].second.block);
}

TEST_CASE("signals do not interrupt a call") {
    FakeScheduler fake;
    get_auth();
    fake.script([](const wire::AnyMessage &m, int) {
        Act a = answer(m);
        a.delay_ms = 300;
        return a;
    });
    struct sigaction action {}, old {};
    static volatile sig_atomic_t rang;
    rang = 0;
    action.sa_handler = [](int) { rang = rang + 1; };  // without SA_RESTART
    ::sigaction(SIGALRM, &action, &old);
    const itimerval tick{{0, 20000}, {0, 20000}}, off{};
    ::setitimer(ITIMER_REAL, &tick, nullptr);
    CHECK(d_gkill(3, 1) == NO_ERROR);
    ::setitimer(ITIMER_REAL, &off, nullptr);
    ::sigaction(SIGALRM, &old, nullptr);
    CHECK(rang > 3);
}

TEST_CASE("without d_get_auth: no_auth; queries work") {
    const pid_t child = ::fork();  // a process that never called d_get_auth
    if (child == 0) {
        FakeScheduler fake;
        ::setenv("DCS_PATIENCE_S", "1", 1);
        int bad = 0;
        fake.script([](const wire::AnyMessage &m, int) {
            Act a = answer(m);
            if (std::holds_alternative<wire::GetAuth>(m)) a.reply = wire::ErrorReply{D_E_REFUSED, "no"};
            return a;
        });
        bad |= d_get_auth("another") != D_E_REFUSED;
        // The ident of an earlier test is still this process's; a lost token ends it.
        fake.script([](const wire::AnyMessage &m, int) {
            Act a = answer(m);
            if (std::holds_alternative<wire::OpenSession>(m)) a.reply = wire::ErrorReply{D_E_NO_AUTH, "aged out"};
            return a;
        });
        (void)d_open_ses(1);
        fake.script(nullptr);
        bad |= (d_open_ses(1) != D_E_NO_AUTH) << 1;
        bad |= (d_gexec(1, 1, words, nullptr, nullptr, 0, 0, 0, 0) != D_E_NO_AUTH) << 2;
        d_info *info = nullptr;
        bad |= (d_query(D_Q_SYSTEM, nullptr, -1, -1, &info) != NO_ERROR) << 3;
        d_query_free(info);
        bad |= (d_get_auth("tester") != NO_ERROR) << 4;
        bad |= (d_open_ses(1) != NO_ERROR) << 5;
        fake.stop();
        ::_exit(bad);
    }
    int status = -1;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
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
    for (int i = 0; i < 200 && fake.open_now() > 1; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
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
                const int e = d_gwait(D_BLOCK, 9, &grain, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr);
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
    CHECK(d_gwait(0, 1234, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr) ==
          D_E_SESSION_UNKNOWN);
    CHECK(fake.seen().size() == seen);  // nothing of this went out
    d_grain_init(&g);
    g.gargv = words;
    g.input = "a\0b";
    g.input_length = 3;
    g.directory = "dir";
    g.label = "for people";
    CHECK(d_gexec_grain(1, 1, &g) == NO_ERROR);
    const auto spec = fake.all<wire::Gexec>().at(0).second.spec;
    CHECK(spec.input == std::string("a\0b", 3));
    CHECK(spec.directory == "dir");
    CHECK(spec.label == "for people");
}

TEST_CASE("the largest input goes through; a refusal is heard although nobody reads on") {
    FakeScheduler fake;
    get_auth();
    const std::string input(limits::input_bytes, 'x');
    CHECK(d_gexec(1, 1, words, nullptr, input.c_str(), 0, 0, 0, 0) == NO_ERROR);
    CHECK(fake.all<wire::Gexec>().at(0).second.spec.input.size() == limits::input_bytes);
    fake.stop();
    fake.script([](const wire::AnyMessage &m, int) {
        Act a = answer(m);
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
