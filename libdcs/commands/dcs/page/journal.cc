#include "journal.h"

#include <algorithm>

#include "commands/dcs/query/session_events.h"
#include "base/limits.h"

namespace dcs::commands::page {
namespace {

constexpr std::size_t logs_in_a_round = 64;
constexpr std::size_t most_waiting = 200'000;  // grains whose waits are measured, of all sessions
constexpr std::size_t most_checkpoints = 64;   // shown of one run
constexpr std::int64_t progress_step_ms = 15'000;
constexpr std::size_t progress_steps = 20;

// Every second one stays, the last among them: they still cover the run.
void thin_out(std::vector<std::int64_t> &all) {
    std::size_t kept = 0;
    for (std::size_t i = (all.size() + 1) % 2; i < all.size(); i += 2) all[kept++] = all[i];
    all.resize(kept);
}

// Figures of a session that change when something happens in it, apart from its checkpoints.
std::string figures_of(const wire::SessionRow &row) {
    std::string text = row.state;
    for (const int n : {row.ready, row.running, row.finished, row.killed, row.sent, row.failed})
        text += " " + std::to_string(n);
    return text;
}

bool is_recent(const wire::SessionRow &row, std::int64_t now_ms) {
    const double last_s = std::max(row.submitted_s, row.settled_s);
    return row.state == "active" || last_s * 1000 > static_cast<double>(now_ms - Journal::window_ms);
}

}  // namespace

std::size_t first_frame(std::string_view piece) {
    // Bytes that happen to look like a frame have a wrong checksum.
    for (std::size_t at = 0; at < piece.size(); ++at) {
        std::string_view left = piece.substr(at);
        (void)wire::take_events(left, [](const wire::Event &) {});
        if (left.size() < piece.size() - at) return at;
    }
    return std::string_view::npos;
}

Status LogTail::read_piece(std::uint64_t &total) {
    const auto piece = piece_of_log(user_, session_, offset_);
    if (!piece) return piece.status();
    total = piece->total;
    offset_ += piece->bytes.size();
    rest_ += piece->bytes;
    return Status::ok();
}

Status LogTail::read(const wire::EventSink &each) {
    std::uint64_t total = 0;
    if (Status s = read_piece(total); !s) return s;
    if (total > offset_) {  // more than one piece: its end
        skipped_ = true;
        rest_.clear();
        offset_ = total - std::min<std::uint64_t>(total, limits::fetch_chunk_bytes);
        if (Status s = read_piece(total); !s) return s;
        const std::size_t frame = first_frame(rest_);
        rest_.erase(0, std::min(frame, rest_.size()));
    }
    std::string_view left = rest_;
    const Status s = wire::take_events(left, each);
    rest_.erase(0, rest_.size() - left.size());
    return s;
}

void Spread::take(double s) {
    std::size_t i = 0;
    while (i < bounds_s.size() && s > bounds_s[i]) ++i;
    ++counts[i];
    sum_s += std::max(0.0, s);
}

// A counter that begins at its first event has no increase by it.
Journal::Journal(std::int64_t now_ms) : begun_ms_(now_ms) {
    for (const char *reason : wire::move_reasons) departures_[reason] = 0;
    departures_["other"] = 0;
}

void Journal::end_run(Followed &session, const wire::Event &e, const std::string &reason) {
    const auto it = session.running.find(e.grain);
    if (it == session.running.end()) return;
    Run run = std::move(it->second);
    session.running.erase(it);
    run.to_ms = std::max(run.from_ms, e.at_ms);
    run.reason = reason;
    if (e.at_ms >= begun_ms_ && reason == "finished")
        runtimes_.take(static_cast<double>(run.to_ms - run.from_ms) / 1000);
    if (wire::has_run(reason)) ended_.push_back(std::move(run));
}

void Journal::take(const SessionName &name, Followed &session, const wire::Event &e) {
    const bool counts = e.at_ms >= begun_ms_;
    switch (e.kind) {
    case wire::EventKind::submitted:
        if (waiting_ < most_waiting) waiting_ += session.submitted_ms.emplace(e.grain, e.at_ms).second;
        return;  // a million of them tell nothing
    case wire::EventKind::handed_out:
    case wire::EventKind::shown: return;
    case wire::EventKind::started: {
        session.running[e.grain] = {name, e.grain, e.host, e.at_ms, -1, {}, {}};
        const auto it = session.submitted_ms.find(e.grain);
        if (it == session.submitted_ms.end()) break;
        if (counts) waits_.take(static_cast<double>(e.at_ms - it->second) / 1000);
        session.submitted_ms.erase(it);
        --waiting_;
        break;
    }
    case wire::EventKind::checkpoint: {
        checkpoints_ += counts;
        const auto it = session.running.find(e.grain);
        if (it == session.running.end()) return;
        std::vector<std::int64_t> &all = it->second.checkpoints_ms;
        if (all.size() >= most_checkpoints) thin_out(all);
        all.push_back(e.at_ms);
        return;  // the time line shows them; here they would hide the rest
    }
    case wire::EventKind::left:
        end_run(session, e, e.text);
        if (e.text.empty()) return;
        if (counts) ++departures_[departures_.count(e.text) > 0 ? e.text : "other"];
        moves_.push_back({e.at_ms, name, e.grain, e.host, e.text, e.detail});
        break;
    case wire::EventKind::finished: end_run(session, e, "finished"); break;
    case wire::EventKind::killed:
        waiting_ -= session.submitted_ms.erase(e.grain);
        end_run(session, e, "killed");
        break;
    default: break;
    }
    happenings_.push_back({++happened_, e.at_ms, name, e.grain, sentence_of(e)});
    while (happenings_.size() > most_happenings) happenings_.pop_front();
    while (moves_.size() > most_moves) moves_.pop_front();
    if (ended_.size() > most_runs) ended_.pop_front(), incomplete_ = true;
}

void Journal::note_progress(Followed &session, const wire::SessionRow &row, std::int64_t now_ms) {
    auto &progress = session.progress;
    if (!progress.empty() && progress.back().second > row.finished) progress.clear();  // some were undone
    if (!progress.empty() && now_ms - progress.back().first < progress_step_ms) return;
    progress.emplace_back(now_ms, row.finished);
    if (progress.size() > progress_steps) progress.pop_front();
}

std::optional<double> Journal::rate_of(const SessionName &name) const {
    const auto it = followed_.find(name);
    if (it == followed_.end() || it->second.progress.size() < 2) return std::nullopt;
    const auto &[from_ms, from] = it->second.progress.front();
    const auto &[to_ms, to] = it->second.progress.back();
    if (to_ms <= from_ms || to <= from) return std::nullopt;
    return static_cast<double>(to - from) * 1000 / static_cast<double>(to_ms - from_ms);
}

void Journal::forget(const std::set<SessionName> &there, std::int64_t now_ms) {
    for (auto it = followed_.begin(); it != followed_.end();) {
        const bool gone = there.count(it->first) == 0;
        refused_ -= gone && it->second.refused;
        waiting_ -= gone ? it->second.submitted_ms.size() : 0;
        it = gone ? followed_.erase(it) : std::next(it);
    }
    const auto old = [&](const Run &run) { return run.to_ms < now_ms - window_ms; };
    ended_.erase(std::remove_if(ended_.begin(), ended_.end(), old), ended_.end());
}

void Journal::follow(const std::vector<Session> &rows, std::int64_t now_ms) {
    std::set<SessionName> there;
    std::vector<std::pair<std::int64_t, const wire::SessionRow *>> due;
    for (const wire::SessionRow &row : rows) {
        const SessionName name{row.user, row.session};
        if (row.state == "damaged" || !is_recent(row, now_ms)) continue;
        there.insert(name);
        Followed &session = followed_.try_emplace(name, Followed{LogTail(row.user, row.session)}).first->second;
        note_progress(session, row, now_ms);
        const bool news = row.running > 0 || session.read_as != figures_of(row);
        if (news && !session.refused) due.emplace_back(session.read_ms, &row);
    }
    std::sort(due.begin(), due.end());
    if (due.size() > logs_in_a_round) due.resize(logs_in_a_round);  // the others are due before these next time
    for (const auto &[read_ms, row] : due) {
        const SessionName name{row->user, row->session};
        Followed &session = followed_.at(name);
        const Status s = session.tail.read([&](const wire::Event &event) { take(name, session, event); });
        session.read_ms = now_ms;
        session.read_as = figures_of(*row);
        session.refused = s.code == Code::refused;
        refused_ += session.refused;
        incomplete_ = incomplete_ || session.tail.skipped();
    }
    forget(there, now_ms);
}

std::vector<const Run *> Journal::running() const {
    std::vector<const Run *> all;
    for (const auto &[name, session] : followed_)
        for (const auto &[grain, run] : session.running) all.push_back(&run);
    return all;
}

}  // namespace dcs::commands::page
