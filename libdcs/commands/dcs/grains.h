#pragma once
// The grains of a session, as rows.
#include <memory>
#include <string>
#include <vector>

#include "ask.h"

namespace dcs::commands {

struct GrainsAnswer {
    std::vector<std::shared_ptr<Info>> infos;  // what owns the rows
    std::vector<const d_grain_row *> rows;     // ascending
    Failure failure;
    bool failed = false;

    std::size_t count() const { return rows.size(); }
    template <class Do>
    void each(Do action) const {
        for (const d_grain_row *row : rows) action(*row);
    }
};

// state: "" all, ready, running, finished, killed, or failed (finished badly). ranges as in a
// GrainSelector. None is no failure here.
GrainsAnswer grains_of(const Session &session, const std::vector<GrainRange> &ranges,
                       const std::string &state = "");
bool is_grain_state(const std::string &state);
bool is_failed(const d_grain_row &row);

}  // namespace dcs::commands
