#pragma once
// How much of the scheduler's disk each user's sessions and contents take. It is a part of State, derived from the
// entities as they change, so that nothing is counted by looking through a disk or a session.
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/status.h"

namespace dcs::core {

// What a file of that length takes: whole blocks; an empty one is not there.
constexpr std::uint64_t on_disk(std::uint64_t length) { return (length + 4095) / 4096 * 4096; }

struct UserStored {
    std::uint64_t sessions = 0, contents = 0;  // bytes of disk
    std::uint64_t all() const { return sessions + contents; }
    bool operator==(const UserStored &) const = default;
};

// A content of the library counts once for each user who has it: by a grain that names it, or because the user
// uploaded it. Of contents from before the scheduler's start, only those that grains name have known users.
class Stored {
public:
    const std::map<std::string, UserStored> &users() const { return users_; }
    UserStored of(const std::string &user) const;
    // Free on the disk now, by what was measured last and what has come and gone since; nothing: it was never measured.
    std::optional<std::uint64_t> free_bytes() const;

    // ---- kept in step with the entities (derived.cc) ----
    void add_session(const std::string &user, std::int64_t bytes);
    void use(const std::string &user, const std::string &digest, bool in);
    // ---- facts of the disk, that no turn takes back ----
    void measured(std::uint64_t free_bytes);
    void came(const std::string &digest, std::uint64_t size);
    void brought(const std::string &digest, const std::string &user);
    void gone(const std::string &digest);
    // Does it have a user: did one upload it, or does a grain name it?
    bool is_had(const std::string &digest) const;
    // Is it this user's?
    bool has(const std::string &user, const std::string &digest) const;
    // These alone, without what entities add.
    Stored facts() const;
    bool operator==(const Stored &) const = default;

private:
    struct Content {
        std::optional<std::uint64_t> size;         // not known: named by a grain, but not in the library
        std::map<std::string, std::int64_t> uses;  // by user, how many grains name it, and 1 if the user uploaded it
        std::set<std::string> brought;
        bool operator==(const Content &) const = default;
    };
    void count(Content &content, const std::string &user, std::int64_t more);
    void charge(const std::string &user, std::int64_t sessions, std::int64_t contents);
    void tidy(const std::string &digest);

    std::map<std::string, UserStored> users_;  // only users who have something
    std::map<std::string, Content> contents_;
    std::uint64_t sessions_ = 0;  // of all users
    std::optional<std::uint64_t> free_;
    std::uint64_t sessions_then_ = 0;  // when that was measured
};

struct State;
// May the user store so much more? limit, in words, if not. The pool's rules hold for all, the share of what is
// free for those without privilege.
Status check_stored(const State &state, const std::string &user, bool privileged, std::uint64_t more);
// Is there room for the report of this user's grain? If others have something stored too, the last of the disk is
// for users below their share.
bool may_report(const State &state, const std::string &user, std::uint64_t more);

}  // namespace dcs::core
