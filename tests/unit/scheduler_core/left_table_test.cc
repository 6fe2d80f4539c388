// A host that has left the table while its grain server runs.
#include "pool.h"
#include "support/about.h"

using namespace dcs;
using namespace dcs::core;

TEST_CASE("the doctor names a grain server that calls although its host has left the table") {
    Pool pool;
    pool.add_host("h1");
    pool.add_host("h2");
    pool.table();
    pool.first_call("h1");
    pool.first_call("h2");
    const Program ann = pool.stranger("ann");
    const auto problems = [&] {
        pool.call(ann, wire::Doctor{});
        const auto *reply = std::get_if<ReplyDoctor>(&pool.effects.back());
        REQUIRE(reply);
        return reply->problems;
    };
    pool.hosts.pop_back();
    pool.table();
    CHECK(problems().empty());  // it may have been taken away
    const auto calls = [&](const Certified &certified = {}) {
        ServerFirstCall call;
        call.certified = certified;
        call.conn = ConnId{78};
        call.call = std::make_shared<const wire::FirstCall>(wire::FirstCall{.host = "h2"});
        call.address = "10.0.0.8";
        pool.feed(std::move(call));
    };
    calls();
    REQUIRE(problems().size() == 1);
    CHECK(problems()[0].entity == "host h2");
    CHECK(problems()[0].problem == about("not in the host table grain server at 10.0.0.8 calls 0 s ago refused add"));
    CHECK(problems()[0].advice == about("put its line back dcs reload dcs up --local N or stop that grain server"));
    pool.state.trust.removed[TokenHash{1}] = INT64_MAX;  // dcs host rm
    calls({"h2", TokenHash{1}});
    REQUIRE(problems().size() == 1);
    CHECK(problems()[0].problem == about("refused certificate h2 revoked"));
    CHECK(problems()[0].advice == about("put its line back dcs reload join again --new-key or stop that grain server"));
    pool.now = pool.now + seconds(61);
    for (const wire::ProblemRow &row : problems()) CHECK(row.entity != "host h2");
    calls();
    pool.add_host("h2");
    pool.table();
    pool.first_call("h2");
    for (const wire::ProblemRow &row : problems()) CHECK(row.entity != "host h2");
}
