// The policy's file, and both files read again together.
#include "scheduler/shell/policy_file.h"
#include "scheduler/shell/scheduler_options.h"
#include "support/about.h"
#include "support/catch.h"

using namespace dcs;

TEST_CASE("a policy says what it says") {
    const auto policy = shell::parse_policy(
        "# of this pool\n"
        "fair_share on   # users in turn\n"
        "sessions_per_user 20\n"
        "\tgrains_per_user\t100000\r\n"
        "running_per_user 64\n"
        "stored_mb_per_user 5000\n"
        "stored_share 40\n"
        "\n"
        "probation 3\n"
        "token_age 1:30:00\n"
        "session_age 30d\n"
        "user ann\nuser bob\ndeny eve",
        "policy");
    REQUIRE(policy);
    core::Policy expected;
    expected.fair_share = true;
    expected.sessions_per_user = 20;
    expected.grains_per_user = 100000;
    expected.running_per_user = 64;
    expected.stored_mb_per_user = 5000;
    expected.stored_share = 40;
    expected.probation = 3;
    expected.token_age_s = 5400;
    expected.session_age_s = 30 * 24 * 3600;
    expected.users = {"ann", "bob"};
    expected.denied = {"eve"};
    CHECK(*policy == expected);
    CHECK(*shell::parse_policy("", "policy") == core::Policy{});
    CHECK(*shell::parse_policy("fair_share off\nprobation 0\n", "policy") == core::Policy{});
}

TEST_CASE("an error in the policy names file and line, a missing file is the default policy") {
    const std::vector<std::pair<std::string, std::string>> wrong = {
        {"fair_share", "policy:1 `fair_share` exactly"},
        {"fair_share on off", "policy:1 `fair_share` exactly"},
        {"fair_share yes", "policy:1: fair_share must be on or off"},
        {"\n\nfair_share on\nfair_share on", "policy:4: `fair_share` occurs twice"},
        {"probation -1", "policy:1 probation number"},
        {"probation 1x", "policy:1 probation number"},
        {"probation 99999999999", "policy:1 probation number"},
        {"stored_share 101", "policy:1 stored_share percentage"},
        {"stored_share -1", "policy:1 stored_share percentage"},
        {"stored_mb_per_user much", "policy:1 stored_mb_per_user number"},
        {"grains_per_user", "policy:1 `grains_per_user` exactly"},
        {"token_age 59", "policy:1 token_age 24h"},
        {"token_age -1", "policy:1 token_age 24h"},
        {"session_age 0", "policy:1 session_age 24h"},
        {"token_age never", "policy:1 token_age 24h"},
        {"user a/b", "policy:1 user login"},
        {"deny a/b", "policy:1 deny login"},
        {"deny ann\ndeny ann", "policy:2: `deny ann` occurs twice"},
        {"user ann bob", "policy:1 `user` exactly"},
        {"user ann\nuser ann", "policy:2: `user ann` occurs twice"},
        {"users ann", "policy:1: unknown rule `users`"},
        {"resource licence", "policy:1 `resource` name amount"},
        {"resource Licence 5", "policy:1 `resource` name amount"},
        {"resource licence [0]", "policy:1 `resource` name amount"},
        {"resource licence 5\nresource licence 5", "policy:2 licence occurs twice"},
        {"fair_share=on", "policy:1: unknown rule `fair_share=on`"},
    };
    for (const auto &[text, expected] : wrong) {
        INFO(text);
        const auto policy = shell::parse_policy(text, "policy");
        REQUIRE_FALSE(policy);
        CHECK(policy.status().code == Code::invalid);
        INFO(policy.status().text);
        CHECK(policy.status().text == about(expected));
    }
}

TEST_CASE("of missing files only the host table is needed, and what is no file is wrong") {
    std::vector<Status> why;
    const std::string none = "/nonexistent/file";
    const shell::SettingsFiles files = shell::read_settings_files({none, none, none}, why);
    REQUIRE(why.size() == 1);
    CHECK(why[0].code == Code::not_found);
    CHECK(files.policy == core::Policy{});
    CHECK(files.limits == turn::UserLimits{});
    (void)shell::read_settings_files({none, "/", "/"}, why);
    REQUIRE(why.size() == 4);
    CHECK(why[2].code == Code::io_error);
    CHECK(why[3].code == Code::io_error);
}
