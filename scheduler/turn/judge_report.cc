#include "scheduler/turn/judge_report.h"

namespace dcs::turn {
namespace {

std::uint64_t bytes_in(const wire::GrainReport &report) {
    return report.out.size() + report.err.size() + report.checkpoint.size();
}

}  // namespace

const wire::GrainFile *missing_output(const wire::GrainReport &report,
                                      const std::function<bool(const wire::GrainFile &)> &here) {
    for (const wire::GrainFile &file : report.files)
        if (report.ended && !file.digest.empty() && !here(file)) return &file;
    return nullptr;
}

std::optional<NotNow> why_not_now(const DecodeContext &context, const std::string &host,
                                  const wire::GrainReport &report) {
    const std::string name = "grain " + to_text(wire::key_of(report.key));
    const Holder holder{context.state.stored, report.key.user};
    const auto here = [&](const wire::GrainFile &f) { return context.contents.has(f, host, holder); };
    if (const wire::GrainFile *file = missing_output(report, here))
        return NotNow{name + " ended before the library has its " + to_text(*file) + " from host " + host, true};
    if (!core::may_report(context.state, report.key.user, bytes_in(report)))
        return NotNow{name +
                      " must report later: its user exceeds the share of the scheduler's disk, which is nearly "
                      "full"};
    return std::nullopt;
}

}  // namespace dcs::turn
