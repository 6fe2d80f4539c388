#include "commands/dcs/query/selector.h"

#include "support/about.h"
#include "support/catch.h"

using namespace dcs;
using namespace dcs::commands;
using Which = SessionSelector::Which;

TEST_CASE("session selectors") {
    auto s = session_selector("7");
    REQUIRE(s);
    CHECK(s->which == Which::number);
    CHECK(s->number == 7);
    CHECK(s->user.empty());

    s = session_selector("ann/12");
    REQUIRE(s);
    CHECK(s->user == "ann");
    CHECK(s->number == 12);

    s = session_selector("last");
    REQUIRE(s);
    CHECK(s->which == Which::last);

    s = session_selector("all");
    REQUIRE(s);
    CHECK(s->which == Which::all);
    CHECK(s->of_all_users);

    s = session_selector("done");
    REQUIRE(s);
    CHECK(s->done);
    CHECK_FALSE(s->of_all_users);

    s = session_selector("ann/all");
    REQUIRE(s);
    CHECK(s->which == Which::all);
    CHECK_FALSE(s->of_all_users);
    CHECK(s->user == "ann");

    s = session_selector("2147483647");
    REQUIRE(s);
    CHECK(s->number == 2147483647);
}

TEST_CASE("what is no session selector is refused") {
    for (const char *text :
         {"", "x", "-1", "+1", "2147483648", "7x", " 7", "/7", "ann/", "ann/x", "0x7", "7.0", "last1"}) {
        CAPTURE(text);
        auto s = session_selector(text);
        CHECK_FALSE(s);
        CHECK(s.status().code == Code::invalid);
        CHECK(s.status().text == about("`" + std::string(text) + "` not name session write NUM last all USER/"));
    }
}

TEST_CASE("a range of sessions is refused with words that name them") {
    const std::pair<const char *, const char *> cases[] = {
        {"4-8", " here $(seq 4 8)"}, {"1,3", " here 1 3"}, {"1,4-6,9", " here 1 $(seq 4 6) 9"}};
    for (const auto &[text, words] : cases) {
        const auto s = session_selector(text);
        REQUIRE_FALSE(s);
        CHECK(s.status().text.ends_with(words));
        CHECK(s.status().text == about("`" + std::string(text) + "` not name session no ranges"));
    }
    for (const char *text : {"4-", "-4", "4-x", "4-5-6", "-"})
        CHECK(session_selector(text).status().text == about("write NUM last all"));
}

TEST_CASE("grain selectors") {
    auto g = grain_selector("7:12", false);
    REQUIRE(g);
    CHECK(g->session.number == 7);
    CHECK(g->one());
    CHECK(g->has(12));
    CHECK_FALSE(g->has(11));
    CHECK_FALSE(g->has(13));

    g = grain_selector("ann/7:1-20", false);
    REQUIRE(g);
    CHECK(g->session.user == "ann");
    CHECK_FALSE(g->one());
    CHECK_FALSE(g->has(0));
    CHECK(g->has(1));
    CHECK(g->has(20));
    CHECK_FALSE(g->has(21));

    g = grain_selector("last:1,5-7,9", false);
    REQUIRE(g);
    CHECK(g->session.which == Which::last);
    std::string had;
    for (int i = 0; i <= 10; ++i)
        if (g->has(i)) had += std::to_string(i);
    CHECK(had == "15679");

    g = grain_selector("7:all", false);
    REQUIRE(g);
    CHECK(g->ranges.empty());
    CHECK(g->has(2147483647));

    g = grain_selector("7", true);
    REQUIRE(g);
    CHECK(g->ranges.empty());
    CHECK(g->session.number == 7);
}

TEST_CASE("what is no grain selector is refused") {
    for (const char *text : {"x:y", "7:", ":7", "7:-1", "7:5-", "7:9-8", "7:1,", "7:,1", "7:1-2-3", "7:0x1", "all:1",
                             "7:2147483648", ""}) {
        CAPTURE(text);
        CHECK_FALSE(grain_selector(text, true));
        CHECK_FALSE(grain_selector(text, false));
    }
    CHECK_FALSE(grain_selector("7", false));
    CHECK(grain_selector("x:y", true).status().text.find("x:y") != std::string::npos);
}
