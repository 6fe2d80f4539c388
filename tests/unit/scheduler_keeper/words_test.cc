// What the keeper and the scheduler's side of it say when something is wrong, word for word.
#include "support/about.h"
#include "support/refuse.h"

#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pki/key.h"
#include "scheduler/keeper/keeper.h"
#include "scheduler/keeper/logins.h"
#include "scheduler/keeper/settings_file.h"
#include "directory.h"
#include "support/catch.h"

using namespace dcs;
using namespace dcs::keeper;

namespace {

std::string wrong(const Status &status) { return status ? "" : status.text; }
template <class T> std::string wrong(const Result<T> &result) { return wrong(result.status()); }

}  // namespace

TEST_CASE("the keeper says why it does not do something") {
    const Directory d;
    Keeper keeper(d.place());
    int fd = -1;
    const auto answer = [&](const Request &request) {
        return wrong(keeper.answer(to_packet(request), 1'800'000'000, &fd).status);
    };
    CHECK(wrong(keeper.answer("odd", 0, &fd).status) == about("keeper not request"));
    Request own;
    own.ask = Ask::own_certificate;
    own.point = *point_of(*pki::public_key_of(pki::new_key()));
    CHECK(answer(own).empty());
    own.point = *point_of(*pki::public_key_of(pki::new_key()));
    CHECK(answer(own) == about("scheduler's certificate start"));
#if DCS_CAN_REFUSE
    Request echo;
    echo.ask = Ask::echo_socket;
    echo.number = 4;
    const test::Refusing refusing("socket::EPERM");
    CHECK(answer(echo) == about("socket requests not permitted"));
    CHECK(refusing.happened());
#endif
}

TEST_CASE("the scheduler's side says what it cannot ask, and what did not come") {
    const Directory d;
    std::ofstream(d.path + "/hosts") << "h1\n";
    const auto client = KeeperClient::start(d.place());
    REQUIRE(client);
    CHECK(wrong((*client)->remove_host(std::string(name_max, 'n'))) == "the name is too long");
    CHECK(wrong((*client)->own_certificate("no key")) == about("not public P-256"));
    // Of this process: the descriptor that comes with the answer finds no place.
    rlimit before{}, none{};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
    none = before;
    const int next = ::dup(0);
    REQUIRE(next >= 0);
    ::close(next);
    none.rlim_cur = static_cast<rlim_t>(next);
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
    const auto text = (*client)->settings(Settings::hosts, d.path + "/hosts", "the host table");
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
    CHECK(wrong(text) ==
          about("keeper could not hand over " + d.path + "/hosts process no file descriptors left raise ulimit -n"));
    CHECK(*(*client)->settings(Settings::hosts, d.path + "/hosts", "the host table") == "h1\n");
}

TEST_CASE("who may not call from another host is told why") {
    CHECK(wrong(check_login("no-such-login", "")).empty());
    CHECK(wrong(check_login("root", "root")).empty());
    CHECK(wrong(check_login("no-such-login", "root")) ==
          about("no-such-login no account scheduler's host users hosts need account same login name"));
    CHECK(wrong(check_login("root", "no-such-group")) ==
          about("scheduler's host no group no-such-group members use DCS --group dcs_scheduler names"));
    CHECK(wrong(check_login("nobody", "root")) == about("nobody not DCS"));
}

TEST_CASE("a file of settings that cannot be read or written is named with the reason") {
    const Directory d;
    CHECK(wrong(read_settings(d.path, "the policy")) == about("policy " + d.path + " cannot read directory"));
    const std::string hosts = d.path + "/hosts";
    const auto write = [&](const std::string &text) { std::ofstream(hosts, std::ios::trunc) << text; };
    write("");
    REQUIRE(::truncate(hosts.c_str(), (16 << 20) + 1) == 0);
    CHECK(wrong(read_settings(hosts, "the host table")) == about("host table " + hosts + " larger 16 MiB"));
    write("h1\nh2\n");
#if DCS_CAN_REFUSE
    const struct {
        const char *orders, *why;
    } table[] = {{"open:hosts.new:EROFS", "Read-only file system"},
                 {"fchmod:hosts.new:EPERM", "Operation not permitted"},
                 {"write:hosts.new:ENOSPC", "No space left on device"},
                 {"fsync:hosts.new:EIO", "Input/output error"},
                 {"rename:hosts.new:EIO", "Input/output error"}};
    for (const auto &row : table) {
        INFO(row.orders);
        const test::Refusing refusing(row.orders);
        CHECK(wrong(remove_from_host_table(hosts, "h1")) == "cannot write " + hosts + ".new: " + row.why);
        CHECK(refusing.happened());
        CHECK(*read_settings(hosts, "the host table") == "h1\nh2\n");
    }
#endif
    CHECK(wrong(remove_from_host_table(hosts, "h1")).empty());
    CHECK(*read_settings(hosts, "the host table") == "h2\n");
}
