#include <catch2/catch.hpp>

#include "base/confinement.h"

using namespace dcs;

TEST_CASE("words of confinement, there and back") {
    for (Rungs rungs = 0; rungs <= all_rungs; ++rungs) {
        const Result<Rungs> back = rungs_of(to_words(rungs));
        REQUIRE(back);
        REQUIRE(*back == rungs);
    }
    CHECK(to_words(0) == "limits");
    CHECK(to_words(rung_filter | rung_accounts) == "accounts,filter");
    CHECK(*rungs_of("no_network,accounts") == (rung_no_network | rung_accounts));
    CHECK(to_words(rung_files | 1024) == "files");
    for (const char *wrong : {"", ",", "filter,", ",filter", "filter,filter", "limits,filter", "Filter", "filter "}) {
        INFO(wrong);
        REQUIRE(rungs_of(wrong).status().code == Code::invalid);
    }
    CHECK(rungs_of("filter,moat").status().text.find("`moat`") != std::string::npos);
}
