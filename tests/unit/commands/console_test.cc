// What `dcs map` says of its progress where no party sees a bar; and a replay for which the machine has no room.
#include "commands/dcs/frame/console.h"

#include <cerrno>
#include <cstdio>
#include <map>

#include <unistd.h>

#include "commands/dcs/session/replay_proxy.h"
#include "support/catch.h"
#include "support/refuse.h"

using namespace dcs;
using namespace dcs::commands;

namespace {

// What is written to standard error while it lives.
class Errors {
public:
    Errors() {
        REQUIRE(::pipe(ends_) == 0);
        std::fflush(stderr);
        before_ = ::dup(2);
        REQUIRE(::dup2(ends_[1], 2) == 2);
    }
    std::string text() {
        std::fflush(stderr);
        ::dup2(before_, 2);
        ::close(before_);
        ::close(ends_[1]);
        std::string all;
        char part[4096];
        for (ssize_t n; (n = ::read(ends_[0], part, sizeof part)) > 0;) all.append(part, static_cast<std::size_t>(n));
        ::close(ends_[0]);
        return all;
    }

private:
    int ends_[2] = {-1, -1}, before_ = -1;
};

Progress at(std::int64_t done, double elapsed_s) {
    Progress progress;
    progress.total = 200;
    progress.done = done;
    progress.elapsed_s = elapsed_s;
    return progress;
}

}  // namespace

TEST_CASE("a long run without a terminal has a line at each tenth and each minute") {
    Errors errors;
    Console console("dcs map", Shown::plain);
    console.show(at(20, 10));  // too early to be worth a word
    Progress progress = at(40, 31);
    progress.failed = 2;
    progress.running = 4;
    progress.saved_cpu_s = 62;
    console.show(progress);
    console.show(at(41, 32));
    console.show(at(41, 90));
    console.show(at(41, 91));
    console.show(at(60, 92));
    console.show(at(200, 93));  // its results say so
    CHECK(errors.text() ==
          "dcs map: 40 of 200 grains finished, 4 running, 2 failed, 1 m 2 s CPU saved\n"
          "dcs map: 41 of 200 grains finished\n"
          "dcs map: 60 of 200 grains finished\n");
}

#if DCS_CAN_REFUSE
TEST_CASE("a replay needs descriptors") {
    const test::Refusing refusing("epoll_create1", EMFILE);
    const auto proxy = ReplayProxy::open("/tmp", "/tmp/user.sock", {});
    REQUIRE(!proxy);
    CHECK(proxy.status().text == "too many open files");
    CHECK(refusing.happened());
}
#endif
