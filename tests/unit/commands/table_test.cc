#include "commands/dcs/frame/table.h"

#include <boost/json.hpp>

#include "base/text.h"
#include "commands/dcs/query/scheduler.h"
#include "commands/dcs/frame/console.h"
#include "commands/dcs/frame/call.h"
#include "support/about.h"
#include "support/catch.h"

using namespace dcs;
using namespace dcs::commands;

TEST_CASE("tables are aligned and end without blanks") {
    Table table{">N", "NAME", "STATE"};
    table.add({"1", "ann", "up"});
    table.add({"12", "b", ""});
    CHECK(table.text() ==
          " N  NAME  STATE\n"
          " 1  ann   up\n"
          "12  b\n");
}

TEST_CASE("foreign text cannot drive the terminal, and counts as characters") {
    Table table{"A", "B"};
    table.add({"\033[2Jx\n", "y"});
    table.add({"\xc3\xa4\xc3\xb6", "z"});
    CHECK(table.text() == "A       B\n?[2Jx?  y\n\xc3\xa4\xc3\xb6      z\n");
    CHECK(printable("\xc2\x9b"
                    "1m\xff") == "?1m?");
    CHECK(printable("a\xe2\x80\xae"
                    "b\xe2\x81\xa6"
                    "c\xe2\x80\xa8"
                    "d\xd8\x9c\xe2\x80\x93") == "a?b?c?d?\xe2\x80\x93");
    CHECK(width_of("a\xe2\x82\xac") == 2);
    CHECK(shortened("abcdef", 6) == "abcdef");
    CHECK(shortened("abcdefg", 6) == "abcd..");
    CHECK(shortened("\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4", 3) == "\xc3\xa4..");
}

TEST_CASE("UTF-8 characters") {
    CHECK(utf8_character("a") == 1);
    CHECK(utf8_character("\xc3\xa4") == 2);
    CHECK(utf8_character("\xe2\x82\xac") == 3);
    CHECK(utf8_character("\xf0\x9f\x98\x80") == 4);
    for (const char *bad : {"\xff", "\x80", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xc3",
                            "\xc3"
                            "a"})
        CHECK(utf8_character(bad) == 0);
}

TEST_CASE("figures for people") {
    CHECK(seconds_text(-1) == "-");
    CHECK(seconds_text(0) == "0.00 s");
    CHECK(seconds_text(9.5) == "9.50 s");
    CHECK(seconds_text(59.2) == "59 s");
    CHECK(seconds_text(200) == "3 m 20 s");
    CHECK(seconds_text(7500) == "2 h 5 m");
    CHECK(seconds_text(90000) == "1 d 1 h");
    CHECK(whole_seconds_text(-1) == "-");
    CHECK(whole_seconds_text(0) == "0 s");
    CHECK(whole_seconds_text(9) == "9 s");
    CHECK(whole_seconds_text(200) == "3 m 20 s");
    CHECK(bytes_text(1023) == "1023");
    CHECK(bytes_text(4096) == "4.0 K");
    CHECK(bytes_text(1536u << 10) == "1.5 M");
    CHECK(class_text(0) == "any");
    CHECK(class_text(0x12) == "0x12");
    CHECK(counted(1, "grain") == "1 grain");
    CHECK(counted(0, "grain") == "0 grains");
}

TEST_CASE("JSON objects") {
    JsonObject json;
    json.add("text", "a\"b").add("n", 7).add("big", std::uint64_t{18446744073709551615ull}).add("flag", true);
    json.add("s", 0.25).add_raw("none", "null").add_members("{\"x\":1,\"y\":2}").add_members("{}");
    CHECK(json.text() ==
          "{\"text\":\"a\\\"b\",\"n\":7,\"big\":18446744073709551615,\"flag\":true,\"s\":0.25,"
          "\"none\":null,\"x\":1,\"y\":2}");
    const auto parsed = boost::json::parse(json.text()).as_object();
    CHECK(parsed.at("s").as_double() == 0.25);
    CHECK(json_array({}) == "[]");
    CHECK(json_array({"1", "{}"}) == "[1,{}]");
}

TEST_CASE("rows have the published fields") {
    wire::SessionRow session;
    session.user = "ann";
    session.ident = "x";
    session.state = "active";
    session.session = 7;
    session.finished = 3;
    const auto s = boost::json::parse(wire::to_json(session)).as_object();
    for (const char *name :
         {"user", "session", "ident", "state", "ready", "running", "finished", "killed", "sent", "saved_cpu_s"})
        CHECK(s.contains(name));
    CHECK(s.at("session").as_int64() == 7);
    CHECK(s.at("finished").as_int64() == 3);

    wire::HostRow host;
    host.name = "local1";
    host.state = "active";
    host.host_class = 3;
    host.last_call_in_s = 0.5;
    const auto h = boost::json::parse(wire::to_json(host)).as_object();
    for (const char *name : {"name", "class", "state", "slots", "running", "last_call_in_s"}) CHECK(h.contains(name));
    CHECK(h.at("class").as_int64() == 3);
    CHECK_FALSE(h.contains("host_class"));
    CHECK((h.at("load").is_number() && h.at("free_memory_kb").is_number()));
    wire::HostRow silent = host;
    silent.last_call_in_s = -1, silent.free_memory_kb = -1;
    const auto unknown = boost::json::parse(wire::to_json(silent)).as_object();
    for (const char *name : {"last_call_in_s", "load", "free_memory_kb"}) CHECK(unknown.at(name).is_null());
    CHECK(unknown.size() == h.size());
    CHECK(h.at("users").as_array().empty());
    host.users = {"ann", "bob"};
    host.alert_s = 3, host.limit_s = 6, host.extended_s = 12;
    host.cores = 4, host.cores_used = 3, host.memory_mb = 2048, host.memory_used_mb = 512;
    host.connected = 1, host.drained = 1, host.settings = "slots=0", host.note = "on probation";
    host.blamed = 6, host.blamed_lately = 2;
    const std::string all = wire::to_json(host);
    CHECK(all.find(R"("alert_s":3,"limit_s":6,"extended_s":12,)") != std::string::npos);
    CHECK(all.find(R"("cores":4,"cores_used":3,"memory_mb":2048,"memory_used_mb":512,"connected":true,)"
                   R"("drained":true,"settings":"slots=0","note":"on probation","users":["ann","bob"],)"
                   R"("blamed":6,"blamed_lately":2,)") != std::string::npos);

    wire::GrainRow grain;
    grain.state = "finished";
    grain.session = 7;
    grain.grain = 12;
    grain.exit_code = 4;
    grain.cpu_s = 1.5;
    grain.argv = {"a\"b"};
    const auto g = boost::json::parse(wire::to_json(grain)).as_object();
    for (const char *name : {"session", "grain", "state", "host", "incarnation", "restarts", "exit_code", "signal",
                             "cpu_s", "run_cpu_s", "saved_cpu_s", "result_index", "checkpoint_length"})
        CHECK(g.contains(name));
    CHECK(g.at("grain").as_int64() == 12);
    CHECK(g.at("exit_code").as_int64() == 4);
    CHECK(g.at("cpu_s").to_number<double>() == 1.5);
    CHECK(g.at("argv").as_array().at(0).as_string() == "a\"b");
    CHECK(g.at("nogo").as_array().empty());
    grain.nogo = {"local2"};
    grain.moves = {{"usurped", "local2", "for ann/2:1", 3, 12.5}};
    grain.demands = {0, 64, true, 5, 7, 2, 512, 3600};
    const std::string all_of_grain = wire::to_json(grain);
    CHECK(all_of_grain.find(R"("thrash":64,"urgent":true,"notice":5,"attempts":7,"cores":2,"memory_mb":512,)"
                            R"("wall_s":3600,)") != std::string::npos);
    CHECK(all_of_grain.find(R"("nogo":["local2"],"moves":[{"reason":"usurped","host":"local2","detail":"for ann/2:1",)"
                            R"("incarnation":3,"age_s":12.5}])") != std::string::npos);
}

TEST_CASE("the progress bar") {
    Progress p;
    p.total = 100;
    p.done = 50;
    p.failed = 2;
    p.done_before = 30;
    p.elapsed_s = 40;
    const std::string text = progress_text(p, 80);
    CHECK(text == "[" + std::string(20, '#') + std::string(20, '-') + "]  50/100  2 failed  1 m 40 s left");
    CHECK(progress_text(p, 30).size() <= 30);
    p.running = 4;
    p.saved_cpu_s = 3780;
    CHECK(progress_text(p, 100).find("]  50/100  4 running  2 failed  1 h 3 m CPU saved  1 m 40 s left") !=
          std::string::npos);
    p.saved_cpu_s = 0.2;  // a fraction of a second is no news
    CHECK(progress_text(p, 100).find("saved") == std::string::npos);
    p.done = 100;
    CHECK(progress_text(p, 80).find("left") == std::string::npos);
    CHECK(progress_text(p, 80).find('-') == std::string::npos);
    p.done = p.done_before;  // nothing new yet: no guess
    CHECK(progress_text(p, 80).find("left") == std::string::npos);
    CHECK(progress_json(p) ==
          R"({"schema":"dcs.progress/1","total":100,"done":30,"failed":2,"running":4,"saved_cpu_s":0.2,)"
          R"("elapsed_s":40})");
    p.done = 50;
    p.running = 0;  // what remains may never run
    CHECK(progress_text(p, 80).find("left") == std::string::npos);
    CHECK(progress_json(p).find("left_s") == std::string::npos);
    p.running = 4;
    p.stuck = 3;
    CHECK(progress_text(p, 100) == about("50/100 4 running 3 that no host can take"));
    CHECK(progress_text(p, 100).find(" left") == std::string::npos);
    CHECK(progress_json(p).find("\"stuck\":3,") != std::string::npos);
    p.stuck = 0;
    p.running = -1;
    CHECK(progress_json(p) == R"({"schema":"dcs.progress/1","total":100,"done":50,"failed":2,"saved_cpu_s":0.2,)"
                              R"("elapsed_s":40,"left_s":100})");
}
