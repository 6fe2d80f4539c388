// What a running grain has written and not reported: asked of its host, and relayed.
#include "pool.h"
#include "support/catch.h"

using namespace dcs;
using namespace dcs::test;

namespace {

// ann's grain 1:1 runs on h1, and has reported five bytes.
struct Running {
    Pool pool{{host("h1", 1), host("h2", 1)}};
    ModelServer first{pool, "h1"}, second{pool, "h2"};
    ConnId control = pool.control("ann", "prog"), reader = pool.open(turn::Door::user, "ann");
    const GrainKey key{{"ann", 1}, 1};

    Running() {
        pool.ask<wire::OpenReply>(control, wire::OpenSession{1, wire::OpenMode::open, false});
        pool.ask<wire::Done>(control, wire::Gexec{1, 1, copying_grain("hello grain")});
        first.connect();
        first.read();
        first.checkpoint(key, 5);
        first.read();
        second.connect();
        pool.ask<wire::Welcome>(reader, wire::Hello{});
        pool.outside->sent.clear();
    }
    static wire::Fetch live(std::uint64_t offset, wire::Stream stream = wire::Stream::out) {
        wire::Fetch fetch{"ann", 1, 1, stream, offset, 100, ""};
        fetch.live = true;
        return fetch;
    }
    // Posts it, and takes the question that the host is asked.
    wire::Peek asked(std::uint64_t offset, std::uint64_t &request, wire::Stream stream = wire::Stream::out) {
        request = pool.post(reader, live(offset, stream));
        pool.pump();
        const auto sent = pool.take_sent(first.conn());
        REQUIRE(sent.size() == 1);
        return std::get<wire::Peek>(sent[0]);
    }
};

}  // namespace

TEST_CASE("what the scheduler has is answered by itself, what follows by the host") {
    Running r;
    const auto recorded = r.pool.ask<wire::Piece>(r.reader, Running::live(2));
    CHECK((recorded.bytes == "llo" && recorded.recorded == 5 && recorded.incarnation == 1));
    std::uint64_t request = 0;
    const wire::Peek peek = r.asked(7, request, wire::Stream::err);
    CHECK((peek.key.grain == 1 && peek.incarnation == 1 && peek.after == 1 && peek.stream == wire::Stream::err));
    CHECK((peek.offset == 2 && peek.max == 100));
    CHECK(r.pool.take_sent(r.reader).empty());
    r.pool.post(r.first.conn(), wire::Peeked{peek.ticket, 6, "fghi"});
    r.pool.pump();
    const auto piece = std::get<wire::Piece>(r.pool.reply(r.reader, request));
    CHECK((piece.bytes == "fghi" && piece.total == 11 && piece.recorded == 5 && piece.incarnation == 1));
    // The same fetch without the word is about the record alone, as is one of another stream.
    CHECK(r.pool.ask<wire::Piece>(r.reader, wire::Fetch{"ann", 1, 1, wire::Stream::out, 7, 100, ""}).total == 5);
    CHECK(r.pool.ask<wire::Piece>(r.reader, Running::live(7, wire::Stream::message)).bytes == "5");
}

TEST_CASE("an answer counts for its question alone") {
    Running r;
    std::uint64_t request = 0;
    const wire::Peek peek = r.asked(5, request);
    for (const auto &[conn, ticket] : {std::pair{r.first.conn(), peek.ticket + 1}, {r.second.conn(), peek.ticket}}) {
        r.pool.post(conn, wire::Peeked{ticket, 6, "forged"});
        r.pool.pump();
        CHECK(r.pool.take_sent(r.reader).empty());
    }
    SECTION("another question on the same connection takes its place") {
        std::uint64_t later = 0;
        const wire::Peek next = r.asked(5, later);
        r.pool.post(r.first.conn(), wire::Peeked{peek.ticket, 6, "old"});
        r.pool.post(r.first.conn(), wire::Peeked{next.ticket, 3, "new"});
        r.pool.pump();
        CHECK(std::get<wire::Piece>(r.pool.reply(r.reader, later)).bytes == "new");
    }
    SECTION("no more than was asked for") {
        r.pool.post(r.first.conn(), wire::Peeked{peek.ticket, 500, std::string(500, 'x')});
        r.pool.pump();
        CHECK(std::get<wire::Piece>(r.pool.reply(r.reader, request)).bytes.size() == 100);
    }
}

TEST_CASE("a host that is silent, or goes, has nothing to say") {
    Running r;
    std::uint64_t request = 0;
    (void)r.asked(5, request);
    SECTION("silent") {
        const Instant due = r.pool.turn->next_wakeup();
        CHECK(due <= r.pool.outside->clock + seconds(2));
        r.pool.outside->clock = r.pool.outside->clock + seconds(2);
        r.pool.pump();
    }
    SECTION("gone") {
        r.first.disconnect();
        r.pool.pump();
    }
    const auto piece = std::get<wire::Piece>(r.pool.reply(r.reader, request));
    CHECK((piece.bytes.empty() && piece.total == 5 && piece.recorded == 5));
}

TEST_CASE("who asked may go before the answer comes") {
    Running r;
    std::uint64_t request = 0;
    const wire::Peek peek = r.asked(5, request);
    r.pool.hang_up(r.reader);
    r.pool.pump();
    r.pool.post(r.first.conn(), wire::Peeked{peek.ticket, 1, "x"});
    r.pool.pump();
    CHECK(r.pool.take_sent(r.reader).empty());
}

TEST_CASE("a stranger is not told, and a nice session waits behind the others") {
    Running r;
    const ConnId eve = r.pool.control("eve", "prog");
    CHECK(r.pool.refusal(eve, Running::live(5)) == Code::refused);
    CHECK(r.pool.refusal(eve, wire::SetSession{"ann", 1, 3}) == Code::refused);
    CHECK(r.pool.refusal(r.control, wire::SetSession{"", 1, 20}) == Code::invalid);
    CHECK(r.pool.refusal(r.control, wire::SetSession{"", 9, 1}) == Code::session_unknown);
    r.pool.ask<wire::Done>(r.control, wire::SetSession{"", 1, 3, true, "night"});
    wire::Query query;
    query.type = wire::QueryType::sessions;
    const auto own = r.pool.ask<wire::QueryReply>(r.control, query).sessions.at(0);
    CHECK((own.nice == 3 && own.label == "night"));
    const auto others = r.pool.ask<wire::QueryReply>(eve, query).sessions.at(0);
    CHECK((others.nice == 3 && others.label.empty() && others.command.empty()));
    r.pool.verify();
    r.pool.ask<wire::Done>(r.control, wire::CloseSession{"", 1, -1});
    CHECK(r.pool.refusal(r.control, wire::SetSession{"ann", 1, 1}) == Code::session_closed);
}

TEST_CASE("a host is asked a few questions at a time, however many a user has") {
    Running r;
    std::uint64_t last = 0;
    std::vector<std::uint64_t> tickets;
    const auto flood = [&] {
        for (int i = 0; i < 1000; ++i) last = r.pool.post(r.reader, Running::live(5));
        r.pool.pump();
        for (const wire::AnyMessage &sent : r.pool.take_sent(r.first.conn()))
            tickets.push_back(std::get<wire::Peek>(sent).ticket);
    };
    flood();
    CHECK(tickets.size() == 4);
    CHECK(std::get<wire::Piece>(r.pool.reply(r.reader, last)).total == 5);  // the host has nothing to say
    flood();
    CHECK(tickets.size() == 4);
    r.pool.take_sent(r.reader);
    r.pool.post(r.first.conn(), wire::Peeked{tickets[1], 6, "over"});
    r.pool.pump();
    CHECK(r.pool.take_sent(r.reader).empty());
    std::uint64_t request = 0;
    const wire::Peek peek = r.asked(5, request);
    r.pool.post(r.first.conn(), wire::Peeked{peek.ticket, 3, "new"});
    r.pool.pump();
    CHECK(std::get<wire::Piece>(r.pool.reply(r.reader, request)).bytes == "new");
}
