#include "scheduler/state/sound.h"

#include <tuple>

#include "base/limits.h"
#include "base/require.h"

namespace dcs::core {

void require_sound(const Grain &g) {
    DCS_REQUIRE(g.lease <= g.incarnation && g.course->skipped <= g.incarnation, "no lease is above the highest one");
    if (g.status() == GrainStatus::finished)
        DCS_REQUIRE(g.as<Finished>().result_index >= 0, "a grain that finished is a result");
    if (g.status() == GrainStatus::running)
        DCS_REQUIRE(g.lease > 0 && g.lessee != no_host && g.recent->rest_until == Instant{},
                    "a grain runs under a lease");
    DCS_REQUIRE(g.status() == GrainStatus::running || !g.launched, "what does not run was not started");
    const bool leased = g.status() == GrainStatus::running;
    DCS_REQUIRE(!g.ahead || (leased && !g.launched), "what waits for a slot has not started");
    DCS_REQUIRE(g.recent->moved.size() <= g.course->moves->size(), "each instant is of a move");
    DCS_REQUIRE(g.demands->attempts >= 1 && g.course->failures <= g.demands->attempts,
                "a grain fails as often as it may");
    DCS_REQUIRE(g.course->input_position <= g.input_length, "a grain has read no more than its input");
    DCS_REQUIRE(g.course->told <= g.course->sequence, "nothing is shown that was not taken in");
    DCS_REQUIRE(g.own_tree || !g.params_own_file, "a file of its own lies in a tree of its own");
    DCS_REQUIRE(g.course->moves->size() <= limits::moves_kept, "the latest moves are kept");
}
void require_as_recorded(const Grain *recorded, const Grain &now) {
    const auto record = [](const Grain &g) {
        return std::tie(g.phase, g.lessee, g.lease, g.incarnation, g.course->sequence, g.course->failures,
                        g.course->returns, g.course->skipped, g.course->told, g.course->out_length,
                        g.course->err_length, g.course->checkpoint_sum, g.course->message_sum, g.course->input_position,
                        g.own_tree);
    };
    DCS_REQUIRE(recorded && record(*recorded) == record(now), "what needs no commit leaves the record as it is");
}
void require_sound(const SessionInfo &info) {
    DCS_REQUIRE(0 <= info.sent && info.sent <= info.shown, "what was acknowledged was handed out");
    DCS_REQUIRE(info.shown <= info.result_count, "what was handed out is a result");
    DCS_REQUIRE(info.queue_front <= info.queue_back, "the queue's positions are in order");
}
void require_sound(const Host &host) {
    DCS_REQUIRE(!host.config->name.empty(), "a host has a name");
    DCS_REQUIRE(host.conn == no_connection || host.configured, "only a host of the table has a link");
    DCS_REQUIRE(host.configured || host.usurping.empty(), "nothing is displaced on a host that left the table");
    DCS_REQUIRE(host.blamed_lately >= 0 && host.free_memory_kb >= -1, "a host's counts are not negative");
}

}  // namespace dcs::core
