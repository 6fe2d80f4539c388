#include "scheduler/turn/judge_report.h"

namespace dcs::turn {
namespace {

std::uint64_t bytes_in(const wire::GrainReport &report) {
    return report.out.size() + report.err.size() + report.checkpoint.size();
}

}  // namespace

std::optional<NotNow> why_not_now(const core::State &state, const Contents &contents, const std::string &host,
                                  const wire::GrainReport &report, Way way) {
    const std::string name = "grain " + to_text(wire::key_of(report.key));
    const Holder holder{state.stored, report.key.user};
    const bool acknowledged = way == Way::from_backup;
    for (const wire::GrainFile &file : report.files) {
        if (!report.ended || file.digest.empty() || contents.has(file, host, holder)) continue;
        if (acknowledged && contents.has(file) && !state.stored.is_had(file.digest)) continue;
        return NotNow{name + " ended before the library has its " + to_text(file) + " from host " + host, true};
    }
    if (!acknowledged && !core::may_report(state, report.key.user, bytes_in(report)))
        return NotNow{name +
                      " must report later: its user exceeds the share of the scheduler's disk, which is nearly full"};
    return std::nullopt;
}

}  // namespace dcs::turn
