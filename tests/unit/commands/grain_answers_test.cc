// What the commands about grains say when the scheduler refuses them something, or shows what cannot be; and `dcs top`.
#include <algorithm>
#include <atomic>

#include "command_bench.h"
#include "support/about.h"
#include "support/catch.h"
#include "wire/event_log.h"

using namespace dcs;
using namespace dcs::test;
using Reply = CommandBench::Reply;

namespace {

const wire::Query *query_of(const wire::AnyMessage &m, wire::QueryType type) {
    const auto *query = std::get_if<wire::Query>(&m);
    return query != nullptr && query->type == type ? query : nullptr;
}

wire::Event event(wire::EventKind kind, std::int32_t grain, std::uint32_t number = 0) {
    wire::Event e;
    e.kind = kind;
    e.grain = grain;
    e.number = number;
    return e;
}

void show_log(CommandBench &bench, const std::vector<wire::Event> &events) {
    wire::EventFrame frame;
    for (const wire::Event &e : events) frame.add(e);
    const std::string log = frame.framed(1'700'000'000'000);
    bench.answer([log](const wire::AnyMessage &m) {
        const auto *fetch = std::get_if<wire::Fetch>(&m);
        if (fetch == nullptr || fetch->stream != wire::Stream::log) return Reply();
        return Reply(wire::Piece{log.size(), log.substr(std::min<std::size_t>(fetch->offset, log.size()))});
    });
}

}  // namespace

TEST_CASE("what dcs doctor quotes of hosts and grains does not reach a terminal as it is") {
    CommandBench bench;
    bench.answer([](const wire::AnyMessage &m) -> CommandBench::Reply {
        if (!std::holds_alternative<wire::Doctor>(m)) return {};
        wire::DoctorReply reply;
        reply.problems.push_back({"grain 1:1", "f\a", "said \x1b[2J\nall is well", "a\r", "b\x9b"});
        return wire::AnyMessage(reply);
    });
    const Said said = bench.dcs({"doctor"});
    INFO(said.text);
    for (const char c : said.text) CHECK((c == '\n' || (c >= ' ' && c <= '~')));
    CHECK(said.text.find("said ") != std::string::npos);
    CHECK(said.text.find("\nall is well") == std::string::npos);
}

TEST_CASE("grains that cannot be shown") {
    CommandBench bench;
    bench.answer([](const wire::AnyMessage &m) {
        return query_of(m, wire::QueryType::grain) != nullptr ? Reply(disk_full) : Reply();
    });
    check(bench.dcs({"grain", "show", "2:1"}), 1, "dcs: grain 2:1: " + no_room);
    std::atomic<int> asked{0};
    bench.answer([&](const wire::AnyMessage &m) {
        if (query_of(m, wire::QueryType::grain) == nullptr || asked++ == 0) return Reply();
        return Reply(wire::QueryReply{});
    });
    check(bench.dcs({"grain", "show", "2:1"}), 3, "dcs: there is no grain 2:1\n");
}

TEST_CASE("what many grains were submitted with is asked for in groups, of an earlier release one by one") {
    const auto detail = [](const wire::Query &q, std::int32_t number) {
        wire::GrainRow row;
        row.user = own_name(), row.session = q.session, row.grain = number, row.state = "ready";
        if (q.type == wire::QueryType::grain) row.argv = {"true"}, row.label = "curve " + std::to_string(number);
        return row;
    };
    const auto questions = [](CommandBench &bench) {
        const auto all = bench.fake.all<wire::Query>();
        return std::count_if(all.begin(), all.end(),
                             [](const auto &q) { return q.second.type == wire::QueryType::grain; });
    };
    std::string texts[2];
    for (const bool earlier : {false, true}) {
        CommandBench bench;
        bench.answer([&](const wire::AnyMessage &m) {
            const auto *query = std::get_if<wire::Query>(&m);
            wire::QueryReply reply;
            if (query == nullptr || query->session != 1) return Reply();
            if (query->type == wire::QueryType::grains)
                for (int number = 1; number <= 300; ++number) reply.grains.push_back(detail(*query, number));
            if (query->type == wire::QueryType::grain) {
                if (query->grain == 200) return Reply(disk_full);  // its parameters are damaged
                reply.grains.push_back(detail(*query, query->grain));
                for (const std::int32_t number : query->with)
                    if (!earlier && number != 200) reply.grains.push_back(detail(*query, number));
            }
            return query->type == wire::QueryType::sessions ? Reply() : Reply(reply);
        });
        const Said said = bench.dcs({"grain", "ls", "1", "-o", "json"});
        CHECK(said.exit == 0);
        CHECK(questions(bench) == (earlier ? 300 : 4));
        CHECK(said.text.find(R"("label":"curve 199")") < said.text.find(R"("label":"curve 201")"));
        CHECK(said.text.find(R"("grain":200)") != std::string::npos);
        CHECK(said.text.find("curve 200") == std::string::npos);
        texts[earlier] = said.text;
    }
    CHECK(texts[0] == texts[1]);
}

TEST_CASE("outputs of grains that cannot be fetched") {
    CommandBench bench;
    bench.refuse<wire::Fetch>(disk_full);
    check(bench.dcs({"grain", "cat", "2:1"}), 1, "dcs: the stream out of grain 2:1: " + no_room);
    check(bench.dcs({"grain", "cat", "--file", "made", "2:1"}), 1, "dcs: the file made of grain 2:1: " + no_room);
}

TEST_CASE("the pool's hosts that cannot be shown") {
    CommandBench bench;
    bench.answer([](const wire::AnyMessage &m) {
        return query_of(m, wire::QueryType::hosts) != nullptr ? Reply(disk_full) : Reply();
    });
    check(bench.dcs({"top", "--once"}), 1, "dcs: the pool's hosts: " + no_room);
}

TEST_CASE("what goes with a result that is forgotten, and the question whether it may") {
    using wire::EventKind;
    CommandBench bench;
    std::vector<wire::Event> log = {
        event(EventKind::opened, -1),    event(EventKind::submitted, 1),   event(EventKind::submitted, 2),
        event(EventKind::started, 1, 1), event(EventKind::finished, 1, 0), event(EventKind::handed_out, -1, 1),
        event(EventKind::submitted, 3),  event(EventKind::killed, 2),      event(EventKind::handed_out, -1, 2)};
    show_log(bench, log);
    const std::string told =
        "This discards the result of grain 2:1, and with it:\n"
        "  the delivery of results from 0 on (2 of 2)\n"
        "  1 submission that followed, with all their data: 3\n"
        "  the kill of 1 grain, which runs again: 2\n"
        "The session becomes active again. Run prog again: it continues from there, unless the program has changed.\n";
    const std::vector<std::string> words = {"grain", "restart", "--and-after", "2:1"};
    check(bench.dcs(words, "n\n"), 1, told + "Discard it? [y/N] dcs: nothing was discarded\n");
    check(bench.dcs(words, "\x04"), 1, told + "Discard it? [y/N] dcs: nothing was discarded\n");
    CHECK(bench.fake.all<wire::RestartGrain>().empty());
    check(bench.dcs(words, "y\n"), 0, told + "Discard it? [y/N] grain 2:1 restarted, 1 submission discarded\n");
    const auto orders = bench.fake.all<wire::RestartGrain>();
    REQUIRE(orders.size() == 1);
    CHECK((orders[0].second.and_after && orders[0].second.forgets == 1));
    // Thirteen submissions are not all named.
    for (int grain = 4; grain <= 15; ++grain) log.push_back(event(EventKind::submitted, grain));
    show_log(bench, log);
    CHECK(bench.dcs(words).text.find("  13 submissions that followed, with all their data: 3, 4, 5, 6, 7, 8, 9, "
                                     "10, 11, 12, 13, 14, ...\n") != std::string::npos);
    // Nothing was handed out, and an active session stays active.
    show_log(bench, {event(EventKind::opened, -1), event(EventKind::submitted, 1), event(EventKind::started, 1, 1),
                     event(EventKind::finished, 1, 0)});
    check(bench.dcs({"grain", "restart", "--and-after", "--yes", "1:1"}, "n\n"), 0,
          "This discards the result of grain 1:1, and with it:\n  nothing else\n"
          "Run prog again: it continues from there, unless the program has changed.\n"
          "grain 1:1 restarted, 0 submissions discarded\n");
}

TEST_CASE("the log of a session says why a grain left a host") {
    using wire::EventKind;
    CommandBench bench;
    std::vector<wire::Event> log = {event(EventKind::opened, -1), event(EventKind::submitted, 1)};
    for (const char *reason : {"", "host_dead"}) {
        log.push_back(event(EventKind::started, 1, 1));
        log.push_back(event(EventKind::left, 1));
        log.back().text = reason;
        log[log.size() - 2].host = log.back().host = "h1";
    }
    show_log(bench, log);
    const std::string text = bench.dcs({"session", "log", "2"}).text;
    CHECK(text == about("grain 1 left h1: called back before it started"));
    CHECK(text == about("grain 1 left h1: host_dead"));
}

TEST_CASE("a result that cannot be forgotten") {
    CommandBench bench;
    bench.refuse<wire::RestartGrain>({static_cast<std::int32_t>(Code::session_active), "its program runs", -1});
    check(bench.dcs({"grain", "restart", "--and-after", "1:1"}), 1,
          "This discards the result of grain 1:1, and with it:\n  nothing else\n"
          "Run prog again: it continues from there, unless the program has changed.\n"
          "dcs: grain 1:1 was not restarted: its program runs\n");
}
