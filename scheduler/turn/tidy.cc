// What the scheduler does when it is idle.
#include <algorithm>
#include <utility>

#include "scheduler/core/decisions.h"
#include "scheduler/turn/payload.h"
#include "scheduler/turn/turn.h"

namespace dcs::turn {
namespace {

// How much is examined without a pause, and the pauses: a background load of a few per cent.
constexpr std::uint64_t scrub_bytes = 1u << 20;
constexpr Duration scrub_pause = milliseconds(25);
constexpr Duration scrub_again = seconds(24 * 3600);
constexpr Duration old_pause = milliseconds(100), old_again = seconds(60);

// What is left of the grain's own tree; reads are checked against the recorded sums.
Result<core::PackedGrain> read_packed(store::Store &store, const GrainKey &key, const core::Grain &grain) {
    core::PackedGrain packed{.number = key.grain};
    if (grain.params_own_file) {
        auto params = record::read_params(store, key, grain);
        if (!params) return params.status();
        packed.params = payload_of(std::move(*params));
    }
    const auto read = [&](wire::Stream stream, core::Payload &to) {
        auto bytes = record::read_piece(store, key, grain, stream, 0, limits::packed_grain_bytes);
        if (bytes) to = payload_of(std::move(*bytes));
        return bytes.status();
    };
    Status status = read(wire::Stream::out, packed.out);
    if (status) status = read(wire::Stream::err, packed.err);
    if (status) status = read(wire::Stream::checkpoint, packed.checkpoint);
    if (status) status = read(wire::Stream::message, packed.message);
    if (!status) return status;
    return packed;
}

std::uint64_t size_of(const core::PackedGrain &p) {
    return p.params.size() + p.out.size() + p.err.size() + p.checkpoint.size() + p.message.size();
}

}  // namespace

Instant Turn::tidy_wakeup() const {
    if (phase_ != Phase::open) return Instant::never();
    const auto open = [this](const SessionKey &key) { return stuck_.count(key) == 0; };
    const bool packs = std::any_of(state_.unpacked.begin(), state_.unpacked.end(), open);
    Instant wakeup = std::min(scrub_not_before_, contents_.sweep_wakeup());
    if (packs) wakeup = std::min(wakeup, pack_not_before_);
    if (hosts_stale_) wakeup = std::min(wakeup, hosts_not_before_);
    if (state_.policy.session_age_s > 0) wakeup = std::min(wakeup, old_not_before_);
    return wakeup;
}

void Turn::tidy() {
    if (phase_ != Phase::open || !intake_.empty()) return;
    now_ = outside_.now();
    if (now_ >= pack_not_before_ && pack_some()) return;
    if (state_.policy.session_age_s > 0 && now_ >= old_not_before_ && remove_old()) return;
    if (hosts_stale_ && now_ >= hosts_not_before_) return start_commit(store::Room::ordinary);
    if (now_ >= contents_.sweep_wakeup()) contents_.sweep(state_, state_.stored);
    if (now_ >= scrub_not_before_) scrub_some();
}

// One turn's worth, of as many sessions as there is room for; true if there was any.
bool Turn::pack_some() {
    std::size_t grains = 0;
    std::uint64_t bytes = 0;
    for (const SessionKey &session : state_.unpacked) {
        if (stuck_.count(session) != 0) continue;
        DCS_REQUIRE(state_.session(session), "a session that is not there has nothing to pack");
        outside_.working_on(session);
        core::PackGrains batch{session, {}};
        for (const GrainNumber number : state_.session(session)->packable) {
            const GrainKey key{session, number};
            if (unpackable_.count(key) != 0) continue;
            DCS_REQUIRE(state_.grain(key), "a grain that is not there is not packed");
            auto packed = read_packed(store_, key, *state_.grain(key));
            if (!packed) {
                unpackable_.insert(key);
                outside_.log(Level::error, "grain " + to_text(key) + " cannot be packed: " + packed.status().text);
                continue;
            }
            bytes += size_of(*packed);
            batch.grains.push_back(std::move(*packed));
            if (++grains >= limits::packed_at_once || bytes >= limits::packed_bytes_at_once) break;
        }
        if (batch.grains.empty()) {
            stuck_.insert(session);  // until the next start, perhaps with the files restored
            continue;
        }
        outside_.log(Level::info, "session " + to_text(session) + ": " + std::to_string(batch.grains.size()) +
                                      " grains moved into its packed files");
        delayed_.emplace(now_, std::move(batch));
        if (grains >= limits::packed_at_once || bytes >= limits::packed_bytes_at_once) break;
    }
    if (grains > 0) run();
    return grains > 0;
}

bool Turn::trusts_ages(std::int64_t wall_ms) {
    const AgeClock::Verdict verdict = age_clock_.judge(now_, wall_ms);
    const Instant told = age_told_;
    if (verdict == AgeClock::Verdict::trusted) return true;
    age_told_ = age_clock_.trusted_from();
    if (age_told_ == told) return false;
    if (verdict == AgeClock::Verdict::jumped)
        outside_.log(Level::warning,
                     "the clock of this host was put forward by about " +
                         std::to_string(age_clock_.jump_ms() / (std::int64_t{24} * 3600 * 1000)) +
                         " days, or no session began or ended for so long: none is removed for the policy's "
                         "session_age in the next 24 hours; correct the clock if it is wrong");
    if (const auto row = core::held_back(state_, age_clock_.held_ms(), age_told_ - now_))
        outside_.log(Level::warning, row->entity + " " + row->problem + ": " + row->advice);
    return false;
}

// One of them; true if there was one.
bool Turn::remove_old() {
    const std::int64_t wall_ms = outside_.wall_ms();
    if (!trusts_ages(wall_ms)) {
        old_not_before_ = now_ + old_again;
        return false;
    }
    const auto old = std::find_if(state_.sessions.lower_bound(old_from_), state_.sessions.end(),
                                  [&](const auto &entry) { return core::is_old(state_, entry.second, wall_ms); });
    const bool found = old != state_.sessions.end();
    old_from_ = found ? old->first : SessionKey();
    old_not_before_ = now_ + (found ? old_pause : old_again);
    if (found) delayed_.emplace(now_, core::RemoveOld{old->first, wall_ms});
    if (found) run();
    return found;
}

void Turn::scrub_some() {
    const bool more = scrub_.step(store_, state_, scrub_bytes);
    scrub_not_before_ = now_ + (more ? scrub_pause : scrub_again);
    for (const auto &[key, damages] : scrub_.found()) {
        const bool of_session = key.grain < 0;  // its event log
        if ((of_session ? !state_.session(key.session) : !state_.grain(key)) || !reported_.insert(key).second) continue;
        const std::string what_of =
            of_session ? "the event log of session " + to_text(key.session) : "grain " + to_text(key);
        outside_.log(Level::error, what_of + " is damaged: " + damages.begin()->second.why);
    }
}

}  // namespace dcs::turn
