// Who comes next, and who has had enough.
#include <map>

#include "base/limits.h"
#include "base/load_limits.h"
#include "scheduler/turn/intake.h"
#include "support/catch.h"

using namespace dcs;
using namespace dcs::turn;

namespace {
Arrival frame(std::uint64_t conn, std::size_t bytes = 10) {
    Arrival a;
    a.conn = ConnId{conn};
    a.payload.assign(bytes, 'x');
    return a;
}

// So many of each connection among the next `n`.
std::map<std::uint64_t, int> next(Intake &intake, int n, std::size_t weight = 1) {
    std::map<std::uint64_t, int> taken;
    for (int i = 0; i < n; ++i) {
        const auto a = intake.take();
        if (!a) break;
        intake.charge(a->conn == ConnId{1} ? weight : 1);
        ++taken[static_cast<std::uint64_t>(a->conn)];
    }
    return taken;
}
}  // namespace

TEST_CASE("a user who floods has every second turn while another waits") {
    Intake intake;
    for (int i = 0; i < 1000; ++i) intake.put(Door::user, "flood", frame(1));
    for (int i = 0; i < 10; ++i) intake.put(Door::user, "calm", frame(2));
    intake.begin_turn();
    CHECK(next(intake, 20) == std::map<std::uint64_t, int>{{1, 10}, {2, 10}});
}

TEST_CASE("who sends much at once waits until the others had as much") {
    Intake intake;
    for (int i = 0; i < 100; ++i) intake.put(Door::user, "bulk", frame(1, 1 << 20));
    for (int i = 0; i < 400; ++i) intake.put(Door::user, "calm", frame(2));
    intake.begin_turn();
    const auto taken = next(intake, 300);
    CHECK(taken.at(2) >= 290);
    CHECK(taken.at(1) >= 1);
}

TEST_CASE("a batch counts by its grains, and a debt outlives an empty queue") {
    Intake intake;
    intake.put(Door::user, "batch", frame(1));
    for (int i = 0; i < 400; ++i) intake.put(Door::user, "calm", frame(2));
    intake.begin_turn();
    CHECK(next(intake, 2, 1024).at(1) == 1);
    intake.put(Door::user, "batch", frame(1));
    CHECK(next(intake, 200, 1024).count(1) == 0);
}

TEST_CASE("operators take turns with all users together, servers have four of five") {
    Intake intake;
    for (int user = 0; user < 50; ++user)
        for (int i = 0; i < 20; ++i) intake.put(Door::user, "u" + std::to_string(user), frame(100));
    for (int i = 0; i < 100; ++i) intake.put(Door::user, "root", frame(1), true);
    for (int i = 0; i < 100; ++i) intake.put(Door::server, "", frame(2));
    intake.begin_turn();
    CHECK(next(intake, 100) == std::map<std::uint64_t, int>{{1, 10}, {2, 80}, {100, 10}});
}

TEST_CASE("one user gets a part of a turn, whatever waits, the next turn has another part for him") {
    Intake intake;
    UserLimits limits;
    limits.requests_per_turn = 7;
    limits.bytes_per_turn = 1000;
    intake.set_limits(limits);
    for (int i = 0; i < 20; ++i) intake.put(Door::user, "many", frame(1));
    for (int i = 0; i < 20; ++i) intake.put(Door::user, "long", frame(2, 600));
    intake.put(Door::server, "", frame(3));
    intake.begin_turn();
    CHECK(next(intake, 100) == std::map<std::uint64_t, int>{{1, 7}, {2, 2}, {3, 1}});
    CHECK_FALSE(intake.empty());
    CHECK_FALSE(intake.take());
    intake.begin_turn();
    CHECK(next(intake, 100) == std::map<std::uint64_t, int>{{1, 7}, {2, 2}});
    CHECK(intake.count() == 22);
}

TEST_CASE("a user has some milliseconds of a turn while another waits") {
    Intake intake;
    for (int i = 0; i < 20; ++i) intake.put(Door::user, "slow", frame(1));
    for (int i = 0; i < 5; ++i) intake.put(Door::user, "calm", frame(2));
    const auto taken = [&] {
        std::map<std::uint64_t, int> each;
        intake.begin_turn();
        while (const auto a = intake.take()) {
            intake.charge(1);
            intake.spent(milliseconds(a->conn == ConnId{1} ? 3 : 0));
            ++each[static_cast<std::uint64_t>(a->conn)];
        }
        return each;
    };
    // As long as the other waits, two of these: the second one begins in time. Then all.
    CHECK(taken() == std::map<std::uint64_t, int>{{1, 20}, {2, 5}});
    for (int i = 0; i < 20; ++i) intake.put(Door::user, "slow", frame(1));
    for (int i = 0; i < 20; ++i) intake.put(Door::user, "also slow", frame(1));
    CHECK(taken() == std::map<std::uint64_t, int>{{1, 4}});
    CHECK(taken() == std::map<std::uint64_t, int>{{1, 4}});
}

TEST_CASE("a host gets a part of a turn, and users and other hosts another") {
    Intake intake;
    const int share = limits::host_requests_per_turn;
    for (int i = 0; i < 10 * share; ++i) intake.put(Door::server, "", frame(1));
    for (int i = 0; i < share + 5; ++i) intake.put(Door::server, "", frame(2));
    for (int i = 0; i < 10; ++i) intake.put(Door::user, "ann", frame(3));
    intake.begin_turn();
    CHECK(next(intake, 20 * share) == std::map<std::uint64_t, int>{{1, share}, {2, share}, {3, 10}});
    CHECK_FALSE(intake.empty());
    intake.begin_turn();
    CHECK(next(intake, 20 * share) == std::map<std::uint64_t, int>{{1, share}, {2, 5}});
}

TEST_CASE("what waits of one user is bounded, and the error names the limit and its value") {
    Intake intake;
    UserLimits limits;
    limits.queued_requests = 3;
    limits.queued_bytes = 100;
    intake.set_limits(limits);
    for (int i = 0; i < 3; ++i) {
        REQUIRE(intake.room_for(Door::user, "ann", frame(1)));
        intake.put(Door::user, "ann", frame(1));
    }
    const Status many = intake.room_for(Door::user, "ann", frame(1));
    CHECK(many.code == Code::limit);
    CHECK(many.text.find("queued_requests allows 3") != std::string::npos);
    CHECK(intake.room_for(Door::user, "bob", frame(2)));
    CHECK(intake.room_for(Door::server, "", frame(3)));
    Arrival closed = frame(1);
    closed.kind = Arrival::Kind::closed;
    CHECK(intake.room_for(Door::user, "ann", closed));
    intake.put(Door::user, "bob", frame(2, 90));
    const Status bytes = intake.room_for(Door::user, "bob", frame(2, 20));
    CHECK(bytes.text.find("queued_bytes allows 100") != std::string::npos);
}

TEST_CASE("frames of one connection keep their order") {
    Intake intake;
    for (std::size_t i = 0; i < 500; ++i) {
        Arrival a = frame(1, i * 37 % 9000);
        a.header.request = i;
        intake.put(Door::user, "ann", std::move(a));
        intake.put(Door::user, "bob", frame(2, 5000));
    }
    std::uint64_t expected = 0;
    for (intake.begin_turn(); !intake.empty(); intake.begin_turn())
        while (const auto a = intake.take())
            if (a->conn == ConnId{1}) CHECK(a->header.request == expected++);
    CHECK(expected == 500);
}
