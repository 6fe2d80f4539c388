// The C calls and a scheduler that may be of another release.
#include "client/call.h"
#include "c_calls.h"
#include "support/about.h"

using namespace dcs;
using namespace dcs::test;

TEST_CASE("a scheduler of release 0.1 is spoken to in its form, and what it does not know is an error") {
    FakeScheduler fake;
    fake.be_old();
    get_auth();
    REQUIRE(d_open_ses(3) == NO_ERROR);
    REQUIRE(d_gexec(3, 17, words, nullptr, "input", 5, 64, 1, 2) == NO_ERROR);
    CHECK(fake.all<wire::Gexec>().at(0).second.spec.demands.thrash == 64);
    CHECK(fake.forms() == std::set<wire::Form>{wire::positional_form});
    const auto connections = fake.connections();
    const auto refused = client::converse(client::default_pool(), wire::ApproveHost{"h1", "words", 1}, {});
    REQUIRE(!refused);
    CHECK(refused.status().code == Code::invalid);
    CHECK(refused.status().text == about("cannot not ApproveHost"));
    CHECK(fake.all<wire::ApproveHost>().empty());
    CHECK(client::converse(client::default_pool(), wire::ApproveHost{"h1", "words", 0}, {}));
    CHECK(fake.connections() == connections);  // the one that there was serves on
}

TEST_CASE("a scheduler of this release is spoken to in the newest form after the Hello") {
    FakeScheduler fake;
    get_auth();
    REQUIRE(d_open_ses(3) == NO_ERROR);
    CHECK(fake.forms() == std::set<wire::Form>{wire::opening_form, wire::newest_form});
    for (const auto &[request, hello] : fake.all<wire::Hello>()) CHECK(request == wire::offer_of(wire::our_forms));
}
