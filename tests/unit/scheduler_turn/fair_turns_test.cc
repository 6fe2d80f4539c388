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
