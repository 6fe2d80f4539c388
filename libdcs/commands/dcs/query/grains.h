#pragma once
// The grains of a session, as rows.
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "scheduler.h"

namespace dcs::commands {

struct GrainsAnswer {
    std::vector<wire::GrainRow> rows;  // ascending
    std::optional<Failure> failure;
};

// state: "" all, ready, running, finished, killed, or failed (finished badly). ranges as in a
// GrainSelector. None is no failure here.
GrainsAnswer grains_of(const Session &session, const std::vector<GrainRange> &ranges, const std::string &state = "");

// What selectors mean; the session of each row by its name.
struct ChosenGrains {
    GrainsAnswer grains;
    std::vector<std::string> sessions;
    std::vector<bool> named_alone;  // its selector names no other grain
    std::vector<bool> closed;       // its session
    int not_submitted = 0;          // yet, of active sessions that are listed whole
    std::set<std::string> logs;     // of `dcs submit`, of those with grains that failed or are not submitted
    std::optional<Failure> failure;

    std::string name(std::size_t i) const {  // "7:12"
        return sessions[i] + ":" + std::to_string(grains.rows[i].grain);
    }
    std::string state(std::size_t i) const;  // for people: a ready grain of a closed session will not run
};
// bare_session: SES alone means all its grains, and SES may be `all`; else it means the only grain of a session, unless
// to_change. A selector that names grains of which none exists
// is a failure, unless a state is asked for.
// host: only those that run there or ended there.
// to_change: as of a SessionSelector.
ChosenGrains choose_grains(const std::vector<std::string> &selectors, bool bare_session, const std::string &state = "",
                           const std::string &host = "", bool to_change = false);
void print_grain_names(const ChosenGrains &chosen);

// Rows of whole sessions with what they lack and those of single grains have: label, command, directory, environment
// and so on. They are read in order, and only so many are held at once: a session has more grains than there may be
// memory for their environments. Not of other users' grains, whose details are not shown.
class DetailedRows {
public:
    // Which stay where they are.
    explicit DetailedRows(const std::vector<wire::GrainRow> &rows) : rows_(rows) {}
    Result<wire::GrainRow> at(std::size_t i);
    // What it is about: its label, which for `dcs map` is the input; else its command.
    std::string item_at(std::size_t i, std::size_t columns = 32);

private:
    Status ask(std::size_t i);

    const std::vector<wire::GrainRow> &rows_;
    std::map<std::int32_t, wire::GrainRow> whole_;  // of one session
    std::set<std::string> refused_;                 // users
};

bool is_failed(const wire::GrainRow &row);
bool is_over(const wire::GrainRow &row);  // finished or killed
// As the scheduler has it now, with all that is known of it; nothing also if it does not say.
std::optional<wire::GrainRow> grain_now(const std::string &user, int session, int grain);

}  // namespace dcs::commands
