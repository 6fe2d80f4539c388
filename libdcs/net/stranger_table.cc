#include "net/stranger_table.h"

#include <tuple>

#include "base/planted.h"
#include "base/require.h"

namespace dcs::net {
namespace {

constexpr std::size_t most_shown = 4096;
constexpr Duration shown_for = seconds(24 * 3600);
constexpr Duration first_moment = milliseconds(250);

}  // namespace

// Of one network: the silent before those who speak, the oldest first. Of all: unknown networks before known ones.
std::optional<ConnId> StrangerTable::victim(const std::string *network) const {
    std::optional<ConnId> found;
    std::tuple<bool, bool> best{true, true};
    for (const auto &[conn, stranger] : strangers_) {
        if (network != nullptr && stranger.network != *network) continue;
        const bool silent = !stranger.spoke && now_ - stranger.since >= first_moment;
        const std::tuple<bool, bool> rank{network == nullptr && trusted(stranger.network, now_), !silent};
        if (found && rank >= best) continue;
        found = conn;
        best = rank;
        if (best == std::tuple<bool, bool>{false, false}) break;
    }
    return found;
}

std::optional<ConnId> StrangerTable::add(ConnId conn, const std::string &network) {
    const auto of_it = of_network_.find(network);
    std::optional<ConnId> goes;
    if (of_it != of_network_.end() && of_it->second >= bounds_.of_network) {
        goes = planted("net.refuse_newcomers") ? std::optional<ConnId>(conn) : victim(&network);
    } else if (strangers_.size() >= bounds_.all) {
        goes = planted("net.refuse_newcomers") ? std::optional<ConnId>(conn) : victim(nullptr);
        if (goes && trusted(strangers_.at(*goes).network, now_) && !trusted(network, now_)) goes = conn;
    }
    if (goes == conn) return goes;
    DCS_REQUIRE(strangers_.count(conn) == 0, "a stranger comes once");
    strangers_[conn] = Stranger{network, now_, false};
    ++of_network_[network];
    return goes;
}

void StrangerTable::spoke(ConnId conn) {
    if (const auto found = strangers_.find(conn); found != strangers_.end()) found->second.spoke = true;
}

void StrangerTable::remove(ConnId conn) {
    const auto found = strangers_.find(conn);
    if (found == strangers_.end()) return;
    const auto of_it = of_network_.find(found->second.network);
    DCS_REQUIRE(of_it != of_network_.end() && of_it->second > 0, "each stranger is counted in its network");
    if (--of_it->second == 0) of_network_.erase(of_it);
    strangers_.erase(found);
}

void StrangerTable::trust(const std::string &network, Instant now) {
    if (shown_.size() >= most_shown && shown_.count(network) == 0)
        std::erase_if(shown_, [&](const auto &entry) { return entry.second <= now; });
    if (shown_.size() >= most_shown && shown_.count(network) == 0) return;
    shown_[network] = now + shown_for;
}

bool StrangerTable::trusted(const std::string &network, Instant now) const {
    const auto found = shown_.find(network);
    return found != shown_.end() && now < found->second;
}

}  // namespace dcs::net
