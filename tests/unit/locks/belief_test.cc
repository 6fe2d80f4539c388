// Whom a record may name, so that a process is ended on its word.
#include "locks/kill_carefully.h"

#include <sys/stat.h>

#include "atoms.h"
#include "locks/adaptive_lock.h"
#include "scratch.h"
#include "victims.h"
#include "support/about.h"

using namespace dcs;
using namespace dcs::locks;

namespace {

constexpr uid_t stranger = 65534;

void refused(const Result<Belief> &belief, const std::string &words) {
    REQUIRE_FALSE(belief);
    INFO(belief.status().text);
    CHECK(belief.status().code == Code::refused);
    CHECK(belief.status().text == about(words));
}

}  // namespace

TEST_CASE("P41 a lock file ends no process whom its writers could not end, and no process who has not got the lock") {
    if (::geteuid() != 0) {
        WARN("SKIPPED: only root can give files away");
        return;
    }
    const scratch::Directory dir;
    LockRequest request;
    request.place.path = dir / "lock";
    const pid_t holder = scratch::holder(this_world(), request);
    REQUIRE(holder > 0);
    const victims::Counter innocent;
    const Result<LockFile> file = LockFile::look(request.place);
    REQUIRE(file);
    Owner owner = read_record(*file, nullptr).owner;
    REQUIRE(owner.process.pid == holder);
    owner.cookie = 7;
    owner.group = holder;
    Owner forged = owner;
    forged.process = *identify(innocent.pid());
    const auto belief = [&](const Owner &said, uid_t caller) { return believe(*file, holder_byte, said, caller); };
    const auto file_is = [&](uid_t uid, mode_t mode) {
        REQUIRE(::fchown(file->fd(), uid, 0) == 0);
        REQUIRE(::fchmod(file->fd(), mode) == 0);
    };

    file_is(0, 0600);  // root's word
    REQUIRE(belief(owner, 0));
    CHECK_FALSE(belief(owner, 0)->only);
    CHECK(belief(owner, 0)->owner.cookie == 7);
    refused(belief(forged, 0), "process not hold lock");
    CHECK(kill_believed(this_world(), *file, holder_byte, forged, {}).result == Killed::not_permitted);
    file_is(stranger, 0600);  // a user's word about a process of root
    for (const Owner &said : {owner, forged}) refused(belief(said, 0), "does not run as uid 65534");
    file_is(stranger, 0660);
    refused(belief(owner, 0), "it belongs to uid 65534 and others may write it");
    file_is(0, 0666);  // each process's word: about the caller's own processes that have the lock
    REQUIRE(belief(owner, 0));
    CHECK(belief(owner, 0)->only == uid_t{0});
    CHECK(belief(owner, 0)->owner.process == owner.process);
    CHECK(belief(owner, 0)->owner.cookie == 0);
    CHECK(belief(owner, 0)->owner.group == 0);
    refused(belief(forged, 0), "does not hold this lock");
    // Nor is it believed that a process has held the lock since before it began.
    const std::int64_t now = this_world().now().boot, long_ago = 1;
    CHECK(believe(*file, holder_byte, owner, 0, now));
    refused(believe(*file, holder_byte, owner, 0, long_ago), "held the lock for longer than that process runs");
    CHECK(kill_believed(this_world(), *file, holder_byte, owner, {}, now - long_ago).result == Killed::not_permitted);
    file_is(0, 0600);
    CHECK(believe(*file, holder_byte, owner, 0, long_ago));
    file_is(0, 0666);
    refused(belief(owner, stranger), "not uid 65534 others write file");
    Owner helped = forged;  // by one that has the lock, as `--keep=leader` leaves it
    helped.supervisor = owner.process;
    REQUIRE(belief(helped, 0));
    CHECK(belief(helped, 0)->owner.process.pid == 0);
    CHECK(belief(helped, 0)->owner.supervisor == owner.process);
    file_is(0, 0600);
    REQUIRE(::link((dir / "lock").c_str(), (dir / "other").c_str()) == 0);
    refused(belief(owner, 0), "it has 2 hard links");
    REQUIRE(::unlink((dir / "other").c_str()) == 0);
    scratch::end(holder);
    CHECK(belief(owner, 0));  // what it left behind carries the marks that root wrote
    file_is(0, 0666);
    refused(belief(owner, 0), "does not hold this lock");
    CHECK(innocent.signals() == 0);
}

TEST_CASE("P41 a waiter is sent home on the word of those who could do so, and if it waits") {
    if (::geteuid() != 0) {
        WARN("SKIPPED: only root can give files away");
        return;
    }
    const scratch::Directory dir;
    Place place;
    place.path = dir / "lock";
    const Result<LockFile> file = LockFile::open(place, FileKind::atom, 0600);
    REQUIRE(file);
    const ProcessIdentity self = own_identity();
    const std::int64_t byte = ticket_byte + 3;
    CHECK(believe_waiter(*file, byte, self, 0).code == Code::refused);
    REQUIRE(*file->lock(byte, 1, false, Deadline::none()));
    CHECK(believe_waiter(*file, byte, self, 0));
    REQUIRE(::fchown(file->fd(), stranger, 0) == 0);
    CHECK(believe_waiter(*file, byte, self, 0).code == Code::refused);
}
