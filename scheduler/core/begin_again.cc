// Grains that are over become ready again: from their beginning, or from the newest checkpoint.
#include "base/planted.h"
#include "scheduler/core/decisions.h"

namespace dcs::core {
namespace {

void become_ready(Draft &d, const GrainKey &key) {
    Grain &g = d.grain(key);
    g.become(Ready{d.take_front(key.session)});
    Course &course = g.course.edit();
    Recent &recent = g.recent.edit();
    course.failures = recent.failures_there = course.returns = 0;
    recent.failed_on = g.lessee = no_host;
    course.old_lease = OldLease{};
    course.nogo = std::vector<HostId>();
    if (!g.files->outputs.empty())
        for (wire::GrainFile &file : g.files.edit().outputs) file.digest.clear(), file.size = 0;
}

// What it wrote behind its checkpoint it writes again.
void cut(Draft &d, const GrainKey &key, File file, std::uint64_t &length, std::uint64_t to) {
    if (length > to) d.write(key, file, to, {});
    length = to;
}

}  // namespace

void begin_again(Draft &d, const GrainKey &key) {
    if (d.state.grain(key)->own_tree)
        for (const File file : {File::grain_out, File::grain_err, File::grain_checkpoint, File::grain_message})
            d.write(key, file, 0, {});
    become_ready(d, key);
    Course &course = d.grain(key).course.edit();
    course.input_position = 0;
    course.sequence = course.told = 0;
    course.checkpoint_length = course.out_length = course.err_length = course.result_offset = 0;
    course.message_length = 0;
    course.kept = Kept();
    course.checkpoint_sum = course.message_sum = course.out_sum = course.err_sum = 0;
}

void note_checkpoint(Course &course) {
    if ((course.checkpoint_length == 0 && course.input_position == 0) || planted("core.failed_begins_at_zero")) return;
    Kept &kept = course.kept.edit();
    kept.out_length = course.out_length;
    kept.out_sum = course.out_sum;
    kept.err_length = course.err_length;
    kept.err_sum = course.err_sum;
    kept.goes_on = true;
}

void go_on_again(Draft &d, const GrainKey &key) {
    const Kept at = d.state.grain(key)->course->kept.get();
    if (!at.goes_on) return begin_again(d, key);
    Course &course = d.grain(key).course.edit();
    cut(d, key, File::grain_out, course.out_length, at.out_length);
    cut(d, key, File::grain_err, course.err_length, at.err_length);
    course.out_sum = at.out_sum;
    course.err_sum = at.err_sum;
    course.kept = Kept{.held = at.held, .start = at.start, .before = at.before, .saved = at.saved};
    become_ready(d, key);
}

}  // namespace dcs::core
