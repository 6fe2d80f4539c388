// What operators hear of the backup's copy.
#include <algorithm>
#include <utility>

#include "base/known_words.h"
#include "base/limits.h"
#include "scheduler/turn/mirror.h"

namespace dcs::turn {
namespace {

constexpr const char *low_disk = "its disk has only ";
constexpr const char *apart_advice =
    "restart dcs_backupd there, after maintenance if need be: when it is back and up to date, commits wait again";
// A scheduler whose copy was promoted waits too, and must not acknowledge anything.
constexpr const char *detach_advice =
    "`dcs backup detach` continues without it; if it was promoted elsewhere, stop this scheduler instead";

}  // namespace

std::string Mirror::instead_of_waiting() const { return is_ahead(trouble_) ? copy_advice(trouble_) : detach_advice; }

// It said so in the log of its host, where few look; it calls again and again.
void Mirror::told_why_not(const wire::Refused &told) {
    const std::string why = failing_copy_words + told.text;
    if (why == failed_) return;
    failed_ = why;
    outside_.log(Level::error, why + (waits() ? "; commits wait for it; " + instead_of_waiting() : ""));
}

void Mirror::told_room(std::uint64_t free_bytes) {
    const bool was_low = std::exchange(free_bytes_, free_bytes) < limits::library_leaves_bytes;
    for (const wire::ProblemRow &row : problems())
        if (!was_low && row.problem.starts_with(low_disk))
            outside_.log(Level::warning, row.entity + ": " + row.problem + ": " + row.affects);
}

wire::MirrorStatus Mirror::status() const {
    wire::MirrorStatus s;
    s.mode = word_of(setup_.mode);
    s.name = setup_.identity.name, s.epoch = setup_.identity.epoch, s.turn = last_turn_;
    s.copied = copied_;
    s.attached = attachment_ == Attachment::attached;
    s.detached = attachment_ == Attachment::detached;
    s.text = why_not();
    if (setup_.mode == MirrorMode::off) s.state = "none";
    else if (conn_ == no_connection) s.state = is_ahead(trouble_) ? "ahead" : "away";
    else if (making_ || !whole_) s.state = "copying";
    else s.state = copied_ == last_turn_ ? "current" : "behind";
    if (setup_.mode == MirrorMode::off) return s;
    s.lag_turns = s.state == "ahead" ? backlog_.size() : last_turn_ - std::min(copied_, last_turn_);
    s.lag_bytes = backlog_held_;
    const Instant now = outside_.now();
    if (!backlog_.empty()) s.lag_s = (now - backlog_.front().at).seconds();
    if (holds() && holding_since_) s.waiting_s = (now - *holding_since_).seconds();
    return s;
}

std::vector<wire::ProblemRow> Mirror::problems(const std::string &awaited) const {
    const bool linked = conn_ != no_connection, attached = attachment_ == Attachment::attached;
    if (setup_.mode == MirrorMode::off) return {};
    std::vector<wire::ProblemRow> rows;
    if (linked && free_bytes_ < limits::library_leaves_bytes)
        rows.push_back({copy_of_store_words, "", low_disk + std::to_string(free_bytes_ >> 20) + " MiB free",
                        waits() ? "when it is full, commits wait" : "when it is full, nothing more is copied",
                        "make room on the backup's host"});
    if (linked && failed_.empty() && !apart_ && (whole_ || attached)) return rows;
    const std::string &why = why_not();
    const bool ahead = is_ahead(why), moved = !awaited.empty() && !ahead && !linked;
    const std::string join = "`dcs token create --host " + (moved ? awaited : "NAME") + " --role backup`";
    wire::ProblemRow row{copy_of_store_words, "", "", "",
                         barred_ || moved ? "let a backup join (" + join + ")" : copy_advice(why)};
    row.affects = "if this disk is lost, so is all work acknowledged " +
                  (copied_ == 0 ? "that the copy lacks" : "since turn " + std::to_string(copied_));
    if (attachment_ == Attachment::detached) {
        row.problem = "it is detached: commits do not wait for it" + (why.empty() ? "" : " (" + why + ")");
        row.advice += "; the copy is attached again when it is up to date";
        if (apart_) row.advice = apart_advice;
    } else if (linked && why.empty()) {
        row.problem = "it is incomplete";
    } else if (attached && setup_.mode == MirrorMode::sync) {
        row.problem = "commits wait for it: " + why;
        row.affects = "calls are not answered until it is back";
        if (moved) {
            row.problem += "; the host table names " + awaited + ", which has not joined, and cannot while they wait";
            row.advice = "`dcs backup detach`, then " + join +
                         " and, on that host, the line that it prints; if the former copy was promoted elsewhere, "
                         "stop this scheduler instead";
        } else if (!ahead) {
            row.advice += std::string("; ") + detach_advice;
        }
    } else if (copied_ > 0 || ahead) {
        row.problem = ahead ? why : "it is behind: " + why;
    } else {
        row.problem = "there is none: " + why;
        row.advice += ", or do what `dcs backup status` says";
    }
    rows.push_back(std::move(row));
    return rows;
}

}  // namespace dcs::turn
