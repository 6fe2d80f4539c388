// What the commands about sessions say when the scheduler refuses them something, or shows what cannot be.
#include <algorithm>

#include "command_bench.h"
#include "support/catch.h"
#include "wire/event_log.h"

using namespace dcs;
using namespace dcs::test;

namespace {

using Words = std::vector<std::string>;

int removed(const CommandBench &bench) { return static_cast<int>(bench.fake.all<wire::CleanSession>().size()); }

}  // namespace

TEST_CASE("sessions that cannot be closed") {
    CommandBench bench;
    check(bench.dcs({"session", "close", "3"}), 1,
          "dcs: session 3 is damaged\n  hint: `dcs doctor` says how, `dcs session clean` removes it\n");
    bench.refuse<wire::CloseSession>(disk_full);
    check(bench.dcs({"session", "close", "1"}), 1, "dcs: session 1 was not closed: " + no_room);
}

TEST_CASE("several sessions with work are closed by a party at a terminal who says so") {
    CommandBench bench;
    const std::string question = "Close 2 sessions, and end 1 grain? [y/N] ";
    check(bench.dcs({"session", "close", "1", "2"}, "n\n"), 1, question + "dcs: nothing was closed\n");
    CHECK(bench.fake.all<wire::CloseSession>().empty());
    const std::string done =
        "session 1 closed; 1 running grain gets SIGTERM, and SIGKILL after 10 s\nsession 2 was already closed\n";
    check(bench.dcs({"session", "close", "1", "2"}, "y\n"), 0, question + done);
    check(bench.dcs({"session", "close", "--yes", "1", "2"}, "n\n"), 0, done);
    check(bench.dcs({"session", "close", "1"}, "n\n"), 0, done.substr(0, done.find("session 2")));
}

TEST_CASE("sessions that are not removed") {
    CommandBench bench;
    check(bench.dcs({"session", "clean", "3"}, "n\n"), 1,
          "Damaged files may still be restored by hand or from an export (`dcs doctor` says more).\n"
          "Permanently remove all data of damaged session 3? [y/N] dcs: nothing was removed\n");
    check(bench.dcs({"session", "clean", "2", "3"}, "\n"), 1,
          "Permanently remove all data of 2 sessions? [y/N] dcs: nothing was removed\n");
    check(bench.dcs({"session", "clean", "2"}, "\x04"), 1,  // the end of what is typed is no yes
          "Permanently remove all data of session 2? [y/N] dcs: nothing was removed\n");
    CHECK(removed(bench) == 0);
    bench.refuse<wire::CleanSession>(disk_full);
    check(bench.dcs({"session", "clean", "--yes", "2"}), 1, "dcs: session 2 was not removed: " + no_room);
    check(bench.dcs({"session", "clean", "--yes", "3"}), 1, "dcs: session 3 was not removed: " + no_room);
}

TEST_CASE("another user's sessions are removed by those who may, by name") {
    CommandBench bench;
    check(bench.dcs({"session", "clean", "--yes", "ben/4"}), 0, "session ben/4 removed\n");
    const auto orders = bench.fake.all<wire::CleanSession>();
    REQUIRE(orders.size() == 1);
    CHECK((orders[0].second.user == "ben" && orders[0].second.number == 4));
    bench.refuse<wire::CleanSession>(
        {static_cast<std::int32_t>(Code::refused), "ann may not do this with a session of ben", -1});
    check(bench.dcs({"session", "clean", "--yes", "ben/4"}), 4,
          "dcs: session ben/4 was not removed: ann may not do this with a session of ben\n");
}

TEST_CASE("sessions that a party at a terminal wants to be removed") {
    CommandBench bench;
    check(bench.dcs({"session", "clean", "2"}, "y\n"), 0,
          "Permanently remove all data of session 2? [y/N] session 2 removed\n");
    check(bench.dcs({"session", "clean", "3", "2", "-o", "name"}, "Yes\n"), 0,
          "Permanently remove all data of 2 sessions? [y/N] 3\n2\n");
    CHECK(removed(bench) == 3);
}

TEST_CASE("a session that is waited for while the scheduler goes away") {
    CommandBench bench;
    Said said;
    // The command must have begun to wait when its time is up: on a slow machine it gets more of it.
    for (int ms = 200; ms < 60'000; ms *= 2) {
        bench.fake.script([ms](const wire::AnyMessage &request, int nth) {
            const auto *query = std::get_if<wire::Query>(&request);
            const bool looks_again = nth > 0 && query != nullptr && query->type == wire::QueryType::sessions;
            Act act;
            act.reply = as_of_a_pool(request, "prog");
            act.cut_before = looks_again;
            act.delay_ms = looks_again ? 3 * ms : 0;
            return act;
        });
        said = bench.dcs({"session", "wait", "--timeout", std::to_string(ms / 1000.0), "1"});
        if (said.text.find("dcs: session 1 has not finished") == said.text.npos) break;
    }
    INFO(said.text);
    // Before that, a call that is not answered says that it waits.
    CHECK(said.text.find("dcs: the list of sessions: the connection to the scheduler broke, and it is unknown "
                         "whether the call took effect: ") != said.text.npos);
    CHECK(said.exit == 6);
    bench.fake.script([](const wire::AnyMessage &request, int nth) {
        Act act;
        act.reply = as_of_a_pool(request, "prog");
        act.cut_before = nth > 0;
        return act;
    });
    CHECK(bench.dcs({"session", "wait", "1"}).exit == 5);
}

TEST_CASE("event logs that cannot be shown") {
    CommandBench bench;
    check(bench.dcs({"session", "log", "3"}), 1, "dcs: session 3 is damaged\n  hint: `dcs doctor` says how\n");
    bench.refuse<wire::Fetch>(disk_full);
    const std::string full = "dcs: the event log of session 2: the disk is full\n";
    check(bench.dcs({"trace", "2", "--dot", "-"}), 1, full);
    check(bench.dcs({"grain", "restart", "--and-after", "2:1"}), 1, full);
    bench.answer([](const wire::AnyMessage &m) {
        const auto *fetch = std::get_if<wire::Fetch>(&m);
        if (fetch == nullptr) return CommandBench::Reply();
        const wire::Piece first{200, std::string(100, '\x7f')}, later{50, ""};
        return CommandBench::Reply(fetch->offset == 0 ? first : later);
    });
    check(bench.dcs({"session", "log", "2"}), 1,
          "dcs: the event log of session 2: the session was replaced while its log was read\n");
}

TEST_CASE("an event log without its beginning") {
    wire::EventFrame frame;
    wire::Event submitted;
    submitted.kind = wire::EventKind::submitted;
    submitted.grain = 1;
    frame.add(submitted);
    const std::string log = frame.framed(1'700'000'000'000);
    CommandBench bench;
    bench.answer([&](const wire::AnyMessage &m) {
        const auto *fetch = std::get_if<wire::Fetch>(&m);
        if (fetch == nullptr) return CommandBench::Reply();
        const std::size_t from = std::min<std::size_t>(fetch->offset, log.size());
        return CommandBench::Reply(wire::Piece{log.size(), log.substr(from)});
    });
    const Said said = bench.dcs({"trace", "2", "--dot", "/dev/null"});
    check(said, 0, "dcs trace: the log of session 2 does not begin with its opening: what came before is missing\n");
}
