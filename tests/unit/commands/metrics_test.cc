#include "commands/dcs/page/metrics.h"

#include "support/catch.h"

using namespace dcs;
using namespace dcs::commands;
using namespace dcs::commands::page;

TEST_CASE("of a scheduler that does not answer there are no figures but what stays true") {
    Snapshot s;
    s.at_ms = 5'000;
    wire::HostRow host;
    host.name = "a", host.state = "active", host.slots = 4, host.expires_s = 1'800'000'000;
    s.hosts = {host};
    s.system.version = "0.2.0";
    s.system.oldest_ready_s = 75;
    s.system.backups = {{"vault", "connected", "lagging", "behind", 12}};
    s.problems.push_back({"host a", "", "is late", "", ""});
    for (const bool up : {true, false}) {
        s.reachable = up;
        const std::string text = metrics_of(s, HostCounters(), Journal(0), {}).text;
        CHECK(text.find(up ? "dcs_up 1\n" : "dcs_up 0\n") != std::string::npos);
        CHECK(text.find(up ? "dcs_backup_connected 1\n" : "dcs_backup_connected 0\n") != std::string::npos);
        for (const char *name : {"dcs_host_connected{", "dcs_hosts{", "dcs_slots{", "dcs_grains{", "dcs_sessions{",
                                 "dcs_problems{", "dcs_ready_queue_oldest_seconds ", "dcs_store_copy_lag_seconds "}) {
            INFO(name);
            CHECK((text.find(name) != std::string::npos) == up);
        }
        CHECK(text.find("end_timestamp_seconds{host=\"a\",role=\"server\"} 1800000000\n") != std::string::npos);
        CHECK(text.find("dcs_grain_finishes_total{") != std::string::npos);
    }
}
