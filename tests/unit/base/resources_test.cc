// Named resources as text, and which indices a grain gets.
#include "base/resources.h"

#include "base/limits.h"
#include "support/about.h"
#include "support/catch.h"

using namespace dcs;

namespace {

std::string wrong_demand(const std::string &text) {
    const auto amounts = amounts_of(text);
    return amounts ? "" : amounts.status().text;
}
std::string wrong_offer(const std::string &text) {
    const auto offers = offers_of(text);
    return offers ? "" : offers.status().text;
}

std::string many(std::size_t count) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i) text += (i == 0 ? "r" : ",r") + std::to_string(i) + "=1";
    return text;
}

}  // namespace

TEST_CASE("resources: a demand has names with amounts, in any order, and one text") {
    CHECK(amounts_of("")->empty());
    CHECK(*amounts_of("scratch_gb=20,gpu=1") == Amounts{{"gpu", 1}, {"scratch_gb", 20}});
    CHECK(resource_text(*amounts_of("scratch_gb=20,gpu=1")) == "gpu=1,scratch_gb=20");
    for (const char *bad : {"gpu", "gpu=", "gpu=0", "gpu=-1", "gpu=1,", ",gpu=1", "gpu=1,gpu=2", "GPU=1", "1gpu=1",
                            "gpu=[0]", "gpu=1.5", "gpu=2147483648", "gpu =1", "=1", "gpu=1,,cpu=1"}) {
        CAPTURE(bad);
        CHECK(!wrong_demand(bad).empty());
    }
    CHECK(wrong_demand("gpu") == about("gpu NAME=AMOUNT"));
    CHECK(wrong_demand(many(limits::grain_resources)).empty());
    CHECK(!wrong_demand(many(limits::grain_resources + 1)).empty());
    CHECK(wrong_demand(std::string(limits::resource_name, 'a') + "=1").empty());
    CHECK(!wrong_demand(std::string(limits::resource_name + 1, 'a') + "=1").empty());
}

TEST_CASE("resources: an offer has amounts or indices") {
    const Offers offers = *offers_of("scratch_gb=200,gpu=[7,0-2],none=0");
    CHECK(resource_text(offers) == "gpu=[0,1,2,7],none=0,scratch_gb=200");
    CHECK(offers.at("gpu").amount == 4);
    CHECK(*offers_of(resource_text(offers)) == offers);
    for (const char *bad : {"gpu=[]", "gpu=[0,0]", "gpu=[1-0]", "gpu=[0", "gpu=[a]", "gpu=[0-]", "gpu=[-1]", "gpu=[0]x",
                            "gpu=[65536]", "gpu=[0-1024]", "gpu=[0],gpu=1", "gpu=[0,1"}) {
        CAPTURE(bad);
        CHECK(!wrong_offer(bad).empty());
    }
    CHECK(wrong_offer("gpu=[0-1023]").empty());
    CHECK(wrong_offer(many(limits::host_resources)).empty());
    CHECK(!wrong_offer(many(limits::host_resources + 1)).empty());
    std::string longest;
    for (std::size_t i = 0; i < limits::host_resources; ++i)
        longest += (i == 0 ? "" : ",") + std::string(limits::resource_name - 2, 'a') + std::to_string(10 + i) +
                   "=[64512-65535]";
    REQUIRE(offers_of(longest));
    CHECK(resource_text(*offers_of(longest)).size() <= limits::offer_bytes);
    CHECK(std::string(limits::resource_name, 'a').size() + 1 + std::to_string(INT32_MAX).size() + 1 <=
          limits::demand_bytes / limits::grain_resources);
}

TEST_CASE("resources: a grain gets the lowest indices that no other one has") {
    const Offers offers = *offers_of("gpu=[0,1,4,7],fpga=[0]");
    const Indices first{{"gpu", {0, 4}}}, second{{"gpu", {1}}, {"fpga", {0}}};
    CHECK(*choose_indices({{"gpu", 2}, {"scratch_gb", 5}}, offers, {}) == Indices{{"gpu", {0, 1}}});
    CHECK(*choose_indices({{"gpu", 2}}, offers, {&first}) == Indices{{"gpu", {1, 7}}});
    CHECK(*choose_indices({{"gpu", 1}}, offers, {&first, &second}) == Indices{{"gpu", {7}}});
    CHECK(choose_indices({{"gpu", 2}}, offers, {&first, &second}).status().code == Code::limit);
    CHECK(choose_indices({{"fpga", 1}}, offers, {&second}).status().code == Code::limit);
}

TEST_CASE("resources: a grain has all that it demands, or an error") {
    const Indices first{{"gpu", {0}}};
    const GivenResources given = *given_of("gpu=1,scratch_gb=5", "gpu=[0,1]", {&first});
    CHECK(given.amounts == Amounts{{"gpu", 1}, {"scratch_gb", 5}});
    CHECK(given.indices == Indices{{"gpu", {1}}});
    CHECK(given_of("gpu=2", "gpu=[0,1]", {&first}).status().code == Code::limit);
    CHECK(given_of("gpu", "gpu=[0,1]", {}).status().code == Code::invalid);
    CHECK(given_of("gpu=1", "gpu=[0", {}).status().code == Code::invalid);
}

TEST_CASE("resources: the environment names indices and amounts") {
    const Indices indices{{"gpu", {0, 2}}};
    const GivenResources given{{{"gpu", 2}, {"scratch_gb", 20}}, indices}, counted{{{"gpu", 2}}, {}};
    CHECK(resource_environment(given) ==
          std::vector<std::string>{"DCS_RESOURCE_GPU=0,2", "CUDA_VISIBLE_DEVICES=0,2", "DCS_RESOURCE_SCRATCH_GB=20"});
    CHECK(resource_environment(counted) == std::vector<std::string>{"DCS_RESOURCE_GPU=2"});
    CHECK(is_resource_variable("DCS_RESOURCE_X=1", counted));
    CHECK(is_resource_variable("CUDA_VISIBLE_DEVICES=3", given));
    CHECK(!is_resource_variable("CUDA_VISIBLE_DEVICES=3", counted));
    CHECK(!is_resource_variable("DCS_DIR=x", given));
}
