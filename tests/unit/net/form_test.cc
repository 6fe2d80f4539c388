// Two ends of a connection that may be of two releases.
#include "peers.h"
#include "support/about.h"

using namespace peers;
using namespace dcs;

namespace {

// A peer of release 0.1: it writes form 8 and knows no offers.
std::string old_frame(const wire::AnyMessage &message, std::uint64_t request) {
    std::string frame = *wire::encode(message, request, wire::positional_form);
    for (std::size_t i = 0; i < 8; ++i) frame[12 + i] = static_cast<char>(request >> (8 * i));
    return frame;
}

wire::AnyMessage message_in(const Arrival &arrival) {
    REQUIRE(arrival.what == What::frame);
    auto message = wire::decode_payload(arrival.header, arrival.payload);
    REQUIRE(message);
    return std::move(*message);
}

struct Pair {
    Server server{limits_of(100'000, 10'000, 10'000)};
    std::unique_ptr<Loop> client = Loop::create();
    Inbox inbox{*client};
    ConnId here = client->connect_unix(server.path(), limits_of(100'000, 10'000, 10'000)), there{};

    Pair() {
        REQUIRE(inbox.next().what == What::opened);
        there = server.inbox.next().conn;
    }
};

}  // namespace

TEST_CASE("two loops of this release speak the newest form from the first answer on") {
    Pair p;
    CHECK(p.client->form_of(p.here) == wire::opening_form);
    REQUIRE(p.client->send(p.here, wire::Hello{}, 7));
    (void)p.client->wait(Instant{0}, 0);
    const Arrival hello = p.server.inbox.next();
    CHECK(hello.header.protocol == wire::opening_form);
    CHECK(std::holds_alternative<wire::Hello>(message_in(hello)));
    CHECK(p.server.loop->form_of(p.there) == wire::newest_form);
    REQUIRE(p.server.loop->send(p.there, wire::Welcome{3, "ann"}, hello.header.request));
    (void)p.server.loop->wait(Instant{0}, 0);
    const Arrival welcome = p.inbox.next();
    CHECK(welcome.header.protocol == wire::newest_form);
    CHECK(std::get<wire::Welcome>(message_in(welcome)).user == "ann");
    CHECK(p.client->form_of(p.here) == wire::newest_form);
    REQUIRE(p.client->send(p.here, wire::ApproveHost{"h1", "words", 1}, 8));
    (void)p.client->wait(Instant{0}, 0);
    CHECK(std::get<wire::ApproveHost>(message_in(p.server.inbox.next())).replace == 1);
}

TEST_CASE("to a peer of release 0.1 nothing but its form is said, and what it would miss is not sent") {
    Server server(limits_of(100'000, 10'000, 10'000));
    const int fd = raw_connect(server.path());
    const ConnId conn = server.inbox.next().conn;
    REQUIRE(raw_send(fd, old_frame(wire::Hello{}, 1)));
    const Arrival hello = server.inbox.next();
    CHECK(hello.header.request == 1);
    REQUIRE(server.loop->send(conn, wire::Welcome{3, "ann"}, 1));
    const Status s = server.loop->send(conn, wire::ApproveHost{"h1", "words", 1}, 2);
    CHECK(s.code == Code::invalid);
    CHECK(s.text == about("protocol not ApproveHost"));
    (void)server.loop->wait(Instant{0}, 0);
    bool ended = false;
    const std::string want = old_frame(wire::Welcome{3, "ann"}, 1);
    CHECK(raw_drain(fd, &ended, want.size()) == want);
    ::close(fd);
}

TEST_CASE("a scheduler of release 0.1 gets form 8 from who called it, for as long as the connection is open") {
    Server server(limits_of(100'000, 10'000, 10'000));
    auto client = Loop::create();
    Inbox inbox(*client);
    const ConnId here = client->connect_unix(server.path(), limits_of(100'000, 10'000, 10'000));
    REQUIRE(inbox.next().what == What::opened);
    const ConnId there = server.inbox.next().conn;
    REQUIRE(client->send(here, wire::Hello{}, 7));
    (void)client->wait(Instant{0}, 0);
    const Arrival hello = server.inbox.next();
    server.loop->send(there, old_frame(wire::Welcome{3, "ann"}, hello.header.request));
    (void)server.loop->wait(Instant{0}, 0);
    CHECK(inbox.next().header.request == wire::offer_of(wire::our_forms));
    REQUIRE(client->send(here, wire::Gwait{1, 2, true}, 8));
    (void)client->wait(Instant{0}, 0);
    CHECK(server.inbox.next().header.protocol == wire::positional_form);
}

TEST_CASE("a peer that has no form in common with us is told both ranges, in a form that it reads") {
    Server server(limits_of(100'000, 10'000, 10'000));
    const int fd = raw_connect(server.path());
    (void)server.inbox.next();
    const std::uint64_t later = wire::offer_of({10, 12});
    REQUIRE(raw_send(fd, old_frame(wire::Hello{}, later) + old_frame(wire::Gwait{}, 5)));
    const Arrival closed = server.inbox.next();  // nothing of it counts
    CHECK(closed.what == What::closed);
    const std::string words =
        "the peer speaks protocol version 10 to 12, but this program speaks 8 to 9: upgrade "
        "this program";
    CHECK(closed.why == words);
    bool ended = false;
    const std::string all = raw_drain(fd, &ended);
    CHECK(all == old_frame(wire::ErrorReply{static_cast<std::int32_t>(Code::protocol), words}, 0));
    CHECK(ended);
    ::close(fd);
}
