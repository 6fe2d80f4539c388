// The C calls against a scheduler that misbehaves.
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <set>

#include <sys/time.h>
#include <unistd.h>

#include "client/call.h"
#include "c_calls.h"
#include "support/about.h"

using namespace dcs;
using namespace dcs::test;
using Clock = std::chrono::steady_clock;

namespace {

double seconds_since(Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); }

}  // namespace

TEST_CASE("a session from open to close, on one connection") {
    client::default_pool().forget_token(std::string(32, 't'));  // of a test before
    FakeScheduler fake;
    get_auth();
    REQUIRE(d_open_ses(3) == NO_ERROR);
    REQUIRE(d_gexec(3, 17, words, nullptr, "input", 5, 64, 1, 2) == NO_ERROR);
    int grain = 0, completed = 0, sent = 0, termsig = -1, retcode = -1;
    size_t outlen = 0, errlen = 0;
    char *out = nullptr, *err = nullptr;
    rusage usage;
    REQUIRE(d_gwait(D_BLOCK, 3, &grain, &completed, &sent, &termsig, &retcode, &usage, &outlen, &out, &errlen, &err) ==
            NO_ERROR);
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
    CHECK(spec.demands.host_class == 5);
    CHECK(spec.demands.thrash == 64);
    CHECK(spec.demands.urgent);
    CHECK(spec.demands.notice == 2);
    CHECK(spec.demands.attempts == 3);
    CHECK(fake.all<wire::CloseSession>().at(0).second.acknowledged == 1);
    CHECK(fake.all<wire::Gkill>().at(0).second.grain == 18);
    const auto hellos = fake.all<wire::Hello>();
    REQUIRE(hellos.size() == 2);  // without a token for d_get_auth, then with it
    CHECK(hellos[0].second.token.empty());
    CHECK(hellos[1].second.token == std::string(32, 't'));
    std::set<std::uint64_t> ids;
    for (const auto &s : fake.seen())
        if (!std::holds_alternative<wire::Hello>(s.message)) CHECK(ids.insert(s.request).second);
    CHECK(wait_for(D_BLOCK, 3, &grain) == D_E_SESSION_CLOSED);
}

TEST_CASE("results are asked for by their index, and a failed wait does not move it") {
    FakeScheduler fake;
    get_auth();
    REQUIRE(d_open_ses(4) == NO_ERROR);
    auto wait = [](int *grain) { return wait_for(D_NO_BLOCK, 4, grain); };
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
        Act a = as_usual(m);
        if (std::holds_alternative<wire::OpenSession>(m)) a.reply = wire::OpenReply{wire::OpenedAs::resumed, 6, 8};
        return a;
    });
    int grain = 0;
    REQUIRE(d_resume_ses(5, 0) == NO_ERROR);
    REQUIRE(wait_for(0, 5, &grain) == NO_ERROR);
    CHECK(grain == 106);
    REQUIRE(d_resume_ses(5, 1) == NO_ERROR);
    REQUIRE(wait_for(0, 5, &grain) == NO_ERROR);
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
            Act a = as_usual(m);
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
    CHECK(seconds_since(begin) < 15);  // without the variable it would be 20
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
        Act a = as_usual(m);
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
            Act a = as_usual(m);
            if (nth >= 0) a.raw = raw;
            return a;
        });
        CHECK(d_gkill(3, 1) == D_E_PROTOCOL);
    }
    fake.script([](const wire::AnyMessage &m, int nth) {
        Act a = as_usual(m);
        if (nth >= 0) a.reply = wire::Welcome{};
        return a;
    });
    CHECK(d_gkill(3, 1) == D_E_PROTOCOL);
    CHECK(std::string(d_errortext()) == about("scheduler answered Welcome"));
    fake.script([](const wire::AnyMessage &m, int nth) {
        Act a = as_usual(m);
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
        Act a = as_usual(m);
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
    CHECK(wait_for(D_BLOCK, 3, &grain) == NO_ERROR);
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
        Act a = as_usual(m);
        a.delay_ms = 300;
        return a;
    });
    struct sigaction action {
    }, old{};
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
