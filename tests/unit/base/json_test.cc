#include "base/json.h"

#include <cmath>

#include "support/catch.h"

using namespace dcs;

TEST_CASE("text that is no UTF-8 or holds control bytes makes good JSON") {
    const std::string bad = "\xef\xbf\xbd";
    CHECK(json_string("a\"b\\c\n\t\x01") == R"("a\"b\\c\n\t\u0001")");
    CHECK(json_string("\b\f\r\x1f\x7f") == "\"\\b\\f\\r\\u001f\\u007f\"");
    CHECK(json_string("\xc2\x9b"
                      "2J \xe2\x80\xae \xe2\x81\xa6 \xc2\xa0") == "\"\\u009b2J \\u202e \\u2066 \xc2\xa0\"");
    CHECK(json_string("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80") == "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"");
    CHECK(json_string("\xffx") == "\"" + bad + "x\"");
    CHECK(json_string("\xc3") == "\"" + bad + "\"");                      // cut off
    CHECK(json_string("\xc0\xaf") == "\"" + bad + bad + "\"");            // longer than needed
    CHECK(json_string("\xed\xa0\x80") == "\"" + bad + bad + bad + "\"");  // half of a pair
    CHECK(json_string("\xf4\x90\x80\x80") == "\"" + bad + bad + bad + bad + "\"");
    CHECK(json_string(std::string_view("\0", 1)) == R"("\u0000")");
    CHECK(json_string("") == "\"\"");
}

TEST_CASE("an object has its members in their order") {
    CHECK(JsonObject("x/1").add("n", -3).add("u", UINT64_MAX).add("f", false).add("d", 0.1).add("s", "t").text() ==
          R"({"schema":"x/1","n":-3,"u":18446744073709551615,"f":false,"d":0.1,"s":"t"})");
    CHECK(JsonObject().text() == "{}");
    CHECK(JsonObject().add_members("{}").add("a", 1).add_members(R"({"b":2,"c":[]})").text() ==
          R"({"a":1,"b":2,"c":[]})");
    CHECK(json_array({}) == "[]");
    CHECK(json_array({"1", "{}"}) == "[1,{}]");
    CHECK(json_number(HUGE_VAL) == "null");
}
