// The page about scheduling shows both settings files: what is there is read as it says.
#include <fstream>
#include <sstream>

#include "places.h"
#include "scheduler/shell/host_table_file.h"
#include "scheduler/shell/policy_file.h"
#include "support/catch.h"

using namespace dcs;
using namespace dcs::shell;

namespace {
std::string block(const std::string &kind) {
    std::ifstream file(DCS_SOURCE_DIR "/docs/SCHEDULING.md");
    std::stringstream text;
    text << file.rdbuf();
    const std::string page = text.str(), fence = "```" + kind + "\n";
    const auto begin = page.find(fence);
    REQUIRE(begin != std::string::npos);
    const auto from = begin + fence.size();
    return page.substr(from, page.find("```", from) - from);
}
}  // namespace

TEST_CASE("the host table of the page about scheduling is one") {
    const auto hosts = parse_host_table(block("hosts"), "page");
    REQUIRE(hosts);
    REQUIRE(hosts->size() == 7);  // with two names of classes
    CHECK(((*hosts)[3].pilot && !(*hosts)[2].pilot));
    CHECK(resource_text((*hosts)[4].resources) == "gpu=[0,1,2,3],scratch_gb=200");
    CHECK((*hosts)[1].host_class == 3);
    CHECK((*hosts)[2].time_zone_offset == -60);
    CHECK((*hosts)[0].extended == seconds(7200));
    CHECK((*hosts)[1].cores == 8);
    CHECK((*hosts)[1].memory_mb == 16384);
    CHECK((*hosts)[1].users == std::vector<std::string>{"ann", "bob"});
    CHECK((*hosts)[1].accounts == std::vector<std::string>{"ann"});
    CHECK((*hosts)[2].check == std::vector<std::string>{"h3:22"});
    CHECK((*hosts)[2].file_server == std::vector<std::string>{"nfs1:2049"});
    CHECK((*hosts)[2].gateway == std::vector<std::string>{"gw1"});
}

TEST_CASE("the policy of the page about scheduling is one") {
    const auto policy = parse_policy(block("policy"), "page");
    REQUIRE(policy);
    CHECK(policy->fair_share);
    CHECK(policy->sessions_per_user == 20);
    CHECK(policy->grains_per_user == 100000);
    CHECK(policy->running_per_user == 64);
    CHECK(policy->stored_mb_per_user == 5000);
    CHECK(policy->stored_share == 50);
    CHECK(policy->probation == 3);
    CHECK(policy->resources == Amounts{{"licence", 5}});
    CHECK(policy->users == std::vector<std::string>{"ann", "bob"});
}
