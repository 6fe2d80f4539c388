#include "commands/dcs/query/row_text.h"

#include "base/known_words.h"
#include "commands/dcs/query/copy_state.h"
#include "commands/dcs/query/session_events.h"
#include "support/about.h"
#include "support/catch.h"

using namespace dcs;
using namespace dcs::commands;

namespace {
wire::GrainRow ready_row() {
    wire::GrainRow row{};
    row.state = "ready", row.demands.attempts = 3;
    row.last_contact_s = row.checkpoint_age_s = -1;
    return row;
}
}  // namespace

TEST_CASE("facts of a grain: what it asks for, what it avoids, how it moved") {
    wire::GrainRow row = ready_row();
    CHECK(grain_facts("7:12", row) ==
          "grain        7:12\n"
          "command      \n"
          "state        ready\n"
          "starts       0; 0 of 3 attempts failed; moved or restarted 0 times\n"
          "class        any\n"
          "cpu          0.00 s\n"
          "output       0 bytes, 0 bytes of errors\n");
    row.incarnation = 155, row.starts = 1;  // numbers go on above those of other grains
    const std::string once = "starts       1; 0 of 3 attempts failed; moved or restarted 0 times\n";
    CHECK(grain_facts("7:12", row).find(once) != std::string::npos);
    row.nogo = {"local2", "local3"};
    row.moves = {{"host_dead", "local3", "", 2, -1}, {"usurped", "local2", "for ann/2:1\x1b", 3, 12.5}};
    row.demands = {0, 64, true, 5, 3, 2, 512, 3600};
    const std::string text = grain_facts("7:12", row);
    CHECK(text.find("asks for     hosts with 32.0 M free, urgent, 5 minutes of notice, 2 cores, 512.0 M of memory, "
                    "at most 1 h 0 m a run\n") != std::string::npos);
    CHECK(text.find("avoids       local2, local3\n") != std::string::npos);
    CHECK(text.find("moves        host_dead on local3, incarnation 2\n"
                    "             usurped on local2, incarnation 3, 13 s ago: for ann/2:1?\n") != std::string::npos);
}

TEST_CASE("facts of a grain that ended") {
    wire::GrainRow row = ready_row();
    row.state = "finished", row.host = "local1", row.result_index = 9;
    CHECK(grain_facts("7:1", row)
              .find("state        finished on local1\n"
                    "end          exit code 0, result 9 of the session\n") != std::string::npos);
    row.files.emplace_back().name = "table";
    CHECK(grain_facts("7:1", row).find("state        failed on local1\nend          exit code 0,") !=
          std::string::npos);
    CHECK(grain_facts("7:1", row).find("table, not made\n") != std::string::npos);
    row.exit_code = 4;
    CHECK(grain_facts("7:1", row).find("state        failed on local1\nend          exit code 4,") !=
          std::string::npos);
    row.signal = 9;
    CHECK(grain_facts("7:1", row).find("end          signal 9, result 9 of") != std::string::npos);
    CHECK(end_text(row) == "signal 9");
    CHECK(end_text(ready_row()) == "-");
}

TEST_CASE("a checkpoint whose age was lost with the scheduler is still one") {
    wire::GrainRow row = ready_row();
    CHECK(checkpoint_age_text(row) == "none");
    row.checkpoint_length = 20;
    CHECK(grain_facts("7:1", row).find("checkpoint   20 bytes, from before the scheduler's start\n") !=
          std::string::npos);
    row.state = "finished";
    CHECK(checkpoint_age_text(row) == "from before its end");
    row.state = "running";
    row.checkpoint_age_s = 12;
    CHECK(checkpoint_age_text(row) == "12 s ago");
}

TEST_CASE("facts of a host") {
    wire::HostRow row{};
    row.name = "local1", row.state = "active", row.binary_class = "x86_64-linux-gnu", row.settings = "", row.note = "";
    row.host_class = 3, row.slots = 4, row.running = 2, row.connected = 1;
    row.last_call_in_s = 0.5, row.interval_s = 10, row.alert_s = 30, row.limit_s = 60, row.extended_s = 120;
    row.load = 0.754, row.free_memory_kb = 2048, row.cores_used = 3, row.memory_used_mb = 512;
    row.launched = 9, row.finished = 7, row.failed = 1, row.given_back = 1, row.blamed = 6, row.blamed_lately = 2;
    CHECK(host_facts(row) ==
          "host         local1\n"
          "state        active, connected\n"
          "class        0x3\n"
          "binary       x86_64-linux-gnu\n"
          "version      -\n"
          "address      a socket of the scheduler's host\n"
          "slots        4, 2 running\n"
          "users        all users\n"
          "set          nothing: values of the host table\n"
          "last call-in 0.50 s ago\n"
          "calls in     every 10 s\n"
          "delinquent   after 30 s\n"
          "dead         after 1 m 0 s, or 2 m 0 s while a probe is answered\n"
          "load         0.75\n"
          "memory       2.0 M free; grains demand 512.0 M\n"
          "cores        grains demand 3\n"
          "grains       9 started, 7 finished, 1 failed, 1 returned\n"
          "blamed       6 failed here and finished elsewhere, 2 since one finished here\n"
          "cpu          0.00 s\n");
    row.users = {"ann", "bob"}, row.settings = "slots=0 drained", row.note = "on probation";
    row.version = "0.2.0", row.address = "10.0.0.7";
    row.drained = 1, row.connected = 0, row.cores = 8, row.memory_mb = 2048, row.last_call_in_s = -1;
    const std::string text = host_facts(row);
    for (const char *line :
         {"state        active, drained, not connected\n", "note         on probation\n", "users        ann, bob\n",
          "set          slots=0 drained\n", "version      0.2.0\n", "address      10.0.0.7\n", "last call-in never\n",
          "load         -\n", "memory       - free; grains demand 512.0 M of 2.0 G\n",
          "cores        grains demand 3 of 8\n"}) {
        CAPTURE(line);
        CHECK(text.find(line) != std::string::npos);
    }
}

TEST_CASE("times of a grain are of the runs that its row counts, not of failed starts") {
    wire::GrainHistory grain;
    grain.submitted_ms = 1000;
    for (const char *reason : {"", "start_failed", "no_program", "cannot_start"})
        grain.stays.push_back({"h1", 1, 2000, 3000, {}, reason});
    const auto lines = [&](int starts) { return times_text(times_of(grain, starts, 60'000)); };
    CHECK(lines(0) == "submitted    " + local_time(1000) + "\n");
    CHECK(lines(1) == lines(0));
    grain.stays.push_back({"h2", 5, 4000, 6000, {}, "host_lost"});
    const std::string ran = lines(0) + "started      " + local_time(4000);
    CHECK(lines(1) == ran + "\nelapsed      2.00 s\n");
    grain.stays.push_back({"h1", 6, 7000, 7000, {}, "start_failed"});
    CHECK(lines(1) == ran + "\nelapsed      2.00 s\n");
    CHECK(lines(3) == ran + ", the last of 3 starts\nelapsed      2.00 s in all runs\n");
    grain.stays = {{"h1", 1, 2000, 3000, {}, "killed"}};  // while it waited there for a slot
    CHECK(lines(0) == "submitted    " + local_time(1000) + "\n");
}

TEST_CASE("a copy that is ahead is not called behind") {
    wire::MirrorStatus s;
    s.mode = "sync", s.state = "behind", s.lag_turns = 3, s.lag_bytes = 100, s.lag_s = 2, s.copied = 7;
    CHECK(copy_state_text(s) == about("behind 3 turns"));
    s.state = "ahead", s.text = std::string(ahead_words) + " (turn 9, here only up to 7)";
    CHECK(copy_state_text(s) == "sync, ahead (its copy is ahead (turn 9, here only up to 7))");
    CHECK(backup_text({"vault", "connected", "sync", "ahead", 2}) ==
          "vault, connected; copy of the store: sync, ahead");
}

TEST_CASE("an explanation: the summary, a line for each reason, hints below") {
    wire::Explanation why = {"ready",
                             "it waits",
                             true,
                             0,
                             {{"older_first", "older sessions come first", "wait", 0, {"ann/3"}},
                              {"user_quota", "enough runs", "", 0, {}},
                              {"busy", "all slots are in use", "", 3, {"h1", "h2", "h3"}},
                              {"drained", "it is drained", "dcs host undrain NAME", 12, {"h4", "h5"}},
                              {"dead", "it is dead", "", 1, {}}}};
    CHECK(explanation_text("7:12", why) ==
          "7:12 ready: it waits\n"
          "  older sessions come first (ann/3)\n"
          "      wait\n"
          "  enough runs\n"
          "  3 of 16 hosts (h1, h2, h3): all slots are in use\n"
          "  12 of 16 hosts (h4, h5, ...): it is drained\n"
          "      dcs host undrain NAME\n"
          "  1 of 16 hosts: it is dead\n");
    why = {"running",
           "it runs on h1",
           true,
           -1,
           {{"running", "the grain runs", "", 1, {"h1"}}, {"delinquent", "the host is overdue", "look", 1, {"h1"}}}};
    CHECK(explanation_text("7:13", why) ==
          "7:13 running: it runs on h1\n"
          "  h1: the grain runs\n"
          "  h1: the host is overdue\n"
          "      look\n");
}
