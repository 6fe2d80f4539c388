// Names of masks of host classes.
#include "base/host_classes.h"

#include "base/limits.h"
#include "base/option_table.h"
#include "support/about.h"
#include "support/catch.h"

using namespace dcs;

namespace {
const HostClasses known = {{"gpu", 0x4}, {"fast", 0x2}, {"either", 0x6}, {"top", 0x80000000}};

std::string why(const char *words) {
    const auto mask = mask_of(words, known);
    return mask ? "" : mask.status().text;
}
}  // namespace

TEST_CASE("host classes: names and masks become one mask") {
    CHECK(*mask_of("gpu", known) == 4);
    CHECK(*mask_of("gpu,fast", known) == 6);
    CHECK(*mask_of("gpu,0x8,1", known) == 13);
    CHECK(*mask_of("top,either", known) == 0x80000006);
    CHECK(*mask_of("0", known) == 0);
    CHECK(*mask_of("0xffffffff", {}) == 0xffffffff);
}

TEST_CASE("host classes: an unknown name is told with the nearest one") {
    CHECK(mask_of("gpuu", known).status().code == Code::not_found);
    CHECK(why("gpuu") == about("no host class gpuu"));
    CHECK(why("fast,zebra") == about("no class zebra"));
    for (const char *words : {"", "gpu,", ",gpu", "gpu fast", "0x100000000", "-1", "4x", "any"}) {
        CAPTURE(words);
        CHECK(mask_of(words, known).status().code == Code::invalid);
    }
}

TEST_CASE("host classes: a mask is shown by its names") {
    CHECK(class_names(4, known) == "gpu");
    CHECK(class_names(6, known) == "either");
    CHECK(class_names(7, known) == "gpu,fast,0x1");
    CHECK(class_names(0x80000004, known) == "gpu,top");
    CHECK(class_names(1, known).empty());
    CHECK(class_names(0, known).empty());
    CHECK(class_names(4, {}).empty());
    for (const std::uint32_t mask : {4u, 6u, 7u, 0x80000004u}) CHECK(*mask_of(class_names(mask, known), known) == mask);
}

TEST_CASE("host classes: which words can be names") {
    for (const char *word : {"gpu", "x86-64.v3", "A_1"}) CHECK(is_class_name(word));
    for (const char *word : {"", "4gpu", "0x4", "-a", "a,b", "a b", "any"}) CHECK_FALSE(is_class_name(word));
    CHECK_FALSE(is_class_name(std::string(limits::name_bytes + 1, 'a')));
}
