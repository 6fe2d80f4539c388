#include "locks/files/session_claims.h"

#include <fcntl.h>
#include <unistd.h>

#include "scratch.h"
#include "support/catch.h"

using namespace dcs;
using namespace dcs::locks;

TEST_CASE("a session is claimed by one process at a time, and free when that is gone") {
    const scratch::Directory dir;
    const auto claims = SessionClaims::open_in(dir.path());
    REQUIRE(claims);
    CHECK(claims->holder(7) == 0);
    const pid_t holder = scratch::sleeper([&] {
        static Result<SessionClaims> own = SessionClaims::open_in(dir.path());
        const auto taken = own->take(7, Deadline::none());
        return taken && *taken;
    });
    REQUIRE(holder > 0);
    CHECK(claims->holder(7) == holder);
    const auto refused = claims->take(7, Deadline::none());
    REQUIRE(refused);
    CHECK_FALSE(*refused);
    for (const int other : {0, 6, 8, INT32_MAX}) {
        INFO(other);
        CHECK(claims->holder(other) == 0);
        const auto taken = claims->take(other, Deadline::none());
        REQUIRE(taken);
        CHECK(*taken);
    }
    scratch::end(holder);
    CHECK(claims->holder(7) == 0);
    CHECK(*claims->take(7, Deadline::none()));
    CHECK(::access((dir / "maps.lock").c_str(), F_OK) == 0);
}

TEST_CASE("one process at a time looks for its session") {
    const scratch::Directory dir;
    const auto claims = SessionClaims::open_in(dir.path());
    REQUIRE(claims);
    const pid_t inside = scratch::sleeper([&] {
        static Result<SessionClaims> own = SessionClaims::open_in(dir.path());
        const auto entered = own->enter(Deadline::none());
        return entered && *entered;
    });
    REQUIRE(inside > 0);
    CHECK_FALSE(*claims->enter(Deadline::none()));
    CHECK(*claims->take(1, Deadline::none()));  // the door is not a session
    scratch::end(inside);
    CHECK(*claims->enter(Deadline::none()));
    claims->leave();
}
