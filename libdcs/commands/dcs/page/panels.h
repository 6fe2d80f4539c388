#pragma once
// The panels of the first page, as HTML. Each is cut to a size that a browser shows at once, whatever the pool has.
#include <string>

#include "journal.h"
#include "series.h"
#include "snapshot.h"

namespace dcs::commands::page {

std::string head_panel(const Snapshot &s);
std::string problems_panel(const Snapshot &s);
std::string hosts_panel(const Snapshot &s);
std::string sessions_panel(const Snapshot &s, const Journal &journal);
std::string time_panel(const Snapshot &s, const Journal &journal, std::int64_t now_ms);
std::string moves_panel(const Journal &journal);
std::string load_panel(const Series &series);
std::string events_panel(const Journal &journal);

// Rows of sessions, as in the panel and on the page of all sessions.
std::string sessions_table(const std::vector<const Session *> &rows, const Journal &journal);
// "active", "drained", "late", "dead", "no_job", "unknown": what is shown of a host's state.
std::string host_word(const wire::HostRow &row);
bool is_troubled(const wire::HostRow &row);

}  // namespace dcs::commands::page
