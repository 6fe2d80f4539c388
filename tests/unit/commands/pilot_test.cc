// Which jobs of pilots are submitted and cancelled, and what Slurm's words mean.
#include "commands/dcs/pilot/control.h"
#include "commands/dcs/pilot/decide.h"
#include "commands/dcs/pool/start_daemon.h"
#include "support/catch.h"

using namespace dcs;
using namespace dcs::commands;

namespace {

Pilot pilot(int slots, int running, const char *job) {  // job: "", "waits", "runs", "ends"
    Pilot p;
    p.row.name = "pilot";
    p.row.slots = slots;
    p.row.running = running;
    const std::string state = job;
    p.row.connected = state == "runs" || state == "ends";
    if (state.empty()) return p;
    EngineJob of;
    of.id = "7";
    of.waits = state == "waits";
    of.left_s = state == "ends" ? 30 : 3000;
    p.jobs.push_back(of);
    return p;
}

PilotPlan plan(const std::vector<Pilot> &pilots, std::int64_t ready, std::size_t most = 100,
               std::size_t waiting = 100) {
    return plan_pilots(pilots, ready, {most, waiting, 60, false});
}
using Places = std::vector<std::size_t>;

}  // namespace

TEST_CASE("pilots: as many jobs as the waiting grains need, within the limits") {
    const std::vector<Pilot> four(4, pilot(8, 0, ""));
    CHECK(plan(four, 0).submit.empty());
    CHECK(plan(four, 1).submit == Places{0});
    CHECK(plan(four, 8).submit == Places{0});
    CHECK(plan(four, 9).submit == Places{0, 1});
    CHECK(plan(four, 1000).submit == Places{0, 1, 2, 3});
    CHECK(plan(four, 1000, 3).submit == Places{0, 1, 2});
    CHECK(plan(four, 1000, 100, 2).submit == Places{0, 1});
}

TEST_CASE("pilots: what has a job counts with its free slots, unless it is about to leave") {
    CHECK(plan({pilot(8, 0, "waits"), pilot(8, 0, "")}, 8).submit.empty());
    CHECK(plan({pilot(8, 0, "waits"), pilot(8, 0, "")}, 9).submit == Places{1});
    CHECK(plan({pilot(8, 5, "runs"), pilot(8, 0, "")}, 3).submit.empty());
    CHECK(plan({pilot(8, 5, "runs"), pilot(8, 0, "")}, 4).submit == Places{1});
    CHECK(plan({pilot(8, 5, "ends"), pilot(8, 0, "")}, 1).submit == Places{1});
    Pilot lost = pilot(8, 0, "runs");
    lost.row.connected = false;
    CHECK(plan({lost, pilot(8, 0, "")}, 1).submit.empty());  // it has just started
    lost.jobs[0].used_s = 61;
    CHECK(plan({lost, pilot(8, 0, "")}, 1).submit == Places{1});
    CHECK(plan({pilot(8, 8, "runs"), pilot(8, 0, "")}, 1, 1).submit.empty());
    CHECK(plan({pilot(8, 0, "waits"), pilot(8, 0, "")}, 99, 9, 1).submit.empty());
}

TEST_CASE("pilots: no second server of one name, and none where none may run") {
    Pilot lost = pilot(8, 3, "");
    lost.row.connected = true;  // its job is gone, its server is not
    CHECK(plan({lost, pilot(8, 0, "")}, 5).submit == Places{1});
    Pilot drained = pilot(8, 0, "");
    drained.row.drained = true;
    CHECK(plan({drained, pilot(0, 0, "")}, 5).submit.empty());
}

TEST_CASE("pilots: a job that its engine only cleans up after is followed by another") {
    Pilot over = pilot(8, 0, "runs");
    over.row.connected = false;
    over.jobs[0].over = true;
    CHECK(plan({over}, 8, 1).submit == Places{0});
    over.row.connected = true;  // its server is still there
    CHECK(plan({over, pilot(8, 0, "")}, 8).submit == Places{1});
}

TEST_CASE("pilots: a held job takes no grains, and no second one is submitted for its pilot") {
    Pilot held = pilot(8, 0, "waits");
    held.jobs[0].held = true;
    CHECK(plan({held, pilot(8, 0, "")}, 8).submit == Places{1});
    CHECK(plan({held}, 8).submit.empty());
    CHECK(plan({held, pilot(8, 0, "")}, 8, 100, 1).submit.empty());  // the limit of jobs that wait ends it
    CHECK(plan({held}, 0).cancel.size() == 1);
}

TEST_CASE("pilots: jobs that wait are cancelled when no grain waits, others are left to end") {
    const PilotPlan none = plan({pilot(8, 0, "waits"), pilot(8, 2, "runs")}, 0);
    REQUIRE(none.cancel.size() == 1);
    CHECK(none.cancel[0].waits);
    CHECK(plan({pilot(8, 0, "waits")}, 1).cancel.empty());
}

TEST_CASE("pilots: submissions pause after jobs without grains, longer each time, until one runs a grain") {
    Fruitless f;
    Instant now{seconds(1000).ns};
    Pilot p = pilot(8, 0, "runs"), gone = pilot(8, 0, "");
    f.submitted("pilot", 0);
    CHECK_FALSE(f.look(p, false, now));
    CHECK(f.look(gone, false, now));
    CHECK((f.pauses(now + seconds(29)) && !f.pauses(now + seconds(30))));
    CHECK_FALSE(f.look(gone, false, now));  // once
    f.submitted("pilot", 0);
    CHECK(f.look(gone, false, now));
    CHECK((f.pauses(now + seconds(59)) && !f.pauses(now + seconds(60))));
    f.submitted("pilot", 0);
    p.row.launched = 1;
    CHECK_FALSE(f.look(p, false, now));
    CHECK_FALSE(f.pauses(now));
    f.submitted("pilot", 1);
    gone.row.launched = 1;
    CHECK_FALSE(f.look(gone, true, now));  // cancelled by ourselves
    CHECK_FALSE(f.pauses(now));
    for (int i = 0; i < 100; ++i) f.refused(now);
    CHECK((f.pauses(now + seconds(3599)) && !f.pauses(now + seconds(3600))));
}

TEST_CASE("times of Slurm") {
    CHECK(seconds_of_slurm("1-02:03:04") == 93784);
    CHECK(seconds_of_slurm("2:03:04") == 7384);
    CHECK(seconds_of_slurm("0:09") == 9);
    for (const char *none : {"", "INVALID", "UNLIMITED", "NOT_SET", "1-", "x-1:00", "7"})
        CHECK(seconds_of_slurm(none) == -1);
    CHECK(slurm_time(60) == "0:01:00");
    CHECK(slurm_time(61) == "0:02:00");
    CHECK(slurm_time(4 * 3600 + 11 * 60) == "4:11:00");
    CHECK(slurm_time(30 * 86400) == "720:00:00");
}

TEST_CASE("pilots: grains of users whom the host table does not name never run under the account of an ordinary job") {
    std::vector<wire::HostRow> rows(2);
    rows[0].name = "pilot1";
    rows[0].users = {"ann"};
    rows[1].name = "pilot2";
    const auto open = open_to_all(rows, false, false);
    REQUIRE(open);
    CHECK(open->exit == exits::refused);
    CHECK(open->message.find("pilot2") != std::string::npos);
    CHECK_FALSE(open_to_all(rows, true, false));  // all grains of a pool of one's own are one's own
    CHECK_FALSE(open_to_all(rows, false, true));  // its servers give each user's an account
    rows[1].users = {"ann", "bob"};
    CHECK_FALSE(open_to_all(rows, false, false));
}

TEST_CASE("pilots: no job for a line that names no users, though it was added while the command runs") {
    std::vector<Pilot> two(2, pilot(8, 0, ""));
    const PilotLimits limits{100, 100, 60};
    CHECK(plan_pilots(two, 99, limits).submit.empty());
    two[1].row.users = {"ann"};
    CHECK(plan_pilots(two, 99, limits).submit == Places{1});
    two[0].row.users = two[1].row.users;
    two[1].row.users.clear();
    CHECK(plan_pilots(two, 99, limits).submit == Places{0});
}

TEST_CASE("a command of an engine that does not answer is ended") {
    const auto ran = run_program("sleep", {"1000"}, "", 1);
    REQUIRE_FALSE(ran);
    CHECK(ran.status().text == "sleep did not end within 1 s");
    CHECK(run_program("sh", {"-c", "echo so; exit 3"}, "", 100)->exit_code == 3);
}
