#include "scheduler/record/scrub.h"

#include <algorithm>

#include "base/bytes.h"
#include "scheduler/record/paths.h"
#include "wire/event_log.h"

namespace dcs::record {
namespace {

constexpr int parts = 5;
constexpr std::uint64_t window_bytes = 256 * 1024;
// Looking at a grain costs something even if it holds nothing.
constexpr std::uint64_t grain_cost = 128;

// In the place of a grain's number: the session's own event log.
constexpr GrainNumber event_log = -1;

}  // namespace

// The grain behind at_; its session may have changed or gone in the meantime.
void Scrub::next_grain(const core::State &state) {
    part_ = 0;
    reading_.reset();
    log_.reset();
    log_done_ = false;
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
    if (session == state.sessions.end()) at_.reset();
    else at_ = GrainKey{session->first, event_log};
}

// It is checked; not empty: it is damaged.
void Scrub::done(int part, const Place &place, const std::string &wrong) {
    if (!wrong.empty()) {
        found_[*at_][part] = {place, wrong};
    } else if (const auto it = found_.find(*at_); it != found_.end()) {
        it->second.erase(part);
        if (it->second.empty()) found_.erase(it);
    }
}

// One part, or as much of it as `bytes` allow. Returns what it cost.
std::uint64_t Scrub::look_at_part(store::Store &store, const core::Grain &grain, std::uint64_t bytes) {
    const Place place = place_of(*at_, grain, static_cast<Part>(part_));
    // Again from the start if it changed since the last step.
    if (!reading_ || reading_->place.path != place.path || reading_->place.length != place.length ||
        reading_->place.sum != place.sum)
        reading_ = Reading{place, 0, 0};
    const std::uint64_t length = std::min(place.length - reading_->at, std::max(bytes, window_bytes));
    std::string wrong;
    if (length > 0) {
        auto piece = ahead_.read(store, place, reading_->at, length);
        if (!piece) wrong = piece.status().text;
        else reading_->sum = crc32c(*piece, reading_->sum);
        reading_->at += length;
    }
    if (wrong.empty() && reading_->at == place.length && reading_->sum != place.sum)
        wrong = place.path + ": its checksum is wrong";
    if (!wrong.empty() || reading_->at == place.length) {
        done(part_, place, wrong);
        ++part_;
        reading_.reset();
    }
    return length;
}

// As much of it as `bytes` allow; a frame is checked when it is complete. Returns what it cost.
std::uint64_t Scrub::look_at_log(store::Store &store, const core::SessionInfo &info, std::uint64_t bytes) {
    const std::string path = session_directory(at_->session) + "/" + events_file;
    const bool begun_now = !log_;
    if (!log_ || log_->at > info.events_length) log_ = Log{0, {}, log_ && log_->again};
    std::string wrong;
    std::uint64_t spent = 0;
    while (wrong.empty() && log_->at < info.events_length && spent < std::max(bytes, window_bytes)) {
        auto piece = read_events(store, at_->session, info, log_->at, window_bytes);
        if (!piece) {
            wrong = piece.status().text;
            break;
        }
        log_->at += piece->size();
        spent += piece->size();
        log_->rest += *piece;
        wire::EventCursor cursor(log_->rest);
        for (wire::Event event; cursor.next(event);) continue;
        if (!cursor.status()) wrong = path + ": " + cursor.status().text;
        log_->rest.erase(0, log_->rest.size() - cursor.left().size());
    }
    const bool through = log_->at >= info.events_length;
    if (wrong.empty() && through && !log_->rest.empty()) wrong = path + ": it ends inside a frame";
    if (!wrong.empty() && !begun_now && !log_->again) {
        log_ = Log{0, {}, true};
        return spent;
    }
    log_done_ = through || !wrong.empty();
    if (log_done_) done(event_log, {path}, wrong);
    return spent;
}

bool Scrub::step(store::Store &store, const core::State &state, std::uint64_t bytes) {
    if (!at_) next_grain(state);
    ahead_.forget();  // it may be out of date by now
    std::uint64_t spent = 0;
    while (at_ && spent < bytes) {
        const core::Grain *grain = state.grain(*at_);
        const core::Session *session = at_->grain == event_log ? state.session(at_->session) : nullptr;
        if (session && !log_done_) {
            spent += look_at_log(store, session->info, bytes - spent);
            continue;
        }
        if (grain && part_ < parts) {
            spent += look_at_part(store, *grain, bytes - spent);
            continue;
        }
        next_grain(state);
        spent += grain_cost;
    }
    return at_.has_value();
}

void Scrub::look_again(store::Store &store, const core::State &state) {
    std::uint64_t left = window_bytes * 4;
    for (auto &entry : found_) {
        const GrainKey &key = entry.first;
        Damages &damages = entry.second;
        const core::Grain *grain = state.grain(key);
        if (key.grain == event_log ? !state.session(key.session) : !grain) damages.clear();
        std::erase_if(damages, [&](const auto &one) {
            if (!grain) return false;
            const Place place = place_of(key, *grain, static_cast<Part>(one.first));
            if (place != one.second.place) return true;
            if (place.length > left) return false;
            left -= place.length;
            return bool(check_all(store, place));
        });
    }
    std::erase_if(found_, [](const auto &entry) { return entry.second.empty(); });
}

}  // namespace dcs::record
