#include "locks/files/session_claims.h"

#include "locks/files/lock_search.h"

namespace dcs::locks {
namespace {

constexpr std::int64_t sessions_byte = std::int64_t{1} << 40;  // of session 0; below guard_byte
constexpr std::int64_t door_byte = sessions_byte - 1;

std::int64_t byte_of(int session) { return sessions_byte + session; }

}  // namespace

Result<SessionClaims> SessionClaims::open(const Place &place) {
    auto file = LockFile::open(place, FileKind::atom);
    if (!file) return file.status();
    return SessionClaims(std::move(*file));
}

Result<SessionClaims> SessionClaims::open_in(const std::string &directory) {
    Place place{.path = directory + "/maps.lock", .atom = Atom{"dcs-map", directory, ""}, .named = false};
    return open(place);
}

Result<SessionClaims> SessionClaims::open_for(const std::string &pool) {
    const auto place = place_of(Atom{"dcs-map", pool, ""}, ".lock");
    if (!place) return place.status();
    return open(*place);
}

Result<bool> SessionClaims::enter(const Deadline &until) const { return file_.lock(door_byte, 1, false, until); }

void SessionClaims::leave() const { file_.unlock(door_byte, 1); }

Result<bool> SessionClaims::take(int session, const Deadline &until) const {
    return file_.lock(byte_of(session), 1, false, until);
}

pid_t SessionClaims::holder(int session) const {
    if (file_.first_locked(byte_of(session), 1) < 0) return 0;
    const std::vector<pid_t> found = processes_with_lock(file_, byte_of(session));
    return found.empty() ? -1 : found.front();
}

}  // namespace dcs::locks
