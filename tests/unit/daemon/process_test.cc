// Signals, readiness, names of peers.
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <poll.h>
#include <pwd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/trusted_path.h"
#include "daemon/peer_name.h"
#include "daemon/service.h"
#include "support/catch.h"

using namespace dcs;

TEST_CASE("signals come through a descriptor, and a broken pipe kills no party") {
    // In a process of its own: the mask and the dispositions stay for life.
    pid_t child = ::fork();
    if (child == 0) {
        std::signal(SIGHUP, SIG_IGN);  // as under nohup
        Result<Signals> signals = Signals::open();
        if (!signals) ::_exit(1);
        pollfd waiting = {signals->fd(), POLLIN, 0};
        if (::poll(&waiting, 1, 0) != 0 || signals->next() != 0) ::_exit(2);
        for (int signal : {SIGTERM, SIGINT, SIGHUP}) {
            ::kill(::getpid(), signal);
            if (::poll(&waiting, 1, 5000) != 1) ::_exit(3);
            if (signals->next() != signal) ::_exit(4);
        }
        if (signals->next() != 0) ::_exit(5);
        int fds[2];
        if (::pipe(fds) != 0) ::_exit(6);
        ::close(fds[0]);
        if (::write(fds[1], "x", 1) != -1 || errno != EPIPE) ::_exit(7);
        ::_exit(0);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    CHECK(status == 0);
}

TEST_CASE("ready is written once and the descriptor closed") {
    int fds[2];
    REQUIRE(::pipe(fds) == 0);
    CHECK(tell_ready(fds[1]));
    char text[32];
    CHECK(::read(fds[0], text, sizeof text) == 6);
    CHECK(std::memcmp(text, "ready\n", 6) == 0);
    CHECK(::read(fds[0], text, sizeof text) == 0);  // its end: no party has the other side open
    ::close(fds[0]);
    CHECK(tell_ready(-1));
    Status closed = tell_ready(999);
    CHECK_FALSE(closed);
}

TEST_CASE("the service manager is told by path and by abstract name") {
    const std::string pid = std::to_string(::getpid());
    for (std::string name : {"/tmp/dcs_notify_" + pid, "@dcs_notify_" + pid}) {
        INFO(name);
        sockaddr_un address = {};
        address.sun_family = AF_UNIX;
        std::memcpy(address.sun_path, name.data(), name.size());
        socklen_t size = offsetof(sockaddr_un, sun_path) + name.size();
        if (name[0] == '@') address.sun_path[0] = '\0';
        int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        REQUIRE(::bind(fd, reinterpret_cast<sockaddr *>(&address), size) == 0);
        ::setenv("NOTIFY_SOCKET", name.c_str(), 1);
        auto manager = ServiceManager::from_environment();
        REQUIRE(manager);
        CHECK(std::getenv("NOTIFY_SOCKET") == nullptr);  // not for what the daemon starts
        manager->tell("READY=1");
        char text[32];
        CHECK(::recv(fd, text, sizeof text, MSG_DONTWAIT) == 7);
        CHECK(std::memcmp(text, "READY=1", 7) == 0);
        ::close(fd);
        if (name[0] == '/') ::unlink(name.c_str());
        manager->tell("STOPPING=1");  // gone: a line of the log, not a hang
        ::setenv("NOTIFY_SOCKET", name.c_str(), 1);
        CHECK_FALSE(ServiceManager::from_environment());
    }
    for (const std::string &bad : {std::string("relative"), "/" + std::string(200, 'x')}) {
        ::setenv("NOTIFY_SOCKET", bad.c_str(), 1);
        CHECK_FALSE(ServiceManager::from_environment());
    }
    const auto none = ServiceManager::from_environment();  // the variable was taken out each time
    REQUIRE(none);
    none->tell("READY=1");
}

TEST_CASE("peers have login names, or numbers") {
    CHECK(usable_login_name("ann", 5));
    CHECK(usable_login_name("a.b_c-D9", 5));
    CHECK(usable_login_name("uid5", 5));
    CHECK_FALSE(usable_login_name("uid7", 5));
    CHECK(usable_login_name("uid", 5));
    CHECK(usable_login_name("uid7x", 5));
    for (const char *bad : {"", "-x", ".x", "..", "a/b", "a b", "a\n", "Gr\xc3\xbc\xc3\x9f"})
        CHECK_FALSE(usable_login_name(bad, 5));
    CHECK_FALSE(usable_login_name(std::string(65, 'a'), 5));
}

TEST_CASE("a user is a login: who has none may not call, and what the tables said is asked again") {
    std::map<std::uint32_t, KnownPeer> tables = {
        {5, {"ann", {}}}, {6, {"bob", fail(Code::refused, "bob is no member")}}, {7, {"a b", {}}}};
    int asked = 0;
    bool silent = false, partly = false;
    PeerNames names([&](std::uint32_t uid) -> Result<KnownPeer> {
        ++asked;
        if (silent) return fail(Code::unreachable, "no answer");
        if (partly) return fail(Code::not_found, "one of two has no answer");
        return tables[uid];
    });
    Instant now = Instant{} + seconds(1000);
    CHECK(*names.of(5, false, now) == "ann");
    CHECK(*names.of(7, false, now) == "uid7");  // a login that cannot name a session's owner
    CHECK(names.of(6, false, now).status().text == "bob is no member");
    CHECK(names.of(300001, false, now).status().code == Code::refused);
    CHECK(names.of(300001, false, now).status().text.find("no login name") != std::string::npos);
    CHECK(*names.of(300001, true, now) == "uid300001");  // the pool's own account
    CHECK(asked == 4);
    // The uid is another person's now, and bob has become a member.
    tables[5].login = "eve";
    tables[6].may_call = Status::ok();
    CHECK(*names.of(5, false, now + seconds(59)) == "ann");
    CHECK(*names.of(5, false, now + seconds(60)) == "eve");
    CHECK(*names.of(6, false, now + seconds(5)) == "bob");
    tables[5].login = "dan";
    names.forget();
    CHECK(*names.of(5, false, now + seconds(61)) == "dan");
    // When the tables cannot be asked, nothing has changed.
    silent = true;
    tables[5].login = "eve";
    CHECK(*names.of(5, false, now + seconds(130)) == "dan");
    CHECK(names.of(8, false, now + seconds(130)).status().code == Code::unreachable);
    CHECK(names.of(300001, true, now + seconds(130)).status().code == Code::unreachable);
    const int before = asked;
    CHECK(names.of(8, false, now + seconds(134)).status().code == Code::unreachable);  // not asked for each call
    CHECK(asked == before);
    names.forget();
    CHECK(*names.of(5, false, now + seconds(135)) == "dan");
    silent = false;
    CHECK(*names.of(5, false, now + seconds(194)) == "dan");
    CHECK(*names.of(5, false, now + seconds(195)) == "eve");
    CHECK(*names.of(7, false, now + seconds(195)) == "uid7");  // was known, and was not asked about
    // A part of the tables does not answer: known users stay, others have no login.
    partly = true;
    CHECK(*names.of(5, false, now + seconds(300)) == "eve");
    CHECK(names.of(300001, false, now + seconds(300)).status().code == Code::refused);
    // What was bad is not kept for it.
    partly = false;
    silent = true;
    CHECK(names.of(300001, false, now + seconds(306)).status().code == Code::unreachable);
}

TEST_CASE("root's daemons believe only what no other party could exchange") {
    if (::geteuid() != 0) {
        WARN("SKIPPED: this is about root");
        return;
    }
    char text[] = "/tmp/dcs-trusted-XXXXXX";
    REQUIRE(::mkdtemp(text) != nullptr);
    const std::string base = text;
    REQUIRE(::mkdir((base + "/a").c_str(), 0755) == 0);
    REQUIRE(::mkdir((base + "/a/b").c_str(), 0700) == 0);
    const auto refused = [](const std::string &path, const std::string &what) {
        const Status s = trusted_path(path);
        INFO(s.text);
        CHECK(s.code == Code::refused);
        CHECK(s.text.find(what) != std::string::npos);
    };
    CHECK(trusted_path(base + "/a/b"));
    CHECK(trusted_path(base + "/a/b/not/yet"));
    CHECK(trusted_path(base + "/a/./../a/b/"));
    REQUIRE(::chmod((base + "/a").c_str(), 0777) == 0);
    refused(base + "/a/b", base + "/a can be written by other users");
    REQUIRE(::chmod((base + "/a").c_str(), 01777) == 0);  // as /tmp
    CHECK(trusted_path(base + "/a/b"));
    REQUIRE(::chown((base + "/a/b").c_str(), 1002, 0) == 0);
    refused(base + "/a/b", base + "/a/b belongs to uid 1002");
    REQUIRE(::chown((base + "/a/b").c_str(), 0, 0) == 0);
    REQUIRE(::symlink("a/b", (base + "/link").c_str()) == 0);
    CHECK(trusted_path(base + "/link"));
    REQUIRE(::lchown((base + "/link").c_str(), 1002, 0) == 0);
    refused(base + "/link", base + "/link belongs to uid 1002");
    REQUIRE(::symlink((base + "/a/loop").c_str(), (base + "/a/loop").c_str()) == 0);
    CHECK(trusted_path(base + "/a/loop").code == Code::invalid);
    // A list of rights that lets uid 1002 write, in a directory of root's group.
    REQUIRE(::chmod((base + "/a").c_str(), 0755) == 0);
    ByteWriter list;
    list.u32(2);
    const auto entry = [&](std::uint16_t tag, std::uint16_t rights, std::uint32_t id) {
        list.u16(tag), list.u16(rights), list.u32(id);
    };
    entry(1, 7, ~0u), entry(2, 7, 1002), entry(4, 5, ~0u), entry(16, 7, ~0u), entry(32, 5, ~0u);
    const std::string &rights = list.bytes();
    if (::setxattr((base + "/a").c_str(), "system.posix_acl_access", rights.data(), rights.size(), 0) == 0)
        refused(base + "/a/b", base + "/a can be written by other users");
    for (const char *name : {"/a/loop", "/link", "/a/b", "/a", ""}) (void)::remove((base + name).c_str());
}

TEST_CASE("root acts as the first account on the way to a directory that is not root's") {
    if (::geteuid() != 0) {
        CHECK(*account_of_path("/") == ::geteuid());
        WARN("SKIPPED: this is about root");
        return;
    }
    char text[] = "/tmp/dcs-account-XXXXXX";
    REQUIRE(::mkdtemp(text) != nullptr);
    const std::string base = text, a = base + "/a", b = a + "/b", c = b + "/c", link = base + "/link";
    for (const std::string &path : {a, b, c}) REQUIRE(::mkdir(path.c_str(), 0755) == 0);
    REQUIRE(::symlink("a/b", link.c_str()) == 0);
    const auto account = [](const std::string &path) { return account_of_path(path); };
    CHECK(*account(c) == 0);
    CHECK(*account(link + "/c") == 0);
    CHECK(account(c + "/none").status().code == Code::not_found);
    // Who owns the directory in the middle chooses what lies below it; who owns a link, what it names.
    REQUIRE(::chown(b.c_str(), 1002, 1002) == 0);
    CHECK(*account(c) == 1002);
    CHECK(*account(c + "/none") == 1002);
    REQUIRE(::lchown(link.c_str(), 1003, 1003) == 0);
    CHECK(*account(link + "/c") == 1003);
    REQUIRE(::chown(b.c_str(), 0, 0) == 0);
    CHECK(*account(link + "/c") == 1003);
    for (const mode_t mode : {0777, 0775, 01777}) {
        REQUIRE(::chown(b.c_str(), 0, 1002) == 0);
        REQUIRE(::chmod(b.c_str(), mode) == 0);
        const bool sticky = (mode & 01000) != 0;
        CHECK(account(b).status().code == Code::refused);
        CHECK(account(b).status().text.find(b + " can be written by other users") != std::string::npos);
        CHECK(account(c).status().code == (sticky ? Code::ok : Code::refused));
        REQUIRE(::chown(c.c_str(), 1004, 1004) == 0);
        CHECK(*account(c) == 1004);
        REQUIRE(::chown(c.c_str(), 0, 0) == 0);
    }
    for (const std::string &path : {link, c, b, a, base}) (void)::remove(path.c_str());
}
