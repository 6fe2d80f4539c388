// What a grain server reports about one grain: lengths and sequence numbers are checked, then
// the grain advances to its new checkpoint, finishes, or goes back to a queue.
#include <algorithm>
#include <map>
#include <string_view>

#include "base/bytes.h"
#include "base/limits.h"
#include "base/planted.h"
#include "scheduler/core/ahead.h"
#include "scheduler/core/decisions.h"

namespace dcs::core {
namespace {

struct Taking {
    Draft &d;
    HostId host;
    const std::shared_ptr<const wire::GrainReport> &report;
    GrainKey key;
    const Grain &old;
    bool brings() const { return report->first_seq <= report->last_seq; }
    // A payload that lives as long as the report.
    Payload share(const std::string &part) const { return {std::shared_ptr<const std::string>(report, &part)}; }
};

void acknowledge(Draft &d, const ServerReport &in, std::uint32_t last_seq, bool ended, wire::Verdict verdict) {
    const wire::GrainReport &r = *in.report;
    if (in.conn != no_connection)
        d.effect(SendServer{in.conn, wire::ReportAck{r.key, r.incarnation, last_seq, ended, verdict}});
}

wire::Usage believable(wire::Usage u) {
    const auto clamp = [](std::int64_t v) { return std::clamp<std::int64_t>(v, 0, std::int64_t{1} << 50); };
    return {clamp(u.user_us),      clamp(u.system_us), clamp(u.max_rss_kb), clamp(u.minor_faults),
            clamp(u.major_faults), clamp(u.in_blocks), clamp(u.out_blocks)};
}

// What an incarnation used only grows; who did not see its end tells nothing of it.
wire::Usage at_least(const wire::Usage &a, const wire::Usage &b) {
    return {std::max(a.user_us, b.user_us),           std::max(a.system_us, b.system_us),
            std::max(a.max_rss_kb, b.max_rss_kb),     std::max(a.minor_faults, b.minor_faults),
            std::max(a.major_faults, b.major_faults), std::max(a.in_blocks, b.in_blocks),
            std::max(a.out_blocks, b.out_blocks)};
}

// Does the report follow from what was taken in? If not, the only safe point is the checkpoint.
std::string what_does_not_fit(const Taking &t) {
    const wire::GrainReport &r = *t.report;
    const std::uint64_t next = std::uint64_t{t.old.course->sequence} + 1;
    if (r.first_seq > next && !planted("core.sequence_gap"))
        return "increments " + std::to_string(next) + " to " + std::to_string(r.first_seq - 1) + " are missing";
    if (!t.brings() && (!r.out.empty() || !r.err.empty())) return "output without a sequence number";
    if (t.brings() && !r.has_checkpoint && !r.ended) return "output without the checkpoint that it belongs to";
    if (!r.has_checkpoint) return {};
    if (!t.brings()) return "a checkpoint without a sequence number";
    if (r.input_position < t.old.course->input_position || r.input_position > t.old.input_length)
        return "a checkpoint at input position " + std::to_string(r.input_position);
    return {};
}

// `sum`: of what the stream is with this part.
void append(Taking &t, File file, std::uint64_t &length, std::uint32_t &sum, const Payload &part) {
    if (part.size() == 0) return;
    t.d.write(t.key, file, length, part);
    length += part.size();
    sum = crc32c(*part.bytes, sum);
}

// The last line of its standard error, where a user looks first. Empty: no limit ended it.
std::string limit_line(const Taking &t) {
    const wire::GrainReport &r = *t.report;
    if (!r.limit) return {};
    const bool begun = r.err.empty() ? t.old.course->err_length > 0 : r.err.back() != '\n';
    const bool attempts_left = t.old.course->failures + 1 < t.old.demands->attempts;
    return (begun ? "\ndcs: ended on " : "dcs: ended on ") + t.d.state.host(t.host)->config->name + ": " +
           shortened(r.reason, limits::move_detail_bytes) +
           (attempts_left ? "; it is not tried again, as it would meet the same limit\n" : "\n");
}

// One that says the same as the one before is none.
bool is_progress(const Taking &t) {
    const wire::GrainReport &r = *t.report;
    return !r.out.empty() || !r.err.empty() || r.input_position != t.old.course->input_position ||
           r.checkpoint.size() != t.old.course->checkpoint_length ||
           crc32c(r.checkpoint) != t.old.course->checkpoint_sum;
}

void take_checkpoint(Taking &t) {
    const wire::GrainReport &r = *t.report;
    Grain &g = t.d.grain(t.key);
    Course &course = g.course.edit();
    DCS_REQUIRE(r.has_checkpoint && r.input_position <= g.input_length, "a checkpoint that does not fit is not taken");
    if (is_progress(t)) course.returns = 0;
    g.own_tree = true;
    if (!planted("core.old_lease_stays")) course.old_lease = OldLease{};  // from here on this lease is ahead of it
    course.sequence = r.last_seq;
    course.input_position = r.input_position;
    course.checkpoint_length = r.checkpoint.size();
    course.checkpoint_sum = crc32c(r.checkpoint);
    g.recent.edit().checkpoint_time = g.recent.edit().used_at = t.d.now;
    if (const std::int64_t held = saturated(course.kept->start, cpu_us(course.current)); held != course.kept->held)
        course.kept.edit().held = held;
    t.d.write(t.key, File::grain_checkpoint, 0, t.share(r.checkpoint));
    // A message lives until the next checkpoint.
    Payload message = t.share(r.message);
    if (r.message.size() > limits::message_bytes)
        message.bytes = std::make_shared<const std::string>(r.message.substr(0, limits::message_bytes));
    if (message.size() > 0 || course.message_length > 0) t.d.write(t.key, File::grain_message, 0, message);
    course.message_length = static_cast<std::uint32_t>(message.size());
    course.message_sum = message.bytes ? crc32c(*message.bytes) : 0;
    append(t, File::grain_out, course.out_length, course.out_sum, t.share(r.out));
    append(t, File::grain_err, course.err_length, course.err_sum, t.share(r.err));
}

// It ended well: of hosts on which it had failed before we know now that the fault was theirs.
void settle_blame(Draft &d, const GrainKey &key, HostId id) {
    const Grain &g = d.grain(key);
    if (const Finished &end = g.as<Finished>(); end.exit_code != 0 || end.signal != 0) return;
    std::set<HostId> blamed;
    for (const Move &move : g.course->moves.get())
        if (move.reason == MoveReason::failed && move.host != id && d.state.host(move.host)) blamed.insert(move.host);
    for (const HostId other : blamed) {
        Host &host = d.host(other);
        host.totals.blamed += 1;
        host.blamed_lately += 1;
        d.event("grain " + to_text(key) + ", which failed on " + host.config->name + ", finished elsewhere");
    }
    if (d.state.host(id)->blamed_lately != 0) d.host(id).blamed_lately = 0;
}

// Of what it was to bring back; what it did not make stays without a digest.
void take_files(Taking &t) {
    if (t.old.files->outputs.empty()) return;
    std::map<std::string_view, const wire::GrainFile *> made;  // there may be a thousand
    for (const wire::GrainFile &file : t.report->files)
        if (file.digest.size() == limits::digest_bytes) made[file.name] = &file;
    for (wire::GrainFile &output : t.d.grain(t.key).files.edit().outputs) {
        const auto found = made.find(output.name);
        if (found == made.end()) continue;
        output.digest = found->second->digest;
        output.size = found->second->size;
    }
}

// Final, whatever comes later: a result in the session's order of finishing.
void finish_grain(Taking &t) {
    const wire::GrainReport &r = *t.report;
    Grain &g = t.d.grain(t.key);
    SessionInfo &info = t.d.info(t.key.session);
    Course &course = g.course.edit();
    const Payload said{std::make_shared<const std::string>(limit_line(t))};
    const std::uint64_t size = r.out.size() + r.err.size() + said.size();
    take_files(t);
    if (r.signal != 0 || r.exit_code != 0 || g.files->lacks_output()) note_checkpoint(course);
    if (t.brings()) course.sequence = r.last_seq;
    if (!g.own_tree && size <= shared_bytes) {
        course.result_offset = info.results_length;
        append(t, File::session_results, info.results_length, course.out_sum, t.share(r.out));
        append(t, File::session_results, info.results_length, course.err_sum, t.share(r.err));
        append(t, File::session_results, info.results_length, course.err_sum, said);
        course.out_length = r.out.size();
        course.err_length = r.err.size() + said.size();
        DCS_REQUIRE(course.result_offset + size == info.results_length, "a result lies at the end of the results");
    } else {
        g.own_tree = true;
        append(t, File::grain_out, course.out_length, course.out_sum, t.share(r.out));
        append(t, File::grain_err, course.err_length, course.err_sum, t.share(r.err));
        append(t, File::grain_err, course.err_length, course.err_sum, said);
    }
    note_pace(t.d, t.host);
    end_grain(t.d, t.key, t.host, r.signal, r.exit_code);
    settle_blame(t.d, t.key, t.host);
}

void count_end(Taking &t, bool abnormal) {
    HostTotals &totals = t.d.host(t.host).totals;
    const wire::Usage &used = t.d.grain(t.key).course->current;
    totals.cpu_us += used.user_us + used.system_us;
    (t.report->innocent ? totals.given_back : abnormal ? totals.failed : totals.finished) += 1;
}

MoveReason why_given_back(const Taking &t) {
    if (is_displaced(t.d.state, t.key, t.host)) return MoveReason::usurped;
    const std::vector<Move> &moves = t.old.course->moves;
    if (!moves.empty() && moves.back().reason == MoveReason::restarted && moves.back().incarnation == t.old.lease)
        return MoveReason::restarted;  // noted when it was ordered
    if (t.report->given_back == wire::GivenBack::shut_out) return MoveReason::shut_out;
    if (t.report->given_back == wire::GivenBack::thrashing) return MoveReason::thrashed;
    const Host &host = *t.d.state.host(t.host);
    return host.config->slots == 0 ? MoveReason::host_closed : MoveReason::given_back;
}

// The last line of its standard error, which is not kept, behind a colon. Empty: there is none.
std::string last_line(const std::string &err) {
    const std::size_t last = err.find_last_not_of(" \t\r\n");
    if (last == std::string::npos) return {};
    const std::size_t before = err.find_last_of('\n', last), first = before == std::string::npos ? 0 : before + 1;
    return ": " + err.substr(first, last + 1 - first);
}

std::string again_and_again(const Grain &old, const std::string &reason) {
    return std::to_string(old.course->returns + 1) + " times in a row: " + reason;
}

void take_end(Taking &t) {
    const wire::GrainReport &r = *t.report;
    const std::string name = "grain " + to_text(t.key);
    const bool abnormal = r.signal != 0 || r.exit_code != 0;
    count_end(t, abnormal);
    if (!r.innocent && abnormal && try_higher_limit(t.d, t.key, t.host, r)) return;
    const bool last = t.old.course->failures + 1 >= t.old.demands->attempts || r.limit;
    if (!r.innocent && (!abnormal || last)) {
        if (abnormal) t.d.grain(t.key).course.edit().failures += 1;
        if (r.limit) note_move(t.d, t.key, MoveReason::over_limit, r.reason);
        return finish_grain(t);
    }
    // It runs again from its last checkpoint, and repeats the output after it.
    if (r.has_checkpoint) take_checkpoint(t);
    const std::string where = t.d.state.host(t.host)->config->name;
    if (!r.innocent) {
        const std::string end =
            r.signal != 0 ? "signal " + std::to_string(r.signal) : "code " + std::to_string(r.exit_code);
        note_move(t.d, t.key, MoveReason::failed, end + last_line(r.err));
        t.d.event(name + " failed on " + where + ", signal " + std::to_string(r.signal) + ", code " +
                  std::to_string(r.exit_code));
        return fail_grain(t.d, t.key, t.host);
    }
    const MoveReason why = why_given_back(t);
    const bool own_doing = why == MoveReason::given_back && r.given_back == wire::GivenBack::by_itself;
    if (own_doing && last_return(t.d.grain(t.key))) {
        t.d.grain(t.key).course.edit().failures += 1;
        note_move(t.d, t.key, MoveReason::given_up, again_and_again(t.old, r.reason));
        return finish_grain(t);
    }
    t.d.event(name + " returned by " + where + ": " + r.reason);
    // What such a run wrote is not kept, and may say why.
    if (why != MoveReason::restarted) note_move(t.d, t.key, why, r.reason + (own_doing ? last_line(r.err) : ""));
    if (own_doing) come_back(t.d, t.key, t.host);
    else requeue_front(t.d, t.key, false);
    if (why == MoveReason::given_back) hold_back(t.d, t.host, t.key);  // else nothing is wrong with the host
    t.d.follow_up(PlaceGrain{t.key});
    t.d.follow_up(FillHost{t.host});
}

void take_leased(Taking &t, const ServerReport &in) {
    const wire::GrainReport &r = *t.report;
    const bool again = t.old.status() == GrainStatus::finished;  // only with a bug that was planted
    if (r.first_seq <= t.old.course->sequence && !again)  // seen before, at least in part: the server sends the rest
        return acknowledge(t.d, in, t.old.course->sequence, false, wire::Verdict::have_it);
    Grain &g = t.d.grain(t.key);
    g.launched = true;
    g.ahead = false;
    if (const std::string why = what_does_not_fit(t); !why.empty()) {
        t.d.withdraw(t.host, t.key, t.old.lease, true, why);
        if (last_return(t.old)) return give_up(t.d, t.key, t.host, exit_given_up, again_and_again(t.old, why));
        note_move(t.d, t.key, MoveReason::gap, why);
        come_back(t.d, t.key, t.host);
        t.d.follow_up(PlaceGrain{t.key});
        t.d.follow_up(FillHost{t.host});
        return t.d.event("grain " + to_text(t.key) + " restarted from its checkpoint: " + why);
    }
    g.course.edit().current = at_least(g.course->current, believable(r.usage));
    if (r.ended) {
        take_end(t);
    } else if (r.has_checkpoint) {
        take_checkpoint(t);
    } else if (t.old.status() == GrainStatus::running) {  // not one whose lease was just forgiven
        g.recent.edit().used_at = t.d.now;
        t.d.volatile_only(t.key);  // alive and nothing new: nothing is written
    }
    acknowledge(t.d, in, t.brings() ? r.last_seq : t.old.course->sequence, r.ended, wire::Verdict::taken);
}

}  // namespace

void take_report(Draft &d, const ServerReport &in) {
    const Host *host = d.state.host(in.host);
    if (!host || host->conn != in.conn) return;  // an older connection of it; the report comes again
    hear_from(d, in.host);
    judge_report(d, in, false);
}

void judge_report(Draft &d, const ServerReport &in, bool late) {
    const wire::GrainReport &r = *in.report;
    const GrainKey key = wire::key_of(r.key);
    const Grain *grain = d.state.grain(key);
    const bool same = grain && grain->lease == r.incarnation && grain->lessee == in.host;
    const bool finished = grain && grain->status() == GrainStatus::finished;
    const bool again = finished && r.ended && planted("core.finished_not_final");
    if (finished && (same || r.ended) && !again)
        return acknowledge(d, in, std::max(r.last_seq, grain->course->sequence), true, wire::Verdict::have_it);
    const bool forgiven = late && same && grain->status() == GrainStatus::ready &&
                          d.state.session(key.session)->info.status == SessionStatus::active;
    if (!again && (!same || (grain->status() != GrainStatus::running && !forgiven)))
        return acknowledge(d, in, r.last_seq, r.ended, wire::Verdict::stale);
    if (forgiven) reinstate(d, key);
    Taking taking{d, in.host, in.report, key, *grain};
    take_leased(taking, in);
    // What it brought counts; but the host is not there, so the grain waits as before, now further on.
    if (forgiven && d.grain(key).status() == GrainStatus::running) requeue_front(d, key, true);
}

}  // namespace dcs::core
