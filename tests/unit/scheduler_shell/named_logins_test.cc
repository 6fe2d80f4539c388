// Logins that the host table and the policy name, and which of them are unknown.
#include <set>

#include <catch2/catch.hpp>

#include "scheduler/shell/named_logins.h"
#include "scheduler/shell/scheduler_options.h"
#include "support/about.h"

using namespace dcs;
using namespace dcs::shell;

TEST_CASE("each login is found with its line") {
    const std::vector<NamedLogin> hosts = logins_of_hosts(
        "# users=no\nclass big=1\n\nh1 slots=1 users=ann,bob accounts=ann # users=no\n"
        "h1 role=client users=uid70\n",
        "H");
    CHECK(hosts == std::vector<NamedLogin>{
                       {"H:4", "users=ann", "ann"}, {"H:4", "users=bob", "bob"}, {"H:4", "accounts=ann", "ann"}});
    const std::vector<NamedLogin> policy = logins_of_policy("fair_share on\nuser ann\n deny eve # deny bob\n", "P");
    CHECK(policy == std::vector<NamedLogin>{{"P:2", "user ann", "ann", true}, {"P:3", "deny eve", "eve"}});
    CHECK(logins_of_masters({"eve", "uid1234"}) == std::vector<NamedLogin>{{"option --master", "eve", "eve"}});
    CHECK(unknown_login_text(policy[1]) == about("P:3: deny eve knows no login eve"));
    const auto of_host = login_problems({{"H:1", "users=joe", "joe"}});
    CHECK(of_host.at(0).problem == about("users=joe knows no such login"));
    CHECK(of_host.at(0).affects == about("only for users list"));
    const auto of_root = login_problems({{"H:1", "accounts=root", "root"}});
    CHECK(of_root.at(0).problem == about("accounts=root no effect root's login"));
    CHECK(of_root.at(0).affects == about("anonymous uid"));
    CHECK(unknown_login_text({"H:1", "accounts=root", "root"}) == about("H:1: accounts=root no grain"));
    CHECK(unknown_login_text({"P:1", "deny root", "root"}) == about("P:1: deny root root may always call"));
    CHECK(login_problems({{"P:1", "deny root", "root"}}).at(0).problem ==
          about("deny root no effect root may always call"));
    const auto rows = login_problems(policy);
    REQUIRE(rows.size() == 2);
    CHECK(rows[1].entity == "login eve");
    CHECK(rows[1].file == "P:3");
    CHECK(rows[1].problem == about("deny eve no effect no such login"));
}

TEST_CASE("unknown logins are looked up after each reload, later once a minute, and not for long") {
    Instant now = Instant{} + seconds(1000);
    std::set<std::string> known = {"ann"};
    std::vector<std::string> asked;
    Duration takes{};
    UnknownLogins logins(
        [&](const std::string &login) {
            asked.push_back(login);
            now = now + takes;
            return known.count(login) != 0;
        },
        [&] { return now; });
    const auto names = [&] {
        std::string text;
        for (const NamedLogin &named : logins.look()) text += named.place + " ";
        return text;
    };
    CHECK(names().empty());
    logins.take({{"1", "", "ann"}, {"2", "", "eve"}, {"3", "", "eve"}, {"4", "", "bob"}});
    CHECK(names() == "2 3 4 ");
    CHECK(asked == std::vector<std::string>{"ann", "eve", "bob"});
    known.insert("eve");
    now = now + seconds(59);
    CHECK(names() == "2 3 4 ");
    now = now + seconds(1);
    CHECK(names() == "4 ");
    CHECK(asked == std::vector<std::string>{"ann", "eve", "bob", "eve", "bob"});
    known.insert("root");
    logins.take({{"5", "users=root", "root"}, {"6", "accounts=root", "root"}});
    for (int i = 0; i < 2; ++i, now = now + seconds(60)) CHECK(names() == "6 ");
    // One that answers late is asked for little, and not soon again.
    asked.clear();
    takes = seconds(3);
    logins.take({{"1", "", "joe"}, {"2", "", "eve"}, {"3", "", "bob"}});
    CHECK(names() == "1 ");
    CHECK(asked == std::vector<std::string>{"joe"});
    takes = Duration{};
    now = now + seconds(599);
    CHECK(names() == "1 ");
    now = now + seconds(1);
    CHECK(names() == "1 3 ");
}

TEST_CASE("a policy that lists only unknown users shuts all out, and that is what is said") {
    Instant now = Instant{} + seconds(1000);
    const auto said = [&](const char *policy) {
        UnknownLogins logins([](const std::string &login) { return login == "ann"; }, [&] { return now; });
        std::vector<NamedLogin> named = logins_of_policy(policy, "P");
        for (NamedLogin &master : logins_of_masters({"eve"})) named.push_back(std::move(master));
        logins.take(std::move(named));
        std::string text;
        for (const wire::ProblemRow &row : login_problems(logins.look())) text += row.problem + "\n";
        return text;
    };
    CHECK(said("user joe\nuser bob\n") ==
          about("user joe no login of the list user bob no login of the list eve no effect"));
    CHECK(said("user joe\nuser ann\n") == about("user joe has no effect eve"));
    CHECK(said("user joe\nuser uid70\n") == about("user joe has no effect eve"));
    CHECK(said("user joe\ndeny bob\n") == about("user joe no login of the list deny bob has no effect eve"));
}
