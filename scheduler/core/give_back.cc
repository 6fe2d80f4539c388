// What starts by itself again has a bound, and a rest that grows. Two things are counted, each in a row:
//   returns   a grain that ran and came back by its own doing: it said "not my fault" or "run me again", its reports
//             did not fit together, its files could not be read. Each run may repeat what it did to the world, and all
//             that speaks for it is its own word. So after limits::returns it is a result that says why. A checkpoint
//             that differs from the one before resets the count.
//   refusals  starts that the host's trouble prevented. Nothing ran, and the trouble is the host's: such a grain is
//             tried every two intervals in the end, as long as its session is active. A start resets the count.
// A host that dies, withdrawals, courtesy to a host's owner and the end of a launcher count for neither.
#include <algorithm>

#include "base/bytes.h"
#include "base/known_words.h"
#include "base/limits.h"
#include "scheduler/core/placement.h"

namespace dcs::core {
namespace {

void count_one_more(std::uint8_t &count) {
    if (count < 255) ++count;
}

// The first time it goes elsewhere at once; then it rests for half an interval, twice as long each time.
void rest(Draft &d, const GrainKey &key, Duration interval, int times, Duration longest) {
    if (times < 2) return;
    Duration pause{interval.ns / 2};
    for (int i = 2; i < times && pause < longest; ++i) pause.ns *= 2;
    d.grain(key).recent.edit().rest_until = d.now + std::min(pause, longest);
}

}  // namespace

bool last_return(const Grain &grain) { return grain.course->returns + 1 >= limits::returns; }

void come_back(Draft &d, const GrainKey &key, HostId id) {
    Grain &g = d.grain(key);
    DCS_REQUIRE(!last_return(g), "the last return is an end");
    count_one_more(g.course.edit().returns);
    requeue_front(d, key, false);
    const Duration interval = d.state.host(id)->config->interval;
    rest(d, key, interval, g.course->returns, std::max(interval, seconds(limits::rest_s)));
}

void refuse_start(Draft &d, const GrainKey &key, HostId id) {
    Grain &g = d.grain(key);
    count_one_more(g.recent.edit().refusals);
    requeue_front(d, key, false);
    const Duration interval = d.state.host(id)->config->interval;
    rest(d, key, interval, g.recent->refusals,
         Duration{2 * interval.ns});  // or it would wait long when the trouble is over
}

void rest_no_more(Draft &d, const GrainKey &key) {
    const Grain &old = *d.state.grain(key);
    if (old.course->returns == 0 && old.recent->refusals == 0 && old.recent->rest_until == Instant{}) return;
    Grain &g = d.grain(key);
    Recent &recent = g.recent.edit();
    g.course.edit().returns = recent.refusals = 0;
    recent.rest_until = Instant{};
}

void let_lapse(Draft &d) {
    for (const auto &[until, key] : d.state.resting) {
        if (until > d.now) break;
        d.grain(key).recent.edit().rest_until = Instant{};
        d.volatile_only(key);
        d.follow_up(PlaceGrain{key});
    }
    for (const auto &[until, id] : d.state.lapses) {
        if (until > d.now) break;
        Host &host = d.host(id);
        std::erase_if(host.held_back, [&](const HeldBack &h) { return h.until <= d.now; });
        std::erase_if(host.missing, [&](const auto &m) { return m.second <= d.now; });
        d.follow_up(FillHost{id});
    }
}

void end_grain(Draft &d, const GrainKey &key, HostId id, int signal, int code) {
    Grain &g = d.grain(key);
    g.become(Finished{d.info(key.session).result_count++, code, signal});
    g.course.edit().old_lease = OldLease{};
    wake_waiters(d, key.session);
    d.follow_up(FillHost{id});
    d.event("grain " + to_text(key) + " finished on " + d.state.host(id)->config->name + ", signal " +
            std::to_string(signal) + ", code " + std::to_string(code));
}

void give_up(Draft &d, const GrainKey &key, HostId id, int code, const std::string &why) {
    note_move(d, key, MoveReason::given_up, why);
    Grain &g = d.grain(key);
    DCS_REQUIRE(g.course->failures < g.demands->attempts && !why.empty(), "a grain is given up once, and told why");
    SessionInfo &info = d.info(key.session);
    Course &course = g.course.edit();
    Payload words{.bytes = std::make_shared<const std::string>(std::string(given_up_words) + why + "\n")};
    note_checkpoint(course);
    if (g.own_tree) {
        d.write(key, File::grain_err, course.err_length, words);
        course.err_length += words.size();
        course.err_sum = crc32c(*words.bytes, course.err_sum);
    } else {
        course.result_offset = info.results_length;
        d.write(key, File::session_results, info.results_length, words);
        info.results_length += words.size();
        course.err_length = words.size();
        course.err_sum = crc32c(*words.bytes);
    }
    course.failures += 1;
    end_grain(d, key, id, 0, code);
}

}  // namespace dcs::core
