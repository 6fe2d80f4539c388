#pragma once
// The pages of single sessions, grains and hosts, and the whole lists.
#include <string>

#include "journal.h"
#include "published.h"
#include "snapshot.h"

namespace dcs::commands::page {

struct Detail {
    int status = 200;
    Text text;
    const char *type = html_type;
};
// `target`: path and query of the request. Asks the scheduler if the snapshot does not have the answer.
Detail make_detail(const std::string &target, const Snapshot &s, const Journal &journal);
// Whether there is such a kind of page, whatever it will say.
bool is_detail(const std::string &target);

Detail not_found(const std::string &what);

}  // namespace dcs::commands::page
