// The keeper: only what its table says is understood, and only what it may sign is signed.
#include "scheduler/keeper/keeper.h"

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <future>
#include <string>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process/landlock.h"
#include "scheduler/keeper/logins.h"
#include "scheduler/keeper/settings_file.h"
#include "directory.h"
#include "support/about.h"
#include "support/catch.h"
#include "support/refuse.h"

using namespace dcs;
using namespace dcs::keeper;

namespace {

constexpr std::int64_t now = 1'800'000'000;

Point point_of_new_key() { return *point_of(*pki::public_key_of(pki::new_key())); }

Request wish(Ask ask) {
    Request request;
    request.ask = ask;
    return request;
}

Request certificate_for(pki::Role role, const std::string &name, const Point &point) {
    Request request = wish(Ask::certificate);
    request.role = role;
    request.name = name;
    request.point = point;
    return request;
}

Reply ask(Keeper &keeper, const Request &request, int *fd = nullptr) {
    int given = -1;
    Reply reply = keeper.answer(to_packet(request), now, &given);
    if (fd != nullptr) *fd = given;
    else CHECK(given == -1);
    return reply;
}

}  // namespace

TEST_CASE("each request is read as it was made") {
    Request named = wish(Ask::user_name), echo = wish(Ask::echo_socket), file = wish(Ask::settings);
    Request own = wish(Ask::own_certificate), gone = wish(Ask::remove_host), login = wish(Ask::check_login);
    Request known = wish(Ask::knows_login);
    named.number = 4'000'000'000u;
    echo.number = 6;
    file.which = Settings::limits;
    own.point = point_of_new_key();
    gone.name = login.name = known.name = std::string(name_max - 1, 'n');
    for (const Request &request : {wish(Ask::authority), named, echo, file, own, gone, login, known,
                                   certificate_for(pki::Role::program, "ann/desk1/dcs", own.point)}) {
        const auto read = read_packet(to_packet(request));
        REQUIRE(read);
        CHECK(*read == request);
    }
}

TEST_CASE("a request of any other form is none") {
    const std::string good = to_packet(certificate_for(pki::Role::client, "desk1", point_of_new_key()));
    REQUIRE(read_packet(good));
    const auto with = [&](std::size_t at, char byte) {
        std::string packet = good;
        packet[at] = byte;
        return packet;
    };
    constexpr std::size_t number = 3, length = number + 4 + point_size, name = length + 4;
    CHECK_FALSE(read_packet(""));
    CHECK_FALSE(read_packet(good + '\0'));
    CHECK_FALSE(read_packet(good.substr(1)));
    for (const int kind : {0, 10, 255}) CHECK_FALSE(read_packet(with(0, static_cast<char>(kind))));
    const auto no_role = static_cast<pki::Role>(9);
    for (const pki::Role role : {pki::Role::none, pki::Role::authority, pki::Role::scheduler, no_role})
        CHECK_FALSE(read_packet(with(1, static_cast<char>(role))));
    CHECK_FALSE(read_packet(with(2, 1)));  // a file that no peer wants
    CHECK_FALSE(read_packet(with(2, 3)));
    CHECK_FALSE(read_packet(with(number, 1)));  // a number that no peer wants
    for (const char size : {0, 4, 6, 127}) CHECK_FALSE(read_packet(with(length, size)));
    CHECK_FALSE(read_packet(with(length + 3, '\xff')));
    CHECK_FALSE(read_packet(with(name + 2, '\0')));  // something after its end
    Request request = certificate_for(pki::Role::client, std::string(name_max, 'a'), point_of_new_key());
    CHECK_FALSE(read_packet(to_packet(request)));
    request = wish(Ask::authority);
    request.point[5] = 1;
    CHECK_FALSE(read_packet(to_packet(request)));
    request = wish(Ask::echo_socket);
    for (const std::uint32_t family : {0u, 5u, 10u}) {
        request.number = family;
        CHECK_FALSE(read_packet(to_packet(request)));
    }
}

TEST_CASE("only keys on P-256, in one form, have a point") {
    const std::string key = *pki::public_key_of(pki::new_key());
    REQUIRE(point_of(key));
    CHECK(public_key_of(*point_of(key)) == key);
    CHECK_FALSE(point_of(key + "x"));
    CHECK_FALSE(point_of(key.substr(0, key.size() - 1)));
    std::string other = key;
    other[20] = static_cast<char>(other[20] + 1);
    CHECK_FALSE(point_of(other));
}

TEST_CASE("it signs for hosts and programs, as long as their role has, and for one scheduler") {
    const Directory directory;
    Keeper keeper(directory.place());
    const Reply made = ask(keeper, wish(Ask::authority));
    REQUIRE(made.status);
    const auto authority = pki::read_certificate(made.bytes);
    REQUIRE(authority);
    CHECK(authority->role == pki::Role::authority);

    const Point point = point_of_new_key();
    const struct {
        pki::Role role;
        const char *name;
        std::int64_t life;
    } good[] = {{pki::Role::grain_server, "h1", pki::certificate_life_s},
                {pki::Role::client, "desk1", pki::certificate_life_s},
                {pki::Role::program, "ann/desk1/dcs", pki::program_life_s}};
    for (const auto &want : good) {
        const Reply reply = ask(keeper, certificate_for(want.role, want.name, point));
        REQUIRE(reply.status);
        const auto issued = pki::read_certificate(reply.bytes);
        REQUIRE(issued);
        CHECK(pki::verify(*issued, *authority, want.role, want.name, now));
        CHECK(issued->not_after_s == now + want.life);
        CHECK(issued->key == *pki::hash_of_public_key(public_key_of(point)));
    }
    for (const char *name : {"h1/x", ".h1", "-h1", "h 1", "h\n1", "URI:x,URI:dcs", "../h1"})
        CHECK(ask(keeper, certificate_for(pki::Role::grain_server, name, point)).status.code == Code::invalid);
    for (const char *name : {"ann", "ann/desk1", "ann//dcs", "ann/desk1/dcs/more", "ann/desk1/a b"})
        CHECK(ask(keeper, certificate_for(pki::Role::program, name, point)).status.code == Code::invalid);
    Point nowhere = point;
    nowhere[63] ^= 1;  // not on the curve
    CHECK(ask(keeper, certificate_for(pki::Role::client, "desk1", nowhere)).status.code == Code::invalid);

    Request own = wish(Ask::own_certificate);
    own.point = nowhere;
    CHECK(ask(keeper, own).status.code == Code::invalid);
    own.point = point_of_new_key();
    for (int i = 0; i < 2; ++i) {
        const Reply reply = ask(keeper, own);
        REQUIRE(reply.status);
        CHECK(pki::verify(reply.bytes, *authority, pki::Role::scheduler, "scheduler", now));
    }
    own.point = point;
    CHECK(ask(keeper, own).status.code == Code::refused);

    Keeper next(directory.place());  // the same authority, and a key of its own
    CHECK(ask(next, wish(Ask::authority)).bytes == made.bytes);
    CHECK(ask(next, own).status);
}

TEST_CASE("it opens three files, and takes lines out of one") {
    const Directory directory;
    Keeper keeper(directory.place());
    std::ofstream(directory.path + "/hosts") << "h1\nh2 slots=2\n";
    Request request = wish(Ask::settings);
    int fd = -1;
    REQUIRE(ask(keeper, request, &fd).status);
    CHECK(*read_settings(fd, "hosts", "the host table") == "h1\nh2 slots=2\n");
    request.which = Settings::policy;
    const Reply none = ask(keeper, request, &fd);
    CHECK(none.status.code == Code::not_found);
    CHECK(none.status.text.find("the policy " + directory.path + "/policy") == 0);
    CHECK(fd == -1);
    if (::geteuid() == 0) {  // when the settings are read again the rule is that of the start
        const std::string hosts = directory.path + "/hosts";
        request.which = Settings::hosts;
        REQUIRE(::chmod(hosts.c_str(), 0666) == 0);
        const Reply open_to_all = ask(keeper, request, &fd);
        CHECK(open_to_all.status.code == Code::refused);
        CHECK(open_to_all.status.text == about(hosts + " written users"));
        CHECK(fd == -1);
        REQUIRE(::chmod(hosts.c_str(), 0644) == 0);
    }
    Request gone = wish(Ask::remove_host);
    gone.name = "h1";
    REQUIRE(ask(keeper, gone).status);
    CHECK(*read_settings(directory.path + "/hosts", "the host table") == "h2 slots=2\n");
}

TEST_CASE("it knows names") {
    Keeper keeper(Place{"", "", "", "", "no-such-group"});
    Request request = wish(Ask::user_name);
    CHECK(ask(keeper, request).bytes == "root");
    request.number = 4'000'000'001u;
    const Reply nobody = ask(keeper, request);
    CHECK(nobody.status);
    CHECK(nobody.bytes.empty());
    Request login = wish(Ask::check_login);
    login.name = "no-such-login";
    CHECK(ask(keeper, login).status.code == Code::refused);
    Request known = wish(Ask::knows_login);
    known.name = "no-such-login";
    CHECK(ask(keeper, known).status.code == Code::not_found);
    known.name = "root";
    CHECK(ask(keeper, known).status);
    int fd = 0;
    const Reply odd = Keeper(Place{}).answer("odd", now, &fd);
    CHECK(odd.status.code == Code::invalid);
    CHECK(fd == -1);
}

TEST_CASE("a user database that does not answer holds up nothing else") {
    std::promise<void> go;
    const std::shared_future<void> late = go.get_future().share();
    std::atomic<int> looked{0};
    const auto slow = [&] {
        return in_time("uid 7", [&, late]() -> Result<std::string> {
            ++looked;
            late.wait();
            return std::string("ann");
        });
    };
    CHECK(slow().status().code == Code::unreachable);
    CHECK(slow().status().code == Code::unreachable);
    CHECK(looked == 1);  // the same is not looked up twice at once
    Result<std::string> root = login_of(0);
    while (!root) root = login_of(0);  // nothing has long meanwhile
    CHECK(*root == "root");
    go.set_value();
    Result<std::string> answer = slow();
    while (!answer) answer = slow();
    CHECK(*answer == "ann");
}

#if DCS_CAN_REFUSE
TEST_CASE("an error of the user database is not the absence of a login") {
    for (const int error : {EIO, EAGAIN, ETIMEDOUT}) {
        const test::Refusing refusing("getpwuid_r,getpwnam_r", error);
        REQUIRE(refusing.understood);
        CHECK(login_of(0).status().code == Code::unreachable);
        CHECK(knows_login("root").code == Code::unreachable);
        CHECK(check_login("root", "root").code == Code::unreachable);
        CHECK(refusing.happened());
    }
    const test::Refusing refusing("getpwuid_r", ENOENT);
    CHECK(login_of(0).status().code == Code::not_found);
}
#endif

TEST_CASE("a keeper changes files nowhere but beside those it is for") {
    if (landlock::version() < 2) {
        WARN("SKIPPED: this kernel has no Landlock");
        return;
    }
    Directory own, other;
    REQUIRE(::mkdir((own.path + "/pki").c_str(), 0700) == 0);
    REQUIRE(::mkdir((own.path + "/table").c_str(), 0700) == 0);
    std::ofstream(own.path + "/table/hosts") << "h1 slots=1\n";
    std::ofstream(other.path + "/hosts") << "kept\n";
    const auto may = [](const std::string &path, int flags) {
        const int fd = ::open(path.c_str(), flags | O_CLOEXEC, 0600);
        if (fd >= 0) ::close(fd);
        return fd >= 0;
    };
    const pid_t child = ::fork();
    if (child == 0) {
        const Place place{own.path + "/pki", own.path + "/table/hosts", "", "", "none"};
        const bool fenced = ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && fence_keeper(place);
        const bool good = may(place.hosts, O_RDONLY) && may(place.hosts + ".new", O_WRONLY | O_CREAT) &&
                          ::rename((place.hosts + ".new").c_str(), place.hosts.c_str()) == 0 &&
                          may(place.pki + "/authority.pem", O_WRONLY | O_CREAT) && may("/etc/passwd", O_RDONLY);
        const bool bad = may(own.path + "/file", O_WRONLY | O_CREAT) || may(other.path + "/hosts", O_WRONLY) ||
                         may(other.path + "/hosts", O_RDONLY) || may("/etc/passwd", O_WRONLY) ||
                         ::unlink((other.path + "/hosts").c_str()) == 0;
        ::_exit(!fenced ? 1 : !good ? 2 : bad ? 3 : 0);
    }
    int status = 1;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    ::unlink((own.path + "/table/hosts").c_str());
    ::rmdir((own.path + "/table").c_str());
}
