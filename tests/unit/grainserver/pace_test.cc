// How often the launcher looks at each grain with limits.
#include "grainserver/launcher/pace.h"

#include <map>
#include <string>

#include "support/catch.h"

using namespace dcs;

namespace {
struct Paced {
    Duration cost;  // of a look
    bool ended = false;
    Instant next_watch{};
    int looks = 0;
    bool watched() const { return !ended; }
};
}  // namespace

TEST_CASE("a grain that takes long to look at keeps the others from none of their looks") {
    std::map<std::string, Paced> grains;
    grains["a slow"].cost = milliseconds(700);  // 200,000 mappings
    grains["b quick"].cost = grains["c quick"].cost = milliseconds(1);
    grains["d ended"] = {.cost = seconds(1), .ended = true};
    Instant now{}, next{};
    const auto clock = [&] { return now; };
    const auto look = [&](const std::string &, Paced &grain) {
        now = now + grain.cost;
        ++grain.looks;
    };
    const Duration shared = milliseconds(2);  // as the launcher reads /proc once for all of them
    const Instant end = Instant{} + seconds(3600);
    while (now < end) {
        const Instant begun = now;
        now = now + shared;
        next = launcher::look_at_due(grains, begun, shared, clock, look);
        REQUIRE(next > begun);
        now = std::max(now, next);
    }
    // 50 times 702 ms, and the look itself.
    CHECK(grains["a slow"].looks == 3600'000 / (50 * 702 + 702) + 1);
    // Each 250 ms, but for what the looks and the reading take.
    for (const char *quick : {"b quick", "c quick"}) CHECK(grains[quick].looks > 3600 * 4 * 9 / 10);
    CHECK(grains["d ended"].looks == 0);
    grains["b quick"].ended = grains["c quick"].ended = true;
    CHECK(launcher::look_at_due(grains, now, shared, clock, look) == grains["a slow"].next_watch);
    grains["a slow"].ended = true;
    CHECK(launcher::look_at_due(grains, now, shared, clock, look) == Instant::never());
}
