#include "look.h"

#include <algorithm>
#include <iterator>
#include <thread>

#include "base/clock.h"
#include "commands/dcs/query/scheduler.h"

namespace dcs::commands::top {
namespace {

constexpr double share_of_time = 0.05;  // that a look may take of the time until the next one
constexpr double longest_interval_s = 60;
constexpr std::size_t sessions_asked = 20;

bool is_busy(const Session &s) { return !s.terminated() && !s.damaged() && s.running > 0; }

std::shared_ptr<const Look> look_of(const page::Snapshot &pool, const page::Journal &journal, std::int64_t now_ms) {
    auto look = std::make_shared<Look>();
    look->pool = pool;
    if (pool.reachable) {
        std::vector<Session> busy = own_sessions().sessions;
        busy.erase(std::remove_if(busy.begin(), busy.end(), [](const Session &s) { return !is_busy(s); }), busy.end());
        if (busy.size() > sessions_asked) busy.resize(sessions_asked);
        look->grains = running_grains(busy);
    }
    for (std::size_t i = 0; i < pool.sessions.size(); ++i) {
        const wire::SessionRow &row = pool.sessions[i];
        const auto rate = journal.rate_of({row.user, row.session});
        const std::int64_t left = std::int64_t{row.ready} + row.running;
        if (row.state == "active" && left > 0 && rate) look->left_s[i] = static_cast<double>(left) / *rate;
    }
    look->lanes = page::lanes_of(pool, journal, now_ms);
    look->happenings = journal.happenings();
    look->moves = journal.moves();
    look->of_others = journal.of_others();
    look->incomplete = journal.incomplete();
    return look;
}

}  // namespace

std::vector<wire::GrainRow> running_grains(const std::vector<Session> &sessions) {
    std::vector<wire::GrainRow> grains;
    for (const Session &session : sessions) {
        if (session.running == 0) continue;
        Info info;
        if (!info.ask(wire::QueryType::grains, session.user, session.number, -1, "running")) continue;  // closed
        std::move(info.grains.begin(), info.grains.end(), std::back_inserter(grains));
    }
    std::stable_sort(grains.begin(), grains.end(), [](const auto &a, const auto &b) { return a.cpu_s > b.cpu_s; });
    return grains;
}

void look_repeatedly(std::string directory, double interval_s, std::function<void(std::shared_ptr<const Look>)> take) {
    std::thread([directory = std::move(directory), interval_s, take = std::move(take)] {
        page::Snapshot pool;
        page::Journal journal(wall_clock_ms());
        for (;;) {
            const Instant begun = boot_clock();
            pool = page::take_snapshot(directory, std::move(pool));
            const std::int64_t now_ms = wall_clock_ms();
            if (pool.reachable) journal.follow(pool.sessions, now_ms);
            take(look_of(pool, journal, now_ms));
            // A scheduler that does not answer has no work with the question.
            const double took_s = pool.reachable ? (boot_clock() - begun).seconds() - pool.backup_s : 0;
            const double pause_s = std::min(longest_interval_s, std::max(interval_s, took_s / share_of_time));
            pause_ms(static_cast<long>(pause_s * 1000));
        }
    }).detach();
}

}  // namespace dcs::commands::top
