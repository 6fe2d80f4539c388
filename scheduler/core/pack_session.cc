// A closed session's settled grains give up the trees of their own: what they hold moves into the
// session's append nodes. The turn reads it in idle moments and brings it here.
#include "base/limits.h"
#include "scheduler/core/decisions.h"

namespace dcs::core {
namespace {

bool lengths_fit(const PackedGrain &packed, const Grain &g) {
    return packed.out.size() == g.course->out_length && packed.err.size() == g.course->err_length &&
           packed.checkpoint.size() == g.course->checkpoint_length &&
           packed.message.size() == g.course->message_length &&
           (!g.params_own_file || packed.params.size() == g.params_length);
}

void move_in(Draft &d, const GrainKey &key, File file, std::uint64_t &length, const Payload &bytes) {
    if (bytes.size() == 0) return;
    d.write(key, file, length, bytes);
    length += bytes.size();
}

}  // namespace

bool packable(const Grain &g) {
    const std::uint64_t params = g.params_own_file ? g.params_length : 0;
    return g.own_tree && g.is_over() && !g.course->kept->goes_on &&
           params + g.course->out_length + g.course->err_length + g.course->checkpoint_length +
                   g.course->message_length <=
               limits::packed_grain_bytes;
}

void pack_grains(Draft &d, const PackGrains &in) {
    const Session *session = d.state.session(in.session);
    if (!session || session->info.status != SessionStatus::terminated) return;
    for (const PackedGrain &packed : in.grains) {
        const GrainKey key{in.session, packed.number};
        const Grain *old = d.state.grain(key);
        if (!old || !packable(*old) || !lengths_fit(packed, *old)) continue;
        Grain &g = d.grain(key);
        SessionInfo &info = d.info(in.session);
        if (g.params_own_file) {
            g.params_offset = info.inputs_length;
            move_in(d, key, File::session_inputs, info.inputs_length, packed.params);
        }
        g.course.edit().result_offset = info.results_length;
        for (const Payload *part : {&packed.out, &packed.err, &packed.checkpoint, &packed.message})
            move_in(d, key, File::session_results, info.results_length, *part);
        DCS_REQUIRE(g.course->result_offset + g.course->out_length + g.course->err_length +
                            g.course->checkpoint_length + g.course->message_length ==
                        info.results_length,
                    "all that a packed grain has lies in the results");
        g.own_tree = g.params_own_file = false;
        if (g.course->second_checkpoint) g.course.edit().second_checkpoint = false;
        if (g.course->other_checkpoint > 0) g.course.edit().other_checkpoint = 0;
    }
}

}  // namespace dcs::core
