#include "look.h"

#include <algorithm>
#include <iterator>
#include <thread>

#include "base/clock.h"
#include "commands/dcs/query/session_events.h"

namespace dcs::commands::top {
namespace {

constexpr std::size_t sessions_asked = 20;
constexpr std::int64_t grains_drawn = 2000;  // as many as the page draws
constexpr std::size_t together = 1;          // of grains that nothing tells apart

std::shared_ptr<Look> look_of(const page::Snapshot &pool, const page::Journal &journal, std::int64_t now_ms) {
    auto look = std::make_shared<Look>();
    look->pool = pool;
    if (pool.reachable) {
        std::vector<Session> busy = own_sessions().sessions;
        std::erase_if(busy, [](const Session &s) { return s.terminated() || s.damaged() || s.running == 0; });
        if (busy.size() > sessions_asked) busy.resize(sessions_asked);
        look->grains = running_grains(busy);
    }
    for (std::size_t i = 0; i < pool.sessions.size(); ++i) {
        const wire::SessionRow &row = pool.sessions[i];
        const auto rate = journal.rate_of({row.user, row.session});
        const std::int64_t left = std::int64_t{row.ready} + row.running;
        if (row.state == "active" && row.running > 0 && rate) look->left_s[i] = static_cast<double>(left) / *rate;
    }
    look->lanes = page::lanes_of(pool, journal, now_ms);
    look->happenings = journal.happenings();
    look->moves = journal.moves();
    look->of_others = journal.of_others();
    look->incomplete = journal.incomplete();
    return look;
}

// Reads the log of the caller's first session, again if something has happened in it.
class FlowReader {
public:
    std::shared_ptr<const FlowLook> look(const page::Snapshot &pool) {
        const auto is_own = [](const wire::SessionRow &row) {
            return row.user == own_user() && row.state != "damaged";
        };
        const auto row = std::find_if(pool.sessions.begin(), pool.sessions.end(), is_own);
        if (row == pool.sessions.end()) return told("", "You have no session.");
        const std::string name = std::to_string(row->session);
        if (row->grains() > grains_drawn)
            return told(name, "Session " + name + " has too many grains to show: dcs trace " + name + " --graph FILE");
        const std::string figures = name + " " + row->state + " " + std::to_string(row->ready) + " " +
                                    std::to_string(row->running) + " " + std::to_string(row->finished) + " " +
                                    std::to_string(row->killed) + " " + std::to_string(row->sent);
        if (last_ && figures == figures_) return last_;
        const auto history = history_of(*row);
        if (!history) return told(name, "The log of session " + name + ": " + history.status().text);
        figures_ = figures;
        last_ = std::make_shared<FlowLook>(FlowLook{name, "", flow_of(*history, together)});
        return last_;
    }

private:
    static std::shared_ptr<const FlowLook> told(const std::string &name, const std::string &why) {
        return std::make_shared<FlowLook>(FlowLook{name, why, {}});
    }
    std::shared_ptr<const FlowLook> last_;
    std::string figures_;
};

}  // namespace

std::vector<wire::GrainRow> running_grains(const std::vector<Session> &sessions) {
    std::vector<wire::GrainRow> grains;
    for (const Session &session : sessions) {
        if (session.running == 0) continue;
        Info info;
        if (!info.ask(wire::QueryType::grains, session.user, session.session, -1, "running")) continue;  // closed
        std::move(info.grains.begin(), info.grains.end(), std::back_inserter(grains));
    }
    std::stable_sort(grains.begin(), grains.end(), [](const auto &a, const auto &b) { return a.cpu_s > b.cpu_s; });
    return grains;
}

void look_repeatedly(std::string directory, double interval_s, std::function<bool()> wants_flow,
                     std::function<void(std::shared_ptr<const Look>)> take) {
    std::thread([directory = std::move(directory), interval_s, wants_flow = std::move(wants_flow),
                 take = std::move(take)] {
        page::Snapshot pool;
        page::Journal journal(wall_clock_ms());
        FlowReader flows;
        for (;;) {
            const Instant begun = boot_clock();
            pool = page::take_snapshot(directory, std::move(pool));
            const std::int64_t now_ms = wall_clock_ms();
            if (pool.reachable) journal.follow(pool.sessions, now_ms);
            auto look = look_of(pool, journal, now_ms);
            if (pool.reachable && wants_flow()) look->flow = flows.look(pool);
            take(std::move(look));
            // A scheduler that does not answer has no work with the question.
            const double took_s = pool.reachable ? (boot_clock() - begun).seconds() - pool.backup_s : 0;
            pause_ms(static_cast<long>(page::pause_after_look_s(took_s, interval_s) * 1000));
        }
    }).detach();
}

}  // namespace dcs::commands::top
