// How long a turn is by what one user asks.
#include "base/load_limits.h"
#include "pool.h"
#include "support/about.h"

using namespace dcs;
using namespace dcs::test;

namespace {

// Messages of that kind sent to a connection so far.
template <class Message> std::size_t sent_to(const Pool &pool, ConnId conn) {
    std::size_t n = 0;
    for (const Sent &sent : pool.outside->sent) n += sent.conn == conn && std::holds_alternative<Message>(sent.message);
    return n;
}

}  // namespace

TEST_CASE("a user who exports without end has a page of a turn, and others are read between") {
    Pool pool({host("h1", 1)});
    const ConnId ann = pool.control("ann", "prog"), bob = pool.control("bob", "prog");
    pool.ask<wire::OpenReply>(ann, wire::OpenSession{1, wire::OpenMode::open, false});
    constexpr int grains = 3 * static_cast<int>(limits::export_page_grains);
    for (int g = 0; g < grains; ++g) pool.ask<wire::Done>(ann, wire::Gexec{1, g, copying_grain("")});
    const auto whole = pool.ask<wire::ExportReply>(ann, wire::ExportPage{"", 1, -1, 0});
    CHECK(whole.grains.size() == limits::export_page_grains);
    CHECK(whole.more);
    pool.outside->sent.clear();
    for (int i = 0; i < 100; ++i) pool.post(ann, wire::ExportPage{"", 1, -1, 0});
    pool.outside->tick = milliseconds(1);
    pool.turn->run();  // then what has arrived meanwhile is read
    const std::size_t before = sent_to<wire::ExportReply>(pool, ann);
    CHECK(before >= 1);
    CHECK(before <= 3);
    pool.post(bob, wire::Query{});
    for (int i = 0; i < 100 && sent_to<wire::QueryReply>(pool, bob) == 0; ++i) pool.turn->run();
    CHECK(sent_to<wire::QueryReply>(pool, bob) == 1);
    CHECK(sent_to<wire::ExportReply>(pool, ann) - before <= 3);
    pool.outside->tick = {};
    pool.pump();
    CHECK(sent_to<wire::ExportReply>(pool, ann) == 100);
}

TEST_CASE("a question about many grains ends the turn by what they were submitted with") {
    Pool pool({host("h1", 1)});
    const ConnId ann = pool.control("ann", "prog"), bob = pool.control("bob", "prog");
    pool.ask<wire::OpenReply>(ann, wire::OpenSession{1, wire::OpenMode::open, false});
    wire::Query about;
    about.type = wire::QueryType::grain;
    about.session = about.grain = 1;
    constexpr std::size_t bytes = 20'000;
    for (int g = 1; g <= 64; ++g) {
        pool.ask<wire::Done>(ann, wire::Gexec{1, g, copying_grain(std::string(bytes, 'x'))});
        about.with.push_back(g);
    }
    about.with.insert(about.with.end(), 64, 2);  // once is enough
    const auto rows = pool.ask<wire::QueryReply>(ann, about).grains.size();
    CHECK(rows >= 5);
    CHECK(rows * bytes < (300u << 10));  // the rest is asked for again
    about.with.assign(64, 2);
    CHECK(pool.ask<wire::QueryReply>(ann, about).grains.size() == 2);
    for (int g = 1; g <= 64; ++g) about.with.push_back(g);
    const auto has_the_turn_alone = [&](ConnId asker, const wire::AnyMessage &call, auto answers_to) {
        pool.outside->sent.clear();
        pool.outside->tick = milliseconds(1);
        for (int i = 0; i < 100; ++i) pool.post(asker, call);
        pool.turn->run();
        const std::size_t before = answers_to(asker);
        CHECK(before >= 1);
        CHECK(before <= 2);
        pool.post(bob, wire::Query{});
        for (int i = 0; i < 100 && sent_to<wire::QueryReply>(pool, bob) == 0; ++i) pool.turn->run();
        CHECK(sent_to<wire::QueryReply>(pool, bob) == 1);
        CHECK(answers_to(asker) - before <= 3);
        pool.outside->tick = {};
        pool.pump();
        CHECK(answers_to(asker) == 100);
    };
    has_the_turn_alone(ann, about, [&](ConnId conn) { return sent_to<wire::QueryReply>(pool, conn); });
    // One with a large input; its export; and another grain in its place, which is compared.
    pool.ask<wire::OpenReply>(ann, wire::OpenSession{2, wire::OpenMode::resume, false});
    pool.ask<wire::Done>(ann, wire::Gexec{2, 1, copying_grain(std::string(2u << 20, 'x'))});
    about.session = 2;
    about.with.clear();
    has_the_turn_alone(ann, about, [&](ConnId conn) { return sent_to<wire::QueryReply>(pool, conn); });
    has_the_turn_alone(ann, wire::ExportPage{"", 2, -1, 0},
                       [&](ConnId conn) { return sent_to<wire::ExportReply>(pool, conn); });
    pool.hang_up(ann);
    const ConnId again = pool.control("ann", "prog");
    pool.ask<wire::OpenReply>(again, wire::OpenSession{2, wire::OpenMode::resume, false});
    has_the_turn_alone(again, wire::Gexec{2, 1, copying_grain("y")},
                       [&](ConnId conn) { return sent_to<wire::ErrorReply>(pool, conn); });
}

TEST_CASE("what only reads ends its turn when it has had its time") {
    Pool pool({host("h1", 1)});
    const ConnId ann = pool.control("ann", "prog"), bob = pool.control("bob", "prog");
    pool.outside->sent.clear();
    for (int i = 0; i < 100; ++i) pool.post(ann, wire::Query{});
    pool.outside->tick = milliseconds(1);
    pool.turn->run();
    const std::size_t before = sent_to<wire::QueryReply>(pool, ann);
    CHECK(before >= 1);
    CHECK(before <= limits::own_turn_ms);
    pool.post(bob, wire::Query{});
    for (int i = 0; i < 100 && sent_to<wire::QueryReply>(pool, bob) == 0; ++i) pool.turn->run();
    CHECK(sent_to<wire::QueryReply>(pool, ann) - before <= limits::own_turn_ms);
    pool.outside->tick = {};
    pool.pump();
    CHECK(sent_to<wire::QueryReply>(pool, ann) == 100);
}

TEST_CASE("tables that are reread at the end of a long turn are no standstill of the scheduler") {
    Pool pool({host("h1", 1)});
    const ConnId root = pool.open(turn::Door::user, "root", true);
    pool.ask<wire::Welcome>(root, wire::Hello{});
    pool.outside->reread = [&] {
        pool.turn->take_policy(core::Policy());
        pool.outside->tick = milliseconds(400);  // the turn has had its time
        return Status::ok();
    };
    pool.outside->lines.clear();
    pool.post(root, wire::Reload{});
    pool.turn->run();
    pool.outside->tick = {};
    pool.turn->run();
    for (const std::string &line : pool.outside->lines) CHECK(line.find("stood still") == std::string::npos);
    CHECK(sent_to<wire::Done>(pool, root) == 1);
}

TEST_CASE("a machine that is suspended in the middle of a turn is no host's silence") {
    Pool pool({host("h1", 1)});
    const ConnId root = pool.open(turn::Door::user, "root", true);
    pool.ask<wire::Welcome>(root, wire::Hello{});
    ModelServer server(pool, "h1");
    server.connect();
    pool.outside->reread = [&] {
        pool.outside->clock = pool.outside->clock + seconds(3600);
        return Status::ok();
    };
    pool.outside->lines.clear();
    pool.post(root, wire::Reload{});
    pool.pump();
    const auto said = [&](const std::string &words) {
        return std::ranges::any_of(pool.outside->lines,
                                   [&](const std::string &line) { return line.find(words) != std::string::npos; });
    };
    CHECK(said("the scheduler stood still for 3600 s"));
    CHECK_FALSE(said("is dead"));
}
