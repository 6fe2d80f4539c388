#pragma once
// The pool's figures for Prometheus. Labels have as many values as the host table has classes and hosts, or fewer.
#include <cstddef>
#include <cstdint>
#include <string>

#include "series.h"
#include "journal.h"
#include "snapshot.h"

namespace dcs::commands::page {

struct Metrics {
    std::string text;  // text/plain; version=0.0.4
    std::string open;  // application/openmetrics-text; version=1.0.0
};
struct PageFigures {
    std::uint64_t looks = 0;       // at the pool
    std::size_t watchers = 0;      // browsers that follow the page
    double started_s = 0;          // this process's start, since 1970
    double certificate_end_s = 0;  // of the page's own certificate; 0: it has none
};
Metrics metrics_of(const Snapshot &s, const HostCounters &counters, const Journal &journal, const PageFigures &page);

}  // namespace dcs::commands::page
