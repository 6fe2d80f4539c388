// What dcs_lock prints: times for people and for JSON.
#include "support/catch.h"

#include "base/json.h"
#include "commands/dcs_lock/quantity.h"
#include "commands/dcs_lock/say.h"
#include "locks/files/record.h"

using namespace dcs::lock_command;

TEST_CASE("times for people and for JSON") {
    CHECK(spoken(0) == "0 ms");
    CHECK(spoken(3'500'000) == "3.5 ms");
    CHECK(spoken(second_ns) == "1 s");
    CHECK(spoken(119 * second_ns) == "119 s");
    CHECK(spoken(90 * minute_ns) == "90 min");
    CHECK(spoken(150 * minute_ns) == "2.5 h");
    CHECK(spoken(72 * 60 * minute_ns) == "3 d");
    CHECK(spoken(INT64_MAX) == "106751 d");
    CHECK(decimal_seconds(0) == "0");
    CHECK(decimal_seconds(1) == "0.000000001");
    CHECK(decimal_seconds(12'500'000'000) == "12.5");
    CHECK(decimal_seconds(10 * second_ns) == "10");
    CHECK(decimal_seconds(-second_ns / 2) == "-0.5");
    CHECK(decimal_seconds(INT64_MIN) == "-9223372036.854775808");
}

TEST_CASE("times without end are null in JSON") {
    using dcs::JsonObject;
    CHECK(JsonObject("x/1").add("n", -3).add("f", false).add_raw("s", json_seconds(1)).text() ==
          R"({"schema":"x/1","n":-3,"f":false,"s":0.000000001})");
    CHECK(JsonObject().add_raw("never", json_seconds(dcs::locks::no_limit)).add_raw("none", json_seconds(-1)).text() ==
          R"({"never":null,"none":null})");
}

TEST_CASE("every refusal has its exit code, and -E and -x change the one of busy alone") {
    using dcs::locks::Denied;
    const auto code = [](Denied denied_as, const Options &options) {
        dcs::locks::Answer answer;
        answer.denied = denied_as;
        answer.status = dcs::fail(dcs::Code::io_error, "broken");
        return denied(options, "name", answer).exit;
    };
    Options plain, other, ok;
    other.busy_code = 3;
    ok.busy_is_ok = true;
    for (Denied busy : {Denied::busy, Denied::own_ancestor, Denied::unkillable, Denied::elsewhere, Denied::giving_up}) {
        CHECK(code(busy, plain) == 75);
        CHECK(code(busy, other) == 3);
        CHECK(code(busy, ok) == 0);
    }
    for (const Options *options : {&plain, &other, &ok}) {
        CHECK(code(Denied::too_soon, *options) == 79);
        CHECK(code(Denied::not_permitted, *options) == 77);
        CHECK(code(Denied::failed, *options) == 125);
    }
}
