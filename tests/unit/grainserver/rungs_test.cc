// The options of a host's owner for confinement.
#include "grainserver/shell/rungs.h"
#include "support/catch.h"

using namespace dcs;

TEST_CASE("what the owner says about confinement, against what there is") {
    using server::RungOptions;
    files::Available all;
    all.rungs = all_rungs;
    const auto rungs = [](const RungOptions &o, const files::Available &host) {
        const Result<Rungs> r = server::rungs_for(o, host);
        return r ? to_words(*r) : r.status().text;
    };
    CHECK(rungs({}, all) == "accounts,filter,scope");
    CHECK(rungs({"limits"}, all) == "accounts");
    CHECK(rungs({"filter"}, all) == "accounts,filter");
    CHECK(rungs({"scope"}, all) == "accounts,filter,scope");
    CHECK(rungs({"files"}, all) == "accounts,filter,scope,files");
    CHECK(rungs({"namespaces", false}, all) == to_words(all_rungs));
    CHECK(rungs({"auto", false}, all) == "accounts,filter,scope,no_network");
    files::Available less;
    less.rungs = rung_filter | rung_no_network;
    less.lacks = {{rung_accounts, "one"}, {rung_scope | rung_files, "two"}, {rung_namespaces, "three"}};
    CHECK(rungs({}, less) == "filter");
    CHECK(rungs({"limits"}, less) == "limits");
    CHECK(rungs({"files"}, less).find("by scope,files: two. ") != std::string::npos);
    CHECK(rungs({"namespaces"}, less).find("two; three") != std::string::npos);
    files::Available nothing;
    nothing.lacks = {{rung_filter | rung_no_network, "none"}};
    CHECK(rungs({"auto", false}, nothing).find("by no_network: none") != std::string::npos);
    CHECK(server::check(RungOptions{"auto"}));
    CHECK_FALSE(server::check(RungOptions{"moat"}));
    CHECK_FALSE(server::check(RungOptions{"files", true, {"relative"}}));
}
