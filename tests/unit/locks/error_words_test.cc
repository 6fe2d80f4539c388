// The errors of a program that calls the lock library wrongly: to the letter.
#include <functional>
#include <string>
#include <vector>

#include "dcs_lock.h"
#include "locks/files/atom.h"
#include "scratch.h"
#include "support/about.h"
#include "support/catch.h"

namespace {

struct Case {
    std::string text;
    std::function<int()> call;
};

void check(const std::vector<Case> &cases) {
    for (const Case &c : cases) {
        INFO(c.text);
        CHECK(c.call() == D_LOCK_FAILED);
        CHECK(std::string(d_lock_errortext()) == about(c.text));
    }
}

Case request(const std::string &text, std::function<void(d_lock_request &)> spoil) {
    return {text, [spoil] {
                d_lock_request wish;
                d_lock_init(&wish);
                wish.operator_ = "words";
                spoil(wish);
                d_lock *lock = nullptr;
                const int reason = d_lock_get(&wish, nullptr, &lock);
                if (lock != nullptr) d_lock_release(lock, 1);
                return reason;
            }};
}

// The directory in which locks lie, for a while.
class LockDirectory {
public:
    explicit LockDirectory(const std::string &path) {
        if (const char *before = std::getenv("DCS_LOCK_DIR")) before_ = before;
        ::setenv("DCS_LOCK_DIR", path.c_str(), 1);
    }
    LockDirectory(const LockDirectory &) = delete;
    ~LockDirectory() {
        if (before_.empty()) ::unsetenv("DCS_LOCK_DIR");
        else ::setenv("DCS_LOCK_DIR", before_.c_str(), 1);
    }

private:
    std::string before_;
};

}  // namespace

TEST_CASE("lock calls that are wrong say what is missing") {
    const scratch::Directory directory;
    const LockDirectory locks(directory.path());
    static const char *const none[] = {nullptr}, *const twice[] = {"total", "total"}, *const one[] = {"total"};
    static const int limits[] = {1, 1}, zero[] = {0}, negative[] = {-1};
    static d_slots *slots = nullptr;
    static std::size_t count = 0;
    static const std::string long_name(16385, 'x');
    const std::string total = dcs::locks::place_of(std::string("total"), ".slots")->path;
    check({
        {"d_lock_get needs request", [] { return d_lock_get(nullptr, nullptr, nullptr); }},
        {"no lock release", [] { return d_lock_release(nullptr, 1); }},
        {"no lock adopt", [] { return d_lock_adopt(nullptr); }},
        {"d_lock_look needs operator", [] { return d_lock_look("x", nullptr, nullptr, nullptr); }},
        {"no GetLock release", [] { return ReleaseCurrentLock(); }},
        {"d_slot_take needs pointer", [] { return d_slot_take(one, limits, 1, 0, nullptr, nullptr); }},
        {"no limit was named", [] { return d_slot_take(one, limits, 0, 0, nullptr, &slots); }},
        {"name limit missing", [] { return d_slot_take(none, limits, 1, 0, nullptr, &slots); }},
        {"the limit " + total + " was named twice", [] { return d_slot_take(twice, limits, 2, 0, nullptr, &slots); }},
        {"no slots are permitted at " + total + " (its limit is 0)",
         [] { return d_slot_take(one, zero, 1, 0, nullptr, &slots) == D_LOCK_GRANTED ? 0 : D_LOCK_FAILED; }},
        {"limit -1 slots " + total + " must 0 65536", [] { return d_slot_take(one, negative, 1, 0, nullptr, &slots); }},
        {"no slots release", [] { return d_slot_release(nullptr); }},
        {"d_slot_list needs holders", [] { return d_slot_list(nullptr, nullptr, 0, &count); }},
        request("lock needs operator path", [](auto &r) { r.operator_ = nullptr; }),
        request("path lock '/'", [](auto &r) { r.path = "word"; }),
        request("instances operator not", [](auto &r) { r.operator_ = nullptr, r.path = "/tmp/x", r.instances = 1; }),
        request("name lock empty", [](auto &r) { r.operator_ = ""; }),
        request("operator longer 16384", [](auto &r) { r.operator_ = long_name.c_str(); }),
        request("operand longer 16384", [](auto &r) { r.operand = long_name.c_str(); }),
        request("ifelapsed expireafter cannot", [](auto &r) { r.if_elapsed = -5; }),
        request("expireafter nothing never", [](auto &r) { r.expire_after = 0; }),
    });
    CHECK(dcs::locks::encoded_name({std::string("a\0b", 3), "", ""}).status().text == about("operator holds NUL"));
}

TEST_CASE("a lock directory that cannot be used says why and what to set") {
    const scratch::Directory directory;
    const std::string below = directory / "a/b/c/d";
    const auto get = [] {
        d_lock *lock = nullptr;
        return d_lock_enter("words", 0, &lock);
    };
    const LockDirectory none(below);
    check({{"cannot create lock directory " + below + " DCS_LOCK_DIR No such file", get}});
    const LockDirectory relative("here");
    check({{"lock directory here not absolute DCS_LOCK_DIR", get}});
}
