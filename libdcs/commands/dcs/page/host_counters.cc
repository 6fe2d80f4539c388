#include "host_counters.h"

#include "commands/dcs/frame/table.h"

namespace dcs::commands::page {
namespace {

// After a kill of the scheduler a host's counts may be those of a moment before.
template <class Number> Number grown(Number last, Number now) { return now > last ? now - last : 0; }

}  // namespace

void HostCounters::take(const std::vector<wire::HostRow> &hosts) {
    std::map<std::string, Host> next;
    for (const wire::HostRow &row : hosts) {
        const Host now = {row.launched, row.finished, row.failed, row.given_back, row.cpu_s};
        const auto known = last_.find(row.name);
        const Host before = known != last_.end() ? known->second : now;
        starts_[class_text(row.host_class, row.class_names)] += grown(before.launched, now.launched);
        finished_ += grown(before.finished, now.finished);
        failed_ += grown(before.failed, now.failed);
        given_back_ += grown(before.given_back, now.given_back);
        cpu_s_ += grown(before.cpu_s, now.cpu_s);
        next[row.name] = now;
    }
    last_ = std::move(next);
}

}  // namespace dcs::commands::page
