// What leaves the library, and when: see docs/CONTENTS.md.
#include <algorithm>

#include "base/limits.h"
#include "base/planted.h"
#include "scheduler/turn/contents.h"

namespace dcs::turn {
namespace {

// How many are examined without a pause, how many are removed without a pause, and the pauses.
constexpr int looked_at_once = 4096, removed_at_once = 8;
constexpr Duration sweep_pause = milliseconds(100), sweep_again = seconds(600);

// Grains that cannot be read may name anything.
bool something_is_set_aside(const core::State &state) {
    if (!state.set_aside.empty()) return true;
    for (const auto &[key, session] : state.sessions)
        if (!session.damaged.empty()) return true;
    return false;
}

}  // namespace

// The library's thread looks at its file, or has perhaps put one that came again in its place already.
bool Contents::in_work(const std::string &digest) const {
    return checking_.contains(digest) || (sealing_.contains(digest) && !planted("turn.removes_what_comes"));
}

// A host uploads the declared outputs of grains that are leased to it. A content belongs to the grain's user from the
// report that names it. Beyond the limit the oldest unowned one is removed, and uploaded again if it is needed.
void Contents::brought_by(const Peer &server, const std::string &digest, core::State &state) {
    auto &[unowned, last] = of_hosts_[server.owner];
    unowned.push_back(digest);
    last.push_back(digest);
    std::erase_if(unowned, [&](const std::string &d) { return !library_->find(d) || state.stored.is_had(d); });
    const core::HostId host = state.host_id(server.owner.substr(server.owner.find(' ') + 1));
    std::size_t most = limits::content_uploads_each;
    if (host != core::no_host)
        for (const GrainKey &key : state.running[static_cast<std::size_t>(host)])
            most += state.grain(key)->files->outputs.size();
    while (last.size() > most) last.pop_front();
    while (unowned.size() > most) {
        const std::string oldest = std::move(unowned.front());
        unowned.pop_front();
        if (in_work(oldest)) continue;
        library_->remove(oldest);
        state.stored.gone(oldest);
    }
}

bool Contents::has(const wire::GrainFile &output, const std::string &host, const Holder &holder) const {
    if (!has(output) || holder.has(output.digest)) return has(output);
    const auto brought = of_hosts_.find("host " + host);
    if (brought == of_hosts_.end()) return false;
    const auto &last = brought->second.last;
    return std::find(last.begin(), last.end(), output.digest) != last.end();
}

// Does the peer have it here already, so that it need not come again?
bool Contents::is_known(const Peer &peer, const std::string &digest, const core::State &state) const {
    if (!library_->find(digest)) return false;
    if (!peer.server) return Holder{state.stored, peer.owner, peer.privileged}.has(digest);
    const auto brought = of_hosts_.find(peer.owner);
    if (brought == of_hosts_.end()) return planted("turn.a_digest_is_enough");
    const auto &last = brought->second.last;
    return std::find(last.begin(), last.end(), digest) != last.end() || planted("turn.a_digest_is_enough");
}

Instant Contents::sweep_wakeup() const {
    return library_->all().empty() && uploads_.empty() ? Instant::never() : sweep_not_before_;
}

void Contents::sweep(const core::State &state, core::Stored &stored) {
    const Instant now = outside_.now();
    drop_stalled();
    sweep_not_before_ = now + sweep_again;
    if (swept_up_to_.empty() && something_is_set_aside(state)) return;
    std::vector<std::string> gone;
    int looked = 0;
    auto it = library_->all().upper_bound(swept_up_to_);
    for (; it != library_->all().end(); ++it) {
        if (++looked > looked_at_once || gone.size() >= removed_at_once) break;
        swept_up_to_ = it->first;
        const bool old = now - it->second.used > seconds(limits::content_unnamed_s);
        if (old && state.contents.count(it->first) == 0 && !in_work(it->first)) gone.push_back(it->first);
    }
    if (it == library_->all().end()) swept_up_to_.clear();
    else sweep_not_before_ = now + sweep_pause;
    for (const std::string &digest : gone) {
        library_->remove(digest);
        stored.gone(digest);
    }
    if (!gone.empty())
        outside_.log(Level::info,
                     "library: " + std::to_string(gone.size()) + " contents that no grain names were removed");
}

}  // namespace dcs::turn
