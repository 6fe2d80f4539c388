#include "scheduler/state/stored.h"

#include "base/require.h"

namespace dcs::core {
namespace {

std::uint64_t moved(std::uint64_t from, std::int64_t by) {
    DCS_REQUIRE(by >= 0 || from >= static_cast<std::uint64_t>(-by), "more is taken from a user than is stored");
    return from + static_cast<std::uint64_t>(by);
}

}  // namespace

UserStored Stored::of(const std::string &user) const {
    const auto found = users_.find(user);
    return found == users_.end() ? UserStored() : found->second;
}

std::optional<std::uint64_t> Stored::free_bytes() const {
    if (!free_ || sessions_ <= sessions_then_) return free_;  // what has gone may not be free yet
    const std::uint64_t since = sessions_ - sessions_then_;
    return *free_ > since ? *free_ - since : 0;
}

void Stored::charge(const std::string &user, std::int64_t sessions, std::int64_t contents) {
    if (sessions == 0 && contents == 0) return;
    UserStored &has = users_[user];
    has.sessions = moved(has.sessions, sessions);
    has.contents = moved(has.contents, contents);
    sessions_ = moved(sessions_, sessions);
    if (has == UserStored()) users_.erase(user);
}

bool Stored::is_had(const std::string &digest) const {
    const auto found = contents_.find(digest);
    return found != contents_.end() && !found->second.uses.empty();
}

bool Stored::has(const std::string &user, const std::string &digest) const {
    const auto found = contents_.find(digest);
    return found != contents_.end() && found->second.uses.count(user) != 0;
}

void Stored::add_session(const std::string &user, std::int64_t bytes) { charge(user, bytes, 0); }

void Stored::count(Content &content, const std::string &user, std::int64_t more) {
    std::int64_t &uses = content.uses[user];
    const bool had = uses > 0;
    uses += more;
    const bool has = uses > 0;
    if (uses == 0) content.uses.erase(user);
    if (had == has || !content.size) return;
    const auto bytes = static_cast<std::int64_t>(on_disk(*content.size));
    charge(user, 0, has ? bytes : -bytes);
}

// A content without users that the library does not keep is forgotten.
void Stored::tidy(const std::string &digest) {
    const auto found = contents_.find(digest);
    if (found != contents_.end() && !found->second.size && found->second.uses.empty()) contents_.erase(found);
}

void Stored::use(const std::string &user, const std::string &digest, bool in) {
    count(contents_[digest], user, in ? 1 : -1);
    tidy(digest);
}

void Stored::measured(std::uint64_t free_bytes) {
    free_ = free_bytes;
    sessions_then_ = sessions_;
}

void Stored::came(const std::string &digest, std::uint64_t size) {
    Content &content = contents_[digest];
    if (content.size) return;
    content.size = size;
    for (const auto &[user, uses] : content.uses) charge(user, 0, static_cast<std::int64_t>(on_disk(size)));
}

void Stored::brought(const std::string &digest, const std::string &user) {
    Content &content = contents_[digest];
    if (content.brought.insert(user).second) count(content, user, 1);
}

void Stored::gone(const std::string &digest) {
    const auto found = contents_.find(digest);
    if (found == contents_.end()) return;
    Content &content = found->second;
    for (const std::string &user : content.brought) count(content, user, -1);
    content.brought.clear();
    if (content.size)
        for (const auto &[user, uses] : content.uses)
            charge(user, 0, -static_cast<std::int64_t>(on_disk(*content.size)));
    content.size.reset();
    tidy(digest);
}

Stored Stored::facts() const {
    Stored only;
    only.free_ = free_;
    only.sessions_then_ = sessions_then_;
    for (const auto &[digest, content] : contents_) {
        if (content.size) only.came(digest, *content.size);
        for (const std::string &user : content.brought) only.brought(digest, user);
    }
    return only;
}

}  // namespace dcs::core
