// The event log of a session as bytes and as text, and the history that it tells.
#include <random>

#include "support/about.h"
#include "support/catch.h"
#include "wire/history.h"
#include "wire/import_rows.h"

using namespace dcs;
using namespace dcs::wire;
using Kind = EventKind;

namespace {

Event event(Kind kind, std::int32_t grain = -1, std::uint32_t number = 0, std::string host = "",
            std::string text = "") {
    Event e;
    e.kind = kind;
    e.at_ms = 1'700'000'000'123;
    e.grain = grain;
    e.number = number;
    e.host = std::move(host);
    e.text = std::move(text);
    return e;
}

// One of each kind, with every part that it has.
std::vector<Event> each_kind() {
    std::vector<Event> all = {event(Kind::opened, -1, 0, "", "primes"),
                              event(Kind::resumed),
                              event(Kind::reopened),
                              event(Kind::closed),
                              event(Kind::imported),
                              event(Kind::submitted, 7),
                              event(Kind::started, 7, 3, "h1"),
                              event(Kind::checkpoint, 7, 12),
                              event(Kind::left, 7, 0, "h1", "usurped"),
                              event(Kind::started, 2000000000, 1, "h2"),
                              event(Kind::finished, 7, 5),
                              event(Kind::killed, 0),
                              event(Kind::handed_out, -1, 6),
                              event(Kind::shown, 7, 11),
                              event(Kind::undone, 7),
                              event(Kind::forgotten, 8),
                              event(Kind::set_back, -1, 4)};
    all[8].detail = "for ann/1:2";
    all[10].code = -3;
    all[10].signal = 9;
    return all;
}

std::string framed(const std::vector<Event> &events) {
    EventFrame frame;
    for (const Event &e : events) frame.add(e);
    return frame.framed(1'700'000'000'123);
}

std::string told(History &history, const Event &e) { return history.take(e); }

}  // namespace

TEST_CASE("events come back as they went, whole frames only") {
    const std::vector<Event> all = each_kind();
    const std::string log = framed(all) + framed({event(Kind::submitted, 9)});
    std::vector<Event> back;
    std::string_view left = log;
    REQUIRE(take_events(left, back));
    CHECK(left.empty());
    REQUIRE(back.size() == all.size() + 1);
    for (std::size_t i = 0; i < all.size(); ++i) CHECK(back[i] == all[i]);
    for (std::size_t cut = 0; cut < log.size(); ++cut) {
        std::vector<Event> some;
        std::string_view part = std::string_view(log).substr(0, cut);
        CHECK(take_events(part, some));
        CHECK(some.size() == (cut < framed(all).size() ? 0 : all.size()));
    }
}

TEST_CASE("a damaged bit is noticed, and what precedes it counts") {
    const std::string good = framed({event(Kind::submitted, 1)});
    const std::string log = good + framed(each_kind());
    for (std::size_t bit = 0; bit < log.size() * 8; ++bit) {
        std::string bad = log;
        bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
        std::vector<Event> events;
        std::string_view left = bad;
        const bool whole = bool(take_events(left, events)) && left.empty();
        CHECK_FALSE(whole);
        CHECK(events.size() == (bit / 8 < good.size() ? 0 : 1));
    }
}

TEST_CASE("a small event is small") {
    EventFrame frame;
    for (int i = 0; i < 1000; ++i) {
        frame.add(event(Kind::submitted, i));
        frame.add(event(Kind::started, i, 1, "some-host.example.org"));
        frame.add(event(Kind::finished, i, static_cast<std::uint32_t>(i)));
    }
    CHECK(frame.framed(1'700'000'000'000).size() < 14'500);  // of three events of each of a thousand grains
}

TEST_CASE("each kind is a line of JSON and comes back") {
    for (const Event &e : each_kind()) {
        const std::string line = to_line(e);
        const auto back = event_of_line(line);
        REQUIRE(back);
        CHECK(*back == e);
    }
    CHECK(to_line(each_kind()[6]) ==
          R"({"time_s":1700000000.123,"event":"started","grain":7,"host":"h1","incarnation":3})");
    const auto wrong = [](const char *line) { return event_of_line(line).status().text; };
    CHECK(wrong("{") != "");
    CHECK(wrong(R"({"event":"closed"})") == "the key \"time_s\" is missing");
    CHECK(wrong(R"({"time_s":1,"event":"eaten"})") == "unknown event \"eaten\"");
    CHECK(wrong(R"({"time_s":1,"event":"submitted","grain":-1})") == about("\"grain\" 0 2147483647"));
    CHECK(wrong(R"({"time_s":1,"event":"submitted"})") == "the key \"grain\" is missing");
    CHECK(wrong(R"({"time_s":1,"event":"closed","grain":1})") == about("kind event not"));
}

TEST_CASE("a history knows what each grain could know") {
    History h;
    for (const Event &e : {event(Kind::opened, -1, 0, "", "p"), event(Kind::submitted, 1), event(Kind::submitted, 2),
                           event(Kind::started, 1, 1, "a"), event(Kind::started, 2, 1, "b"),
                           event(Kind::checkpoint, 2, 1), event(Kind::shown, 2, 1), event(Kind::finished, 1, 0),
                           event(Kind::handed_out, -1, 1), event(Kind::submitted, 3), event(Kind::killed, 2)})
        CHECK(told(h, e) == "");
    CHECK(h.whole);
    CHECK(h.grains[3].known == 1);
    CHECK(h.grains[3].peeked == std::vector<std::int32_t>{2});
    CHECK(h.grains[2].killed_after == 1);
    CHECK(h.grains[2].stays[0].checkpoints_ms.size() == 1);
    CHECK(h.grains[1].stays[0].reason == "finished");
    CHECK(told(h, event(Kind::started, 3, 1, "b")) == "");
    CHECK(told(h, event(Kind::forgotten, 3)) == "");
    CHECK(told(h, event(Kind::undone, 1)) == "");
    CHECK(told(h, event(Kind::set_back, -1, 0)) == "");
    CHECK(h.grains.count(3) == 0);
    CHECK(h.results == std::vector<std::int32_t>{-1});
}

TEST_CASE("a history complains about what cannot have been") {
    const auto after = [](std::initializer_list<Event> before, const Event &last) {
        History h;
        for (const Event &e : before) CHECK(h.take(e) == "");
        return h.take(last);
    };
    const Event opened = event(Kind::opened), one = event(Kind::submitted, 1), runs = event(Kind::started, 1, 1, "a");
    CHECK(after({opened, one}, one) == "grain 1 is submitted twice");
    CHECK(after({opened}, runs) == "grain 1 was never submitted");
    CHECK(after({opened, one}, event(Kind::finished, 1, 0)) == "grain 1 finishes without running");
    CHECK(after({opened, one, runs}, runs) == about("grain 1 although not"));
    CHECK(after({opened, one, runs}, event(Kind::finished, 1, 1)) == about("grain 1 finishes order"));
    CHECK(after({opened, one, runs}, event(Kind::left, 1, 0, "b")) == about("grain 1 leaves not"));
    CHECK(after({opened}, event(Kind::handed_out, -1, 1)) == about("results handed"));
    CHECK(after({opened, event(Kind::closed)}, one) == about("grain 1 submitted session"));
    CHECK(after({opened, one, runs, event(Kind::checkpoint, 1, 3)}, event(Kind::checkpoint, 1, 3)) ==
          about("grain 1 checkpoint"));
}

namespace {

// Any event of a few grains; what is said need not be true.
Event any_event(std::mt19937 &random, std::int32_t grains) {
    const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
    Event e;
    do e.kind = static_cast<Kind>(1 + below(static_cast<std::uint32_t>(last_event_kind)));
    while (e.kind == Kind::imported && below(4) != 0);
    const bool of_session = e.kind <= Kind::imported || e.kind == Kind::handed_out || e.kind == Kind::set_back;
    e.grain = of_session ? -1 : static_cast<std::int32_t>(below(static_cast<std::uint32_t>(grains)));
    e.number = below(12);
    e.host = e.kind == Kind::started || e.kind == Kind::left ? "h1" : "";
    return e;
}

}  // namespace

TEST_CASE("what grains knew of results is the same for an import as for the whole history") {
    std::mt19937 random(20261123);
    const std::vector<std::int32_t> grains = {0, 1, 3, 4, 6};
    for (int round = 0; round < 3000; ++round) {
        History history;
        ResultsKnown known(grains);
        for (std::size_t i = 0; i < 40; ++i) {
            const Event e = i == 0 && round % 2 == 0 ? event(Kind::opened) : any_event(random, 7);
            history.take(e);
            known.take(e);
        }
        for (std::size_t i = 0; i < grains.size(); ++i) {
            CAPTURE(round, grains[i]);
            const auto found = history.grains.find(grains[i]);
            REQUIRE(known.at(i).told == (found != history.grains.end()));
            if (found == history.grains.end()) continue;
            CHECK(known.at(i).known == found->second.known);
            CHECK(known.at(i).killed_after == found->second.killed_after);
        }
    }
}

TEST_CASE("a log costs by its bytes, whatever it says") {
    // Places of results that no party has: each event would have made the list a hundred million places longer.
    History jumps;
    for (std::uint32_t i = 0; i < 20; ++i) jumps.take(event(Kind::finished, 1, (i + 1) * 100'000'000));
    CHECK(jumps.results.size() <= 20);
    // A million grains shown, and a million imports over them: each of these once cost all that stood before it.
    History many;
    for (std::int32_t i = 0; i < 1'000'000; ++i) many.take(event(Kind::shown, i, 1));
    CHECK(many.grains.size() == 1'000'000);
    for (std::int32_t i = 0; i < 1'000'000; ++i) many.take(event(Kind::imported));
    CHECK(many.grains.at(7).state == GrainState::unknown);
    many.take(event(Kind::submitted, 1'000'001));
    CHECK(many.grains.at(1'000'001).peeked.size() == 1'000'000);
    // A host's name is repeated by number: it must not be a book.
    std::vector<Event> none;
    const std::string long_name = framed({event(Kind::started, 1, 1, std::string(65, 'h'))});
    std::string_view left = long_name;
    CHECK(take_events(left, none).text == about("event cannot decoded"));
    const std::string just = framed({event(Kind::started, 1, 1, std::string(64, 'h'))});
    left = just;
    CHECK(take_events(left, none));
}
