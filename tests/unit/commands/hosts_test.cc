#include "commands/dcs/host/host_changes.h"

#include "commands/dcs/verbs.h"
#include "support/catch.h"

using namespace dcs;
using namespace dcs::commands;

namespace {

bool same(const d_host_change &a, const d_host_change &b) {
    return a.slots == b.slots && a.interval_s == b.interval_s && a.alert_s == b.alert_s && a.limit_s == b.limit_s &&
           a.extended_s == b.extended_s && a.host_class == b.host_class && a.drained == b.drained && a.reset == b.reset;
}

struct Taken {
    HostOrder order;
    std::optional<Failure> failure;
};

Taken take(const std::vector<std::string> &line) {
    Arguments arguments;
    Taken taken;
    if (const Status s = parse_arguments(line, host_set_verb.options, false, arguments); !s)
        taken.failure = usage_failure(s.text);
    else taken.failure = take_host_order(arguments, taken.order);
    return taken;
}

}  // namespace

TEST_CASE("drain and undrain change nothing else") {
    d_host_change want = no_change();
    want.drained = 1;
    CHECK(same(drain_change(false), want));
    want.slots = 0;
    CHECK(same(drain_change(true), want));
    want = no_change();
    want.drained = 0;
    for (const char *settings : {"", "drained", "slots=2 drained", "interval=5 class=3 drained"}) {
        CAPTURE(settings);
        CHECK(same(undrain_change(settings), want));
    }
}

TEST_CASE("undrain after drain --evict: the table's slots come back, everything else that was set stays") {
    d_host_change want = no_change();
    want.drained = 0;
    want.reset = 1;
    CHECK(same(undrain_change("slots=0 drained"), want));
    CHECK(same(undrain_change("slots=0"), want));
    want.interval_s = 2.5, want.alert_s = 5, want.limit_s = 10, want.extended_s = 20, want.host_class = 6;
    CHECK(same(undrain_change("slots=0 interval=2.5 alert=5 limit=10 extended=20 class=6 drained"), want));
}

TEST_CASE("undrain resets nothing when it does not understand all that was set") {
    d_host_change want = no_change();
    want.drained = 0;
    for (const char *settings :
         {"slots=0 colour=red", "slots=0 drained held", "slots=0  drained", "slots=0 interval=x", "slots=0 class="}) {
        CAPTURE(settings);
        CHECK(same(undrain_change(settings), want));
    }
}

TEST_CASE("host set: options, hosts, and grains behind --clear-nogo") {
    Taken taken = take({"local1", "--slots", "0", "local2"});
    REQUIRE_FALSE(taken.failure);
    CHECK(taken.order.changes);
    CHECK(taken.order.change.slots == 0);
    CHECK(taken.order.change.drained == -1);
    CHECK(taken.order.hosts == std::vector<std::string>{"local1", "local2"});
    taken = take({"local1", "--interval", "1", "--alert", "2s", "--limit", "3m", "--extended", "1h", "--class", "0x3"});
    REQUIRE_FALSE(taken.failure);
    CHECK(taken.order.change.interval_s == 1);
    CHECK(taken.order.change.alert_s == 2);
    CHECK(taken.order.change.limit_s == 180);
    CHECK(taken.order.change.extended_s == 3600);
    CHECK(taken.order.change.host_class == 3);
    CHECK(taken.order.change.reset == 0);
    taken = take({"--reset", "all"});
    REQUIRE_FALSE(taken.failure);
    CHECK(taken.order.change.reset == 1);
    CHECK(taken.order.changes);
    taken = take({"local1", "--clear-nogo"});
    REQUIRE_FALSE(taken.failure);
    CHECK(taken.order.clear_nogo);
    CHECK_FALSE(taken.order.changes);
    CHECK(taken.order.grains.empty());
    taken = take({"local1", "--clear-nogo", "7:1-20", "ann/8:3"});
    REQUIRE_FALSE(taken.failure);
    CHECK(taken.order.hosts == std::vector<std::string>{"local1"});
    CHECK(taken.order.grains == std::vector<std::string>{"7:1-20", "ann/8:3"});
}

TEST_CASE("host set: what makes no sense is a usage error") {
    const std::vector<std::vector<std::string>> wrong = {{"--slots", "1"},
                                                         {"local1"},
                                                         {"local1", "7:3", "--slots", "1"},
                                                         {"7:3", "--clear-nogo"},
                                                         {"local1", "--slots", "-1"},
                                                         {"local1", "--slots", "65537"},
                                                         {"local1", "--interval", "0"},
                                                         {"local1", "--alert", "x"},
                                                         {"local1", "--limit", "-5"},
                                                         {"local1", "--extended", ""},
                                                         {"local1", "--class", "0"}};
    for (const auto &line : wrong) {
        CAPTURE(line);
        const Taken taken = take(line);
        REQUIRE(taken.failure);
        CHECK(taken.failure->exit == exits::usage);
    }
}
