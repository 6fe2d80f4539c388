#include "scheduler/record/scrub.h"

#include <algorithm>

#include "base/checksum.h"
#include "scheduler/record/paths.h"
#include "scheduler/record/read_blob.h"
#include "scheduler/record/templates.h"
#include "wire/event_log.h"

namespace dcs::record {
namespace {

constexpr int parts = 5;
constexpr std::uint64_t window_bytes = 256 * 1024;
// Looking at a grain costs something even if it holds nothing.
constexpr std::uint64_t grain_cost = 128;

// In the place of a grain's number: the session's own event log.
constexpr GrainNumber event_log = -1;

// All of it at once: it is short beside what grains hold, and a frame may begin anywhere.
std::string wrong_events(store::Store &store, const SessionKey &key, const core::SessionInfo &info) {
    const std::string path = session_directory(key) + "/" + events_file;
    std::string rest;
    for (std::uint64_t at = 0; at < info.events_length;) {
        auto piece = read_events(store, key, info, at, window_bytes);
        if (!piece) return piece.status().text;
        at += piece->size();
        rest += *piece;
        std::string_view left = rest;
        std::vector<wire::Event> events;
        if (Status s = wire::take_events(left, events); !s) return path + ": " + s.text;
        rest = std::string(left);
    }
    return rest.empty() ? std::string() : path + ": it ends inside a frame";
}

}  // namespace

// The grain behind at_; its session may have changed or gone meanwhile.
void Scrub::next_grain(const core::State &state) {
    part_ = 0;
    reading_.reset();
    auto session = state.sessions.begin();
    if (at_) {
        session = state.sessions.lower_bound(at_->session);
        if (session != state.sessions.end() && session->first == at_->session) {
            const auto grain = session->second.grains.upper_bound(at_->grain);
            if (grain != session->second.grains.end()) {
                at_->grain = grain->first;
                return;
            }
            ++session;
        }
    }
    if (session == state.sessions.end())
        at_.reset();
    else
        at_ = GrainKey{session->first, event_log};
}

// One part, or as much of it as `bytes` allow. Returns what it cost.
std::uint64_t Scrub::look_at_part(store::Store &store, const core::Grain &grain,
                                  std::uint64_t bytes) {
    const Place place = place_of(*at_, grain, static_cast<Part>(part_));
    // Anew if it changed since the last step.
    if (!reading_ || reading_->place.path != place.path || reading_->place.length != place.length ||
        reading_->place.sum != place.sum)
        reading_ = Reading{place, 0, 0};
    const std::uint64_t length = std::min(place.length - reading_->at, std::max(bytes, window_bytes));
    std::string wrong;
    if (length > 0) {
        auto piece = ahead_.read(store, place, reading_->at, length);
        if (!piece)
            wrong = piece.status().text;
        else
            reading_->sum = crc32c(*piece, reading_->sum);
        reading_->at += length;
    }
    if (wrong.empty() && reading_->at == place.length && reading_->sum != place.sum)
        wrong = place.path + ": its checksum is wrong";
    if (!wrong.empty()) {
        found_[*at_] = wrong;
        damaged_ = true;
    }
    if (!wrong.empty() || reading_->at == place.length) {
        ++part_;
        reading_.reset();
    }
    return length;
}

bool Scrub::step(store::Store &store, const core::State &state, std::uint64_t bytes) {
    if (!at_) next_grain(state);
    ahead_.forget();  // it may be out of date by now
    std::uint64_t spent = 0;
    while (at_ && spent < bytes) {
        const core::Grain *grain = state.grain(*at_);
        const core::Session *session = at_->grain == event_log ? state.session(at_->session) : nullptr;
        if (session) {
            const std::string wrong = wrong_events(store, at_->session, session->info);
            if (!wrong.empty()) found_[*at_] = wrong;
            damaged_ = !wrong.empty();
            spent += session->info.events_length;
        }
        if (grain && part_ < parts) {
            spent += look_at_part(store, *grain, bytes - spent);
            continue;
        }
        if (!damaged_) found_.erase(*at_);  // restored since the last time
        damaged_ = false;
        next_grain(state);
        spent += grain_cost;
    }
    return at_.has_value();
}

}  // namespace dcs::record
