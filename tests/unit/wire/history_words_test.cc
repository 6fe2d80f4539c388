// What is said about event logs that cannot be true, and about bytes and lines that are none.
#include "base/bytes.h"
#include "support/about.h"
#include "support/catch.h"
#include "wire/checks.h"
#include "base/limits.h"
#include "wire/history.h"

using namespace dcs;
using namespace dcs::wire;
using Kind = EventKind;

namespace {

Event made_event(Kind kind, std::int32_t grain = -1, std::uint32_t number = 0, std::string host = "") {
    Event e;
    e.kind = kind;
    e.at_ms = 1'700'000'000'000;
    e.grain = grain;
    e.number = number;
    e.host = std::move(host);
    return e;
}

struct Lie {
    std::string text;  // of the last event; those before it are true
    std::vector<Event> events;
};

std::string frame(const std::string &body, std::size_t length, std::uint32_t flip = 0) {
    ByteWriter w;
    w.var(length);
    w.u32(crc32c(body) ^ flip);
    w.raw(body);
    return w.bytes();
}

std::string why_no_log(std::string_view log) {
    std::vector<Event> events;
    const Status s = take_events(log, events);
    CHECK(s.code == Code::io_error);
    return s.text;
}

}  // namespace

TEST_CASE("a history says of each event that cannot be true why not") {
    const Event opened = made_event(Kind::opened), closed = made_event(Kind::closed),
                one = made_event(Kind::submitted, 1), started = made_event(Kind::started, 1, 1, "h");
    const std::vector<Lie> lies = {
        {"it is opened twice", {opened, one, opened}},
        {"resumed although closed", {opened, closed, made_event(Kind::resumed)}},
        {"fewer results handed out",
         {opened, one, started, made_event(Kind::finished, 1), made_event(Kind::handed_out, -1, 1),
          made_event(Kind::handed_out)}},
        {"results handed out", {opened, made_event(Kind::handed_out, -1, 1)}},
        {"an event without its grain", {opened, made_event(Kind::submitted)}},
        {"grain 1 event not grain's", {opened, one, made_event(Kind::closed, 1)}},
        {"grain 1 is submitted twice", {opened, one, one}},
        {"grain 1 submitted closed session", {opened, closed, one}},
        {"grain 1 was never submitted", {opened, started}},
        {"grain 1 starts closed session", {opened, one, closed, started}},
        {"grain 1 starts although not ready", {opened, one, started, started}},
        {"grain 1 checkpoint although not run", {opened, one, made_event(Kind::checkpoint, 1, 1)}},
        {"grain 1 checkpoint older",
         {opened, one, started, made_event(Kind::checkpoint, 1, 2), made_event(Kind::checkpoint, 1, 1)}},
        {"grain 1 leaves host not run", {opened, one, made_event(Kind::left, 1, 0, "h")}},
        {"grain 1 finishes without running", {opened, one, made_event(Kind::finished, 1)}},
        {"grain 1 finishes out of order", {opened, one, started, made_event(Kind::finished, 1, 5)}},
        {"grain 1 is killed twice", {opened, one, made_event(Kind::killed, 1), made_event(Kind::killed, 1)}},
        {"grain 1 undone although not ended", {opened, one, made_event(Kind::undone, 1)}},
    };
    for (const Lie &lie : lies) {
        INFO(lie.text);
        History history;
        for (std::size_t i = 0; i + 1 < lie.events.size(); ++i) CHECK(history.take(lie.events[i]).empty());
        CHECK(history.take(lie.events.back()) == about(lie.text));
    }
}

TEST_CASE("bytes that are no event log: each error says why") {
    const std::string body("\x01\x00", 2);
    CHECK(why_no_log(frame(body, body.size(), 1)) == about("event checksum not"));
    CHECK(why_no_log(frame(body, std::size_t{1} << 40)) == about("event frame impossibly"));
    CHECK(why_no_log(frame("\x63", 1)) == about("version cannot format"));
    CHECK(why_no_log(frame(body + "\xff", 3)) == about("event cannot decoded"));
    // What no more bytes can make a length of is damage as soon as it is seen, and not the beginning of a frame.
    const std::string endless(14, '\xff');
    CHECK(why_no_log(endless) == about("event no length"));
    CHECK(why_no_log(frame(body, body.size()) + endless) == about("event no length"));
    std::vector<Event> none;
    std::string_view shorter = std::string_view(endless).substr(1);
    CHECK(take_events(shorter, none));
}

TEST_CASE("lines that are no event: each error says why") {
    const auto said = [](const char *line) { return event_of_line(line).status().text; };
    CHECK(said("[]") == about("not JSON object"));
    CHECK(said("{") == about("not JSON JSON"));
    CHECK(said(("{\"time_s\":1,\"event\":\"started\",\"grain\":1,\"incarnation\":1,\"host\":\"" + std::string(65, 'h') +
                "\"}")
                   .c_str()) == about("\"host\" not name"));
    CHECK(said("{\"event\":\"closed\"}") == about("key \"time_s\" missing"));
    CHECK(said("{\"time_s\":-1,\"event\":\"closed\"}") == about("\"time_s\" seconds 1970"));
    CHECK(said("{\"time_s\":1,\"event\":5}") == "\"event\" must be a string");
    CHECK(said("{\"time_s\":1,\"event\":\"danced\"}") == "unknown event \"danced\"");
    CHECK(said("{\"time_s\":1,\"event\":\"submitted\",\"grain\":-1}") == about("\"grain\" 0 2147483647"));
    CHECK(said("{\"time_s\":1,\"event\":\"closed\",\"grain\":1}") == about("key kind event not"));
}

TEST_CASE("names of files have a limit together") {
    GrainSpec spec;
    for (std::size_t bytes = 0, i = 0; bytes <= limits::file_names_bytes; bytes += limits::file_name_bytes, ++i) {
        std::string name = std::to_string(i) + "/";
        while (name.size() + 201 <= limits::file_name_bytes) name += std::string(200, 'x') + "/";
        name.append(limits::file_name_bytes - name.size(), 'y');
        spec.files.push_back({FileRole::output, name, "", 0, ""});
    }
    REQUIRE(spec.files.size() <= limits::grain_files);
    CHECK(check_files(spec).text == about("names files limit " + std::to_string(limits::file_names_bytes)));
}
