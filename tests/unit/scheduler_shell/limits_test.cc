// The file of the limits of each user.
#include "scheduler/shell/policy_file.h"
#include "support/catch.h"

using namespace dcs;

TEST_CASE("limits say what they say, and what they do not say stays") {
    const auto limits =
        shell::parse_limits("connections 20  # of each\nqueued_requests 100\nbytes_per_turn 5000\n", "limits");
    REQUIRE(limits);
    turn::UserLimits expected;
    expected.connections = 20;
    expected.queued_requests = 100;
    expected.bytes_per_turn = 5000;
    CHECK(*limits == expected);
    CHECK(*shell::parse_limits("", "limits") == turn::UserLimits{});
}

TEST_CASE("a wrong limit names file, line and what is allowed") {
    const auto wrong = [](const char *text, const char *words) {
        const auto limits = shell::parse_limits(text, "limits");
        REQUIRE_FALSE(limits);
        CHECK(limits.status().code == Code::invalid);
        CHECK(limits.status().text.find(words) != std::string::npos);
    };
    wrong("connections 20\nconnection 3\n", "limits:2: unknown limit `connection`");
    wrong("connections 0", "limits:1: connections must be a number from 1 to 512");
    wrong("connections 513", "from 1 to 512");
    wrong("connections", "must be a number");
    wrong("connections 5 6", "must be a number");
    wrong("queued_bytes 1000", "queued_bytes must be a number from 17891328");
    wrong("connections 5\nconnections 6", "occurs twice");
}
