#include <cmath>

#include "samples.h"
#include "support/catch.h"
#include "wire/json.h"

using namespace dcs;
using namespace dcs::wire;

TEST_CASE("equal parameters differ in nothing") {
    CHECK(difference(samples::spec(), samples::spec()).empty());
    CHECK(difference(GrainSpec{}, GrainSpec{}).empty());
}

TEST_CASE("the label does not count") {
    GrainSpec now = samples::spec();
    now.label = "another";
    CHECK(difference(samples::spec(), now).empty());
}

TEST_CASE("a different argument is named with both values") {
    GrainSpec now = samples::spec();
    now.argv[2] = "12\"\n\x01";
    CHECK(difference(samples::spec(), now) == "argv[2]: recorded \"1234567\", now \"12\\\"\\n\\x01\"");
}

TEST_CASE("every field but the label counts") {
    const GrainSpec was = samples::spec();
    auto line = [&](auto change) {
        GrainSpec now = was;
        change(now);
        return difference(was, now);
    };
    CHECK(line([](GrainSpec &s) { s.env[0] = "A=2"; }) == "env A: recorded with another value");
    CHECK(line([](GrainSpec &s) { s.env.insert(s.env.begin(), "0=1"); }) == "env 0: recorded without, now with it");
    CHECK(line([](GrainSpec &s) { s.env.erase(s.env.begin()); }) == "env A: recorded with it, now without");
    CHECK(line([](GrainSpec &s) { s.env.insert(s.env.begin(), s.env[0]); }) == "env: recorded in another order");
    CHECK(line([](GrainSpec &s) { s.input = "x"; }) == "input: recorded \"line\\n\\x00\\xff tail\", now \"x\"");
    CHECK(line([](GrainSpec &s) { s.demands.host_class = 1; }) == "host_class: recorded 2147483649, now 1");
    CHECK(line([](GrainSpec &s) { s.demands.thrash = -1; }) == "thrash: recorded 64, now -1");
    CHECK(line([](GrainSpec &s) { s.demands.urgent = false; }) == "urgent: recorded true, now false");
    CHECK(line([](GrainSpec &s) { s.demands.notice = 6; }) == "notice: recorded 5, now 6");
    CHECK(line([](GrainSpec &s) { s.demands.attempts = 1; }) == "attempts: recorded 7, now 1");
    CHECK(line([](GrainSpec &s) { s.directory = ""; }) == "directory: recorded \"work/dir\", now \"\"");
    CHECK(line([](GrainSpec &s) { s.demands.cores = 1; }) == "cores: recorded 2, now 1");
    CHECK(line([](GrainSpec &s) { s.demands.memory_mb = 0; }) == "memory_mb: recorded 512, now 0");
    CHECK(line([](GrainSpec &s) { s.demands.wall_s = 60; }) == "wall_s: recorded 3600, now 60");
    CHECK(line([](GrainSpec &s) { s.demands.thrash = 1, s.demands.notice = 1; }) ==
          "thrash: recorded 64, now 1\nnotice: recorded 5, now 1");
}

TEST_CASE("lists of different length name the first item too many") {
    GrainSpec was, now;
    was.argv = {"a", "b"};
    now.argv = {"a", "b", "c", "d"};
    CHECK(difference(was, now) == "argv: recorded 2 items, now 4\nargv[2]: now \"c\", recorded nothing");
    CHECK(difference(now, was) == "argv: recorded 4 items, now 2\nargv[2]: recorded \"c\", now nothing");
}

TEST_CASE("long strings are told by lengths, offset and an excerpt") {
    GrainSpec was, now;
    was.input = std::string(100000, 'a') + "bcd";
    now.input = std::string(100000, 'a') + "xyzzy";
    CHECK(difference(was, now) ==
          "input: recorded 100003 bytes, now 100005 bytes, first difference at offset 100000: "
          "recorded \"aaaaaaaabcd\", now \"aaaaaaaaxyzzy\"");
    now.input = was.input + "more";
    CHECK(difference(was, now).find("offset 100003: recorded \"aaaaabcd\", now \"aaaaabcdmore\"") != std::string::npos);
}

TEST_CASE("the text of a difference is bounded") {
    GrainSpec was, now;
    was.argv.assign(4096, "one");
    now.argv.assign(4096, "two");
    const std::string text = difference(was, now);
    CHECK(text.size() < 4096);
    CHECK(text.find("argv[0]: recorded \"one\", now \"two\"") == 0);
    CHECK(text.substr(text.size() - 8) == "and more");
}

TEST_CASE("rows as JSON") {
    CHECK(to_json(samples::session_row()) ==
          R"({"user":"ann","session":3,"ident":"factor","state":"active","ready":1,"running":2,)"
          R"("finished":3,"killed":4,"sent":5,"saved_cpu_s":0.25,"command":"dcs map -- a","label":"night",)"
          R"("nice":5,"failed":6,"submitted_s":7.5,"settled_s":8.5,"stuck":1,"stored_bytes":4096})");
    CHECK(to_json(samples::host_row()) ==
          R"({"name":"local1","state":"active","binary_class":"x86_64-linux-gnu","class":3,)"
          R"("slots":2,"running":1,"last_call_in_s":0.5,"interval_s":10,"alert_s":30,"limit_s":60,)"
          R"("extended_s":120,"load":0.75,"free_memory_kb":123456,"cores":4,"cores_used":3,"memory_mb":2048,)"
          R"("memory_used_mb":512,"connected":true,"drained":true,"settings":"slots=0","note":"on probation",)"
          R"("users":["ann","bob"],"blamed":6,"blamed_lately":2,)"
          R"("launched":9,"finished":7,"failed":1,"given_back":1,"cpu_s":2.5,)"
          R"("confinement":"accounts,filter","class_names":"gpu,fast",)"
          R"("time_zone_offset":-330,"resources":"gpu=[0,1]","resources_used":"gpu=1","expires_s":1800000000,)"
          R"("version":"0.2.0","address":"10.0.0.7","limits":"memory_mb=64","drain_reason":"new disk","ending":2})");
    CHECK(to_json(samples::explanation()) ==
          R"({"state":"ready","summary":"waits for a slot","can_run":false,"ahead":7,"reasons":[)"
          R"({"reason":"busy","text":"All slots are busy.","hint":"","hosts":3,"names":["h1","h2"]},)"
          R"({"reason":"other_class","text":"Of another class.","hint":"dcs host ls","hosts":1,"names":[]}]})");
    GrainRow row = samples::grain_row();
    row.message = "tab\t\"quote\" \xff\xc3\xa9";
    const std::string json = to_json(row);
    CHECK(json.find(R"("message":"tab\t\"quote\" )"
                    "\xef\xbf\xbd\xc3\xa9\"") != std::string::npos);
    CHECK(json.find(R"("argv":["bin/ecm","12"])") != std::string::npos);
    CHECK(json.find(R"("checkpoint_age_s":1e+09)") != std::string::npos);
    CHECK(json.find(R"("out_length":1099511627776)") != std::string::npos);
    CHECK(json.find(R"("nogo":["local2","local3"],"moves":[{"reason":"usurped","host":"local2",)"
                    R"("detail":"for ann/2:1","incarnation":3,"age_s":12.5},)") != std::string::npos);
}

TEST_CASE("JSON never holds what is not UTF-8 or not a number") {
    const std::string replaced = "\xef\xbf\xbd";
    CHECK(json_string("\xc0\x80") == "\"" + replaced + replaced + "\"");                 // overlong
    CHECK(json_string("\xed\xa0\x80") == "\"" + replaced + replaced + replaced + "\"");  // surrogate
    CHECK(json_string("\xe2\x82") == "\"" + replaced + replaced + "\"");                 // cut off
    CHECK(json_string("\xf0\x9f\x98\x80") == "\"\xf0\x9f\x98\x80\"");
    CHECK(json_string("\xf4\x90\x80\x80").find('\xf4') == std::string::npos);  // above U+10FFFF
    CHECK(json_string(std::string_view("\0", 1)) == "\"\\u0000\"");
    CHECK(json_number(INFINITY) == "null");
    CHECK(json_number(0.1) == "0.1");
}
