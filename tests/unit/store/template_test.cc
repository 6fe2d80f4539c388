#include "store/tree_template.h"

#include "store/names.h"
#include "support/catch.h"

namespace dcs::store {
namespace {

NodeTemplate pair_of(const char *name, Action action = Action::replace) { return {name, Shape::pair, action, ""}; }
NodeTemplate single(const char *name, Action action, const char *root_of = "") {
    return {name, Shape::singleton, action, root_of};
}
TreeTemplate tree(const char *name, std::vector<NodeTemplate> nodes) {
    return {name, {std::move(nodes)}, pair_of("status")};
}

bool refused(const Forest &forest, const char *why) {
    const Status status = check_forest(forest);
    INFO(status.text);
    return !status && status.text.find(why) != std::string::npos;
}

}  // namespace

TEST_CASE("a template finds its own nodes and its root") {
    const TreeTemplate t =
        tree("grain", {pair_of("out", Action::append), single("peer", Action::information, "session")});
    REQUIRE(t.find("out"));
    CHECK(t.find("out")->action == Action::append);
    CHECK(t.find("status") == &t.root);
    CHECK(t.find("peer") == nullptr);  // another tree's file
    CHECK(t.find("err") == nullptr);
}

TEST_CASE("a sound forest passes") {
    CHECK(check_forest({}));
    CHECK(check_forest({tree("grain", {pair_of("out", Action::append), single("initial", Action::rename),
                                       single("note", Action::discard)}),
                        tree("session", {single("status", Action::information, "grain")}),
                        tree("auth", {single("status", Action::information, "session"),
                                      single("status", Action::information, "grain")})}));
}

TEST_CASE("what is wrong with a forest is said") {
    CHECK(refused({tree("a", {pair_of("x"), pair_of("x")})}, "twice"));
    CHECK(refused({tree("a", {pair_of("status")})}, "twice"));
    CHECK(refused({tree("a", {}), tree("a", {})}, "two update trees"));
    CHECK(refused({tree("a", {pair_of("x.tmp")})}, "file name"));
    CHECK(refused({tree("a", {pair_of("x/y")})}, "file name"));
    CHECK(refused({tree("a", {pair_of("DAMAGED")})}, "file name"));
    CHECK(refused({tree("a", {pair_of("x", Action::rename)})}, "pairs"));
    CHECK(refused({tree("a", {single("x", Action::replace)})}, "pairs"));
    CHECK(refused({tree("a", {single("x", Action::information, "b")})}, "no tree"));
    CHECK(refused({tree("a", {NodeTemplate{"x", Shape::pair, Action::replace, "a"}})}, "information"));
    CHECK(refused({TreeTemplate{"a", {}, pair_of("status", Action::append)}}, "root"));
    CHECK(refused({TreeTemplate{"", {}, pair_of("status")}}, "without a name"));
}

TEST_CASE("circles of references are found, long ones too") {
    CHECK(refused({tree("a", {single("s", Action::information, "a")})}, "cycle"));
    CHECK(
        refused({tree("a", {single("s", Action::information, "b")}), tree("b", {single("s", Action::information, "c")}),
                 tree("c", {single("s", Action::information, "a")}), tree("d", {})},
                "cycle"));
}

TEST_CASE("names of turns sort as their numbers do, and are recognised exactly") {
    CHECK(root_name(9) < root_name(10));
    CHECK(root_name(999999999999ull) < root_name(18446744073709551615ull));
    std::uint64_t turn = 0;
    CHECK(parse_root_name("00000000000000000042.commit", turn));
    CHECK(turn == 42);
    CHECK(parse_root_name(root_name(18446744073709551615ull).substr(6), turn));
    CHECK(turn == 18446744073709551615ull);
    CHECK_FALSE(parse_root_name("42.commit", turn));
    CHECK_FALSE(parse_root_name("00000000000000000042.tmp", turn));
    CHECK_FALSE(parse_root_name("99999999999999999999.commit", turn));  // more than 64 bits
    CHECK_FALSE(parse_root_name("0000000000000000004x.commit", turn));
    CHECK_FALSE(parse_root_name("00000000000000000042.lost", turn));
    CHECK(parse_lost_name("00000000000000000043.lost", turn));
    CHECK(turn == 43);
    CHECK(turn_of_temporary(big_temporary("a/b", "params", 44)) == 44);
    CHECK(turn_of_temporary("00000000000000000045.tmp") == 45);
    CHECK(turn_of_temporary("status.new") == 0);
    CHECK(turn_of_temporary("x.tmp") == 0);
}

TEST_CASE("paths") {
    CHECK(valid_path("a"));
    CHECK(valid_path("a/b/c.d"));
    for (const char *bad : {"", "/a", "a/", "a//b", ".", "..", "a/../b", "a/.", "./a"}) CHECK_FALSE(valid_path(bad));
    CHECK_FALSE(valid_path(std::string_view("a\0b", 3)));
    CHECK_FALSE(valid_path(std::string(256, 'a')));
    CHECK_FALSE(valid_tree_directory("turns/x"));
    CHECK_FALSE(valid_tree_directory("reserve"));
    CHECK_FALSE(valid_tree_directory("library/ab"));
    CHECK(valid_tree_directory("sessions/ann/3"));
    CHECK(is_below("a/b", "a"));
    CHECK(is_below("a", "a"));
    CHECK_FALSE(is_below("ab", "a"));
    CHECK(parent_of("a/b/c") == "a/b");
    CHECK(parent_of("a") == "");
}

}  // namespace dcs::store
