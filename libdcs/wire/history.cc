#include "wire/history.h"

#include <algorithm>

namespace dcs::wire {
namespace {

bool is_over(const GrainHistory &g) { return g.state == GrainState::finished || g.state == GrainState::killed; }

}  // namespace

bool has_run(const std::string &reason) {
    return !reason.empty() && reason != "start_failed" && reason != "no_program" && reason != "cannot_start";
}

std::string History::take(const Event &e) {
    if (taken_++ == 0) {
        from_ms = e.at_ms;
        whole = e.kind == EventKind::opened;
        if (!whole) active = imported_ = true;  // it was begun by a version without a log
    }
    to_ms = std::max(to_ms, e.at_ms);
    if (e.grain < 0) return take_session(e);
    const std::string name = "grain " + std::to_string(e.grain);
    const auto known = grains.find(e.grain);
    if (e.kind == EventKind::submitted) {
        if (known != grains.end()) return name + " is submitted twice";
        GrainHistory &g = grains[e.grain];
        g.submitted_ms = e.at_ms;
        g.order = submissions_++;
        g.known = handed_out;
        g.peeked = std::exchange(peeked_, {});
        peeked_set_.clear();
        known_.insert(e.grain);
        return active ? "" : name + " is submitted to a closed session";
    }
    if (known == grains.end()) {
        if (!imported_ && e.kind != EventKind::killed) return name + " was never submitted";
        grains[e.grain].state = GrainState::unknown;  // killed: one that was damaged and then lost its record
    }
    GrainHistory &g = grains[e.grain];
    const std::string wrong = take_grain(e, g);
    if (e.kind != EventKind::forgotten && g.state != GrainState::unknown) known_.insert(e.grain);
    return wrong.empty() ? wrong : name + wrong;
}

std::string History::take_session(const Event &e) {
    marks.push_back({e.kind, e.at_ms, e.number});
    switch (e.kind) {
    case EventKind::opened:
        active = true;
        ident = e.text;
        return e.at_ms == from_ms && grains.empty() ? "" : "it is opened twice";
    case EventKind::resumed: return active ? "" : "it is resumed although it is closed";
    case EventKind::reopened: active = true; return "";
    case EventKind::closed: active = false; return "";
    case EventKind::imported:
        active = false;
        imported_ = true;
        forget_states(e);
        return "";
    case EventKind::handed_out:
        if (e.number < handed_out && !imported_) return "fewer results are handed out than before";
        handed_out = e.number;
        if (results.size() < handed_out && !imported_) return "more results are handed out than there are";
        return "";
    case EventKind::set_back: handed_out = std::min(handed_out, e.number); return "";
    default: return "an event without its grain";
    }
}

// Only of those grains with an event since the import before: a log may consist of imports.
void History::forget_states(const Event &e) {
    for (const std::int32_t number : std::exchange(known_, {})) {
        GrainHistory &g = grains.at(number);
        if (g.state == GrainState::running) end_stay(g, e, "session_closed");
        g.state = GrainState::unknown;
    }
}

void History::end_stay(GrainHistory &g, const Event &e, const std::string &reason) {
    g.state = GrainState::ready;
    if (g.stays.empty() || g.stays.back().to_ms >= 0) return;
    g.stays.back().to_ms = e.at_ms;
    g.stays.back().reason = reason;
}

std::string History::finish(GrainHistory &g, const Event &e) {
    std::string wrong;
    if (g.state == GrainState::running) end_stay(g, e, "finished");
    else if (g.state != GrainState::unknown) wrong = " finishes without running";
    g.state = GrainState::finished;
    g.ended_ms = e.at_ms;
    g.result = static_cast<std::int32_t>(e.number);
    g.code = e.code;
    g.signal = e.signal;
    if (wrong.empty() && !imported_ && e.number != results.size()) wrong = " finishes out of order";
    if (e.number < INT32_MAX && results.size() <= e.number &&
        (e.number == results.size() || (imported_ && e.number < taken_))) {
        results.resize(e.number + 1, -1);
        results[e.number] = e.grain;
    }
    return wrong;
}

void History::undo(GrainHistory &g) {
    if (g.result >= 0 && static_cast<std::size_t>(g.result) < results.size())
        results[static_cast<std::size_t>(g.result)] = -1;
    g.result = -1;
    g.ended_ms = -1;
    g.code = g.signal = 0;
    g.killed_after = 0;
    g.sequence = 0;
    g.state = GrainState::ready;
}

std::string History::take_grain(const Event &e, GrainHistory &g) {
    switch (e.kind) {
    case EventKind::started:
        if (g.state != GrainState::ready && g.state != GrainState::unknown) return " starts although it is not ready";
        g.state = GrainState::running;
        g.stays.push_back({e.host, e.number, e.at_ms, -1, {}, {}});
        return active ? "" : " starts in a closed session";
    case EventKind::checkpoint:
        if (g.sequence >= e.number) return " has a checkpoint that is older than the one before";
        g.sequence = e.number;
        if (g.state != GrainState::running) return imported_ ? "" : " has a checkpoint although it does not run";
        g.stays.back().checkpoints_ms.push_back(e.at_ms);
        return "";
    case EventKind::left: {
        const bool there = g.state == GrainState::running && g.stays.back().host == e.host;
        end_stay(g, e, e.text);
        return there || imported_ ? "" : " leaves a host on which it does not run";
    }
    case EventKind::finished: return finish(g, e);
    case EventKind::killed:
        if (g.state == GrainState::running) end_stay(g, e, "killed");
        if (g.state == GrainState::killed) return " is killed twice";
        undo(g);
        g.state = GrainState::killed;
        g.ended_ms = e.at_ms;
        g.killed_after = handed_out;
        return "";
    case EventKind::shown:
        if (peeked_set_.insert(e.grain).second) peeked_.push_back(e.grain);
        return "";
    case EventKind::undone: {
        const bool over = is_over(g) || g.state == GrainState::unknown;
        undo(g);
        return over ? "" : " is undone although it has not ended";
    }
    case EventKind::forgotten:
        undo(g);
        grains.erase(e.grain);
        known_.erase(e.grain);
        ++forgotten;
        return "";
    default: return " has an event that is not a grain's";
    }
}

}  // namespace dcs::wire
