#include "commands/dcs/query/why_waiting.h"

#include <chrono>
#include <cstdlib>
#include <thread>

#include "commands/dcs/map/progress.h"
#include "support/about.h"
#include "support/catch.h"

using namespace dcs;
using namespace dcs::commands;

namespace {

Session session(const std::string &user, int number, int ready, int running) {
    Session s;
    s.user = user;
    s.ident = "x";
    s.state = "active";
    s.session = number;
    s.ready = ready;
    s.running = running;
    return s;
}

wire::WhyRow reason(const char *word, const char *text, int hosts) { return {word, text, "", hosts, {}}; }

std::string waits_because(std::vector<wire::WhyRow> reasons, bool can_run = true, const char *state = "ready") {
    const wire::Explanation why = {state, "", can_run, -1, std::move(reasons)};
    return waiting_text(why, {session("ann", 23, 1498, 2), session("ben", 4, 10, 0)});
}

}  // namespace

TEST_CASE("why a grain waits, in one line") {
    const wire::WhyRow busy = reason("busy", "all slots of the host are in use", 2);
    wire::WhyRow older = reason("older_first", "grains of older sessions come first", 0);
    CHECK(waits_because({busy}) == "ready, but waits for a host: 2 hosts: no free slot");
    older.names = {"ann/23"};
    CHECK(waits_because({older, busy}) == about("ready waits ann/23 1,500"));
    CHECK(waits_because({older, busy}).find("--nice") == std::string::npos);  // only its owner may do that
    wire::Explanation why = {"ready", "", true, -1, {reason("older_first", "grains of older sessions come first", 0)}};
    why.reasons[0].names = {own_user() + "/7"};
    CHECK(waiting_text(why, {session(own_user(), 7, 9, 1)}) == about("session 7 10 set 7 --nice"));
    older.names = {"ann/23", "ben/4"};
    CHECK(waits_because({older, busy}) == about("ready waits 1,510 ann/23"));
    CHECK(waits_because({busy, reason("drained", "the host is drained", 1)}) == about("ready waits 2 no 1 drained"));
    CHECK(waits_because({reason("other_class", "the host is of a class that the grain does not accept", 2)}, false) ==
          about("no 2 not"));
    CHECK(waits_because({reason("takes_it", "it starts", 1)}).empty());
    CHECK(waits_because({reason("running", "the grain runs", 1)}, true, "running").empty());
}

TEST_CASE("the reason is printed after three seconds, and then seldom") {
    const auto at = [](std::int64_t s) { return Instant{} + seconds(s); };
    WaitRhythm rhythm(at(0));
    CHECK_FALSE(rhythm.due("busy", at(2)));
    CHECK(rhythm.due("busy", at(3)));
    CHECK_FALSE(rhythm.due("busy", at(100)));
    CHECK(rhythm.due("away", at(101)));
    CHECK_FALSE(rhythm.due("busy", at(105)));
    CHECK(rhythm.due("busy", at(111)));
    CHECK(rhythm.due("busy", at(711)));
    CHECK(rhythm.due("session 7 with 1,500 grains", at(1400)));
    CHECK_FALSE(rhythm.due("session 7 with 999 grains", at(1500)));  // fewer now: no news
    CHECK_FALSE(rhythm.due("", at(1512)));                           // it ran; then waits again
    CHECK_FALSE(rhythm.due("away", at(1514)));
    CHECK(rhythm.due("away", at(1521)));
}

TEST_CASE("a session of dcs submit or map tells how many grains of its file or list were not submitted") {
    Session s = session("ann", 4, 2, 1);
    s.finished = 3, s.killed = 1;
    const std::string digest = std::string(14, 'a') + '.' + std::string(24, 'b');
    const auto missing = [&](const std::string &ident) { return s.ident = ident, s.not_submitted(); };
    CHECK(missing("submit-" + digest + "-10-0123abcd") == 3);
    CHECK(missing("submit-" + digest + "-7-0123abcd") == 0);
    CHECK(missing("submit-" + digest + "-0123abcd") == 0);  // as an earlier release named it
    CHECK(missing("submit-" + digest + "-10-0123abcd-x") == 0);
    CHECK(missing("submit-10") == 0);
    CHECK(missing("map-" + digest + "-10-0123abcd") == 0);
    CHECK(missing("map-" + digest + "-wa_0123") == 3);
    CHECK(missing("map-" + digest + "-w7_0123") == 0);
    CHECK(missing("map-" + digest + "-ma_0123") == 0);  // it left out what shorter lists had
}

TEST_CASE("a scheduler whose directory has gone is silent, although each question is refused at once") {
    ::setenv("DCS_DIR", "/nonexistent/pool", 1);
    static MapLook look(1);  // its thread does not end
    std::thread([] { look.run(0.1); }).detach();
    for (int i = 0; i < 6000 && !look.unanswered(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    CHECK(look.unanswered());
}
