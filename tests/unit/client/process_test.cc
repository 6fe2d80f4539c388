// The C calls in a process whose standard streams are closed, whose threads are cancelled, whose descriptors are
// used up, and one that waits for ever.
#include <atomic>
#include <cerrno>
#include <cmath>
#include <thread>

#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/pool.h"
#include "c_calls.h"

using namespace dcs;
using namespace dcs::test;

namespace {

int submit(int number) {
    d_grain grain;
    d_grain_init(&grain);
    grain.gargv = words;
    return d_gexec_grain(1, number, &grain);
}

// What the child of a fork ends with.
template <class Body> int in_child(Body body) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(body());
    int status = -1;
    REQUIRE(::waitpid(child, &status, 0) == child);
    return status;
}

}  // namespace

TEST_CASE("no descriptor of the library becomes a standard stream that the program has closed") {
    FakeScheduler fake;
    CHECK(in_child([] {
              for (int fd = 0; fd < 3; ++fd) ::close(fd);
              int bad = d_get_auth("tester") != D_OK || d_open_ses(1) != D_OK || submit(1) != D_OK;
              std::FILE *out = nullptr;
              bad |= (d_pool_gwait_streams(nullptr, D_BLOCK, 1, nullptr, &out, nullptr) != D_OK) << 1;
              for (int fd = 0; fd < 3; ++fd) bad |= (::fcntl(fd, F_GETFD) >= 0) << (2 + fd);
              return bad;
          }) == 0);
}

TEST_CASE("a thread that is cancelled in a call completes it, and no later call waits for it") {
    FakeScheduler fake;
    get_auth();
    REQUIRE(d_open_ses(1) == D_OK);
    static std::atomic<bool> asked, go;
    static std::atomic<int> second;
    asked = go = false;
    second = -1;
    fake.script([](const wire::AnyMessage &m, int) {
        if (is<wire::Gexec>(m)) {
            asked = true;
            while (!go) ::usleep(1000);
        }
        return as_usual(m);
    });
    int first = -1;
    std::thread leads([&first] { first = submit(1); });
    while (!asked) ::usleep(1000);
    pthread_t waits;
    static std::atomic<bool> begun;
    begun = false;
    const auto body = [](void *) -> void * {
        begun = true;
        second = submit(2);
        ::pthread_testcancel();
        return nullptr;
    };
    REQUIRE(::pthread_create(&waits, nullptr, body, nullptr) == 0);
    while (!begun) ::usleep(1000);
    REQUIRE(::pthread_cancel(waits) == 0);
    go = true;
    leads.join();
    void *ended = nullptr;
    REQUIRE(::pthread_join(waits, &ended) == 0);
    CHECK(ended == PTHREAD_CANCELED);
    CHECK(first == D_OK);
    REQUIRE(second == D_OK);
    CHECK(submit(3) == D_OK);
}

TEST_CASE("a call for which no descriptor is left fails at once, and says so") {
    FakeScheduler fake;
    get_auth();
    CHECK(in_child([] {
              const rlimit none = {0, 0};
              if (d_pool_set_patience(nullptr, INFINITY) != D_OK || ::setrlimit(RLIMIT_NOFILE, &none) != 0) return 1;
              ::alarm(300);  // only ends a call that waits for ever
              const bool said = d_gkill(1, 1) == D_E_LIMIT;
              return said && std::string(d_errortext()).find("ulimit -n") != std::string::npos ? 0 : 2;
          }) == 0);
}

TEST_CASE("patience without end, and more than a clock can say, is a long time") {
    client::Pool pool(client::PoolOptions{});
    const Duration years = seconds(365 * 86400);
    for (const double s : {double{INFINITY}, 1e300, 1e18, 9.3e9, 2.4e9}) {
        INFO(s);
        pool.set_patience(s);
        CHECK(pool.patience() > years);
        CHECK(pool.patience() * 4 > years);
    }
    pool.set_patience(-1);
    for (const char *s : {"inf", "1e300", "2e6"}) {
        INFO(s);
        ::setenv("DCS_PATIENCE_S", s, 1);
        CHECK(pool.patience() >= seconds(2'000'000));
    }
    ::setenv("DCS_PATIENCE_S", "nan", 1);
    CHECK(pool.patience() == seconds(30));
    ::unsetenv("DCS_PATIENCE_S");
    CHECK(seconds_of(1e30) > years);
    CHECK(seconds_of(-1e30) < seconds(0));
}
