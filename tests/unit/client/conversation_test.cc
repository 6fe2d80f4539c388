#include "client/conversation.h"
#include <vector>

#include "base/limits.h"
#include "c_calls.h"

using namespace dcs;
using namespace dcs::client;
using namespace dcs::test;

namespace {
struct Sent {
    std::uint64_t request;
    wire::AnyMessage message;
};
wire::FrameHeader header(std::uint64_t request) { return {0, wire::newest_form, 0, 0, request}; }
// Drives a conversation in virtual time and keeps what it sent.
struct Bench {
    Terms terms;
    Instant now{1'000'000'000};
    std::vector<Sent> sent;
    std::optional<Conversation> c;

    Bench() {
        terms.request = 77, terms.token = std::string(32, 't'), terms.seed = 1;
        terms.patience = seconds(5), terms.silence = seconds(20);
    }
    void start(const wire::AnyMessage &request = wire::Gwait{3, 4, false}) { c.emplace(request, terms, now); }
    Do what() const { return c->step().what; }
    void pass(Duration d) { now = now + d; }
    void send() {
        const Step step = c->step();
        REQUIRE(step.what == Do::send);
        auto header = wire::decode_header(step.bytes.substr(0, wire::header_bytes), 1 << 20);
        REQUIRE(header);
        auto message = wire::decode_payload(*header, step.bytes.substr(wire::header_bytes));
        REQUIRE(message);
        sent.push_back({header->request, *message});
        c->sent(now);
    }
    void receive(wire::AnyMessage m) {
        REQUIRE(what() == Do::receive);
        const bool greets = !sent.empty() && std::holds_alternative<wire::Hello>(sent.back().message);
        c->received(header(greets ? wire::offer_of(wire::our_forms) : 77), std::move(m), now);
    }
    void sleep() {
        REQUIRE(what() == Do::pause);
        now = c->step().until;
        c->paused(now);
    }
    void greet() {
        REQUIRE(what() == Do::connect);
        c->connected(now);
        send();
        receive(wire::Welcome{1, "ann"});
    }
};

}  // namespace

TEST_CASE("Hello first, then the request, then the reply") {
    Bench b;
    b.start();
    b.greet();
    REQUIRE(is<wire::Hello>(b.sent.at(0).message));
    CHECK(std::get<wire::Hello>(b.sent[0].message).token == std::string(32, 't'));
    CHECK(b.c->welcome()->user == "ann");
    b.send();
    CHECK(b.sent.at(1).request == 77);
    CHECK(std::get<wire::Gwait>(b.sent[1].message).next == 4);
    b.receive(wire::GrainResult{17});
    REQUIRE(b.what() == Do::done);
    REQUIRE(b.c->outcome());
    CHECK(std::get<wire::GrainResult>(*b.c->outcome()).grain == 17);
    CHECK(b.c->connection_good());
}

TEST_CASE("a connection that stands needs no second Hello") {
    Bench b;
    b.terms.greeted = true;
    b.start();
    b.send();
    REQUIRE(b.sent.size() == 1);
    CHECK(is<wire::Gwait>(b.sent[0].message));
    b.receive(wire::GrainResult{17});
    CHECK(b.c->outcome());
    CHECK(!b.c->welcome());
}

TEST_CASE("broken at any point, the same request goes out again under the same id") {
    for (int point = 0; point < 4; ++point) {
        INFO("broken at point " << point);
        Bench b;
        b.start();
        b.c->connected(b.now);
        if (point >= 1) b.send();                            // Hello left
        if (point >= 2) b.receive(wire::Welcome{1, "ann"});  // welcomed
        if (point >= 3) b.send();                            // request left
        b.c->broken("cut", b.now);
        REQUIRE(b.what() == Do::pause);
        CHECK(!b.c->connection_good());
        b.sent.clear();
        b.sleep();
        b.greet();
        b.send();
        REQUIRE(b.sent.size() == 2);
        CHECK(is<wire::Hello>(b.sent[0].message));
        CHECK(is<wire::Gwait>(b.sent[1].message));
        CHECK(b.sent[1].request == 77);
        b.receive(wire::GrainResult{17});
        CHECK(b.c->outcome());
    }
}

TEST_CASE("no party listens until patience ends: unreachable") {
    Bench b;
    b.start();
    const Instant begin = b.now;
    int attempts = 0;
    while (b.what() != Do::done) {
        REQUIRE(b.what() == Do::connect);
        b.c->refused("connection refused", false, b.now);
        ++attempts;
        if (b.what() == Do::pause) b.sleep();
    }
    REQUIRE(!b.c->outcome());
    CHECK(b.c->outcome().status().code == Code::unreachable);
    CHECK(b.c->outcome().status().text.find("connection refused") != std::string::npos);
    CHECK((b.now - begin) == seconds(5));  // the last attempt is made at the very end
    CHECK(attempts >= 8);
    CHECK(attempts <= 20);
}

TEST_CASE("pauses grow from 50 ms to 1 s, with jitter") {
    Bench b;
    b.terms.patience = seconds(60);
    b.start();
    std::vector<std::int64_t> ms;
    for (int i = 0; i < 20; ++i) {
        b.c->refused("no", false, b.now);
        ms.push_back((b.c->step().until - b.now).ns / 1'000'000);
        b.sleep();
    }
    CHECK(ms[0] >= 25);
    CHECK(ms[0] <= 50);
    CHECK(ms[1] >= 50);
    CHECK(ms[1] <= 100);
    std::int64_t least = 10000, most = 0;
    for (std::size_t i = 6; i < ms.size(); ++i) {
        least = std::min(least, ms[i]);
        most = std::max(most, ms[i]);
    }
    CHECK(least >= 500);
    CHECK(most <= 1000);
    CHECK(most - least > 50);
}

TEST_CASE("a pool that does not exist is told at once") {
    Bench b;
    b.start();
    b.c->refused("no such directory", true, b.now);
    REQUIRE(b.what() == Do::done);
    CHECK(b.c->outcome().status().code == Code::unreachable);
}

TEST_CASE("once the request may have left, giving up says broken") {
    for (const bool whole : {true, false}) {
        Bench b;
        b.start();
        b.greet();
        if (whole) b.send();
        b.c->broken("cut", b.now);  // while sending, or while waiting
        while (b.what() != Do::done) {
            b.sleep();
            b.c->refused("connection refused", false, b.now);
        }
        CHECK(b.c->outcome().status().code == Code::broken);
    }
}

TEST_CASE("a break before the request left changes nothing: unreachable") {
    Bench b;
    b.start();
    b.c->connected(b.now);
    b.send();
    b.c->broken("cut", b.now);
    while (b.what() != Do::done) {
        b.sleep();
        b.c->refused("connection refused", false, b.now);
    }
    CHECK(b.c->outcome().status().code == Code::unreachable);
}

TEST_CASE("a scheduler that keeps crashing on the request does not hold the program for ever") {
    Bench b;
    b.start();
    const Instant begin = b.now;
    while (b.what() != Do::done) {
        b.greet();
        b.send();
        b.c->broken("cut", b.now);
        if (b.what() == Do::pause) b.sleep();
    }
    CHECK(b.c->outcome().status().code == Code::broken);
    CHECK((b.now - begin) <= seconds(6));
}

TEST_CASE("patience counts from the first trouble, not from the start of the call") {
    Bench b;
    b.start();
    b.greet();
    b.send();
    b.pass(seconds(19));  // a slow commit
    b.c->broken("cut", b.now);
    CHECK(b.what() == Do::pause);
}

TEST_CASE("an idle connection that broke costs no pause") {
    Bench b;
    b.terms.greeted = true;
    b.start();
    b.c->broken("cut", b.now);
    REQUIRE(b.what() == Do::connect);
    b.greet();
    b.send();
    b.c->broken("cut again", b.now);
    CHECK(b.what() == Do::pause);
}

TEST_CASE("a standing connection may be silent for so long, a parked wait for ever") {
    Bench b;
    b.start();
    b.greet();
    b.send();
    CHECK(b.c->step().until == b.now + seconds(20));
    Bench w;
    w.terms.for_ever = true;
    w.start(wire::Gwait{3, 4, true});
    w.c->connected(w.now);
    w.send();
    CHECK(w.c->step().until == w.now + seconds(20));  // the Welcome is due
    w.receive(wire::Welcome{1, "ann"});
    w.send();
    CHECK(w.c->step().until == Instant::never());
}

TEST_CASE("a blocking wait outlasts any outage once a scheduler answered") {
    Bench b;
    b.terms.for_ever = true;
    b.start(wire::Gwait{3, 4, true});
    b.greet();
    b.send();
    b.pass(seconds(100000));
    b.c->broken("cut", b.now);
    for (int i = 0; i < 1000; ++i) {
        REQUIRE(b.what() == Do::pause);
        CHECK(b.c->step().until - b.now <= seconds(1));
        b.sleep();
        b.c->refused("connection refused", i % 2 == 0, b.now);
    }
    b.sleep();
    b.greet();
    b.send();
    CHECK(b.sent.back().request == 77);
    b.receive(wire::GrainResult{17});
    CHECK(b.c->outcome());
}

TEST_CASE("a blocking wait of a process that met no scheduler has patience only") {
    Bench b;
    b.terms.for_ever = true;
    b.start(wire::Gwait{3, 4, true});
    for (int i = 0; b.what() != Do::done; ++i) {
        REQUIRE(i < 100);
        b.c->refused("connection refused", false, b.now);
        if (b.what() == Do::pause) b.sleep();
    }
    CHECK(b.c->outcome().status().code == Code::unreachable);
    Bench met;
    met.terms.for_ever = met.terms.met = true;
    met.start(wire::Gwait{3, 4, true});
    for (int i = 0; i < 100; ++i) {
        met.c->refused("connection refused", false, met.now);
        met.sleep();
    }
    CHECK(met.what() == Do::connect);
}

TEST_CASE("a removal that is repeated and finds nothing has happened") {
    const wire::ErrorReply unknown{static_cast<std::int32_t>(Code::session_unknown), "no session 3"};
    for (const bool repeated : {false, true}) {
        for (const bool removal : {false, true}) {
            Bench b;
            b.start(removal ? wire::AnyMessage(wire::CleanSession{{}, 3}) : wire::Gwait{3, 4, false});
            b.greet();
            if (repeated) {
                b.send();
                b.c->broken("cut", b.now);
                b.sleep();
                b.greet();
            }
            b.send();
            b.receive(unknown);
            REQUIRE(b.what() == Do::done);
            CHECK(is<wire::Done>(*b.c->outcome()) == (repeated && removal));
            CHECK(b.c->connection_good());
        }
    }
}

TEST_CASE("error replies are replies") {
    Bench b;
    b.start();
    b.greet();
    b.send();
    b.receive(wire::ErrorReply{11, "differs"});
    REQUIRE(b.what() == Do::done);
    REQUIRE(b.c->outcome());
    CHECK(std::get<wire::ErrorReply>(*b.c->outcome()).code == 11);
    CHECK(b.c->connection_good());
}

TEST_CASE("an error instead of the Welcome, or about the connection, ends call and connection") {
    Bench b;
    b.start();
    b.c->connected(b.now);
    b.send();
    b.receive(wire::ErrorReply{3, "no such token"});
    REQUIRE(b.what() == Do::done);
    CHECK(std::get<wire::ErrorReply>(*b.c->outcome()).code == 3);
    CHECK(!b.c->connection_good());
    Bench d;
    d.start();
    d.greet();
    d.send();
    d.c->received(header(0), wire::ErrorReply{18, "too many connections"}, d.now);
    REQUIRE(d.what() == Do::done);
    CHECK(std::get<wire::ErrorReply>(*d.c->outcome()).code == 18);
    CHECK(!d.c->connection_good());
}

TEST_CASE("a scheduler of an older epoch is no scheduler") {
    Bench b;
    b.terms.epoch = 2;
    b.start();
    b.c->connected(b.now);
    b.send();
    b.receive(wire::Welcome{1, "ann"});  // nothing was asked of it
    b.sleep();
    b.c->connected(b.now);
    b.send();
    b.receive(wire::Welcome{2, "ann"});
    CHECK(b.what() == Do::send);
    CHECK(b.sent.size() == 2);
    CHECK(b.c->welcome()->epoch == 2);
}

TEST_CASE("who does not know us settles it only when there is no other address") {
    Bench b;
    b.terms.others = 1;
    b.start();
    for (const bool last : {false, true}) {
        b.c->connected(b.now);
        b.send();
        b.receive(wire::ErrorReply{3, "no such token"});
        if (!last) b.sleep();
    }
    REQUIRE(b.what() == Do::done);
    CHECK(std::get<wire::ErrorReply>(*b.c->outcome()).code == 3);
}

TEST_CASE("a reply to another request, or nonsense, is not repeated") {
    for (const bool error : {false, true}) {
        Bench b;
        b.start();
        b.greet();
        b.send();
        const wire::AnyMessage many = wire::ErrorReply{18, "too many"}, result = wire::GrainResult{17};
        b.c->received(header(78), error ? many : result, b.now);
        REQUIRE(b.what() == Do::done);
        CHECK(b.c->outcome().status().text == std::string("the answer does not follow the DCS protocol: ") +
                                                  (error ? "an error reply" : "a reply") + " to another request");
        CHECK(!b.c->connection_good());
    }
    Bench g;
    g.start();
    g.c->connected(g.now);
    g.send();
    g.c->nonsense(fail(Code::protocol, "this is not a DCS frame"));
    REQUIRE(g.what() == Do::done);
    CHECK(g.c->outcome().status().code == Code::protocol);
    Bench w;
    w.start();
    w.c->connected(w.now);
    w.send();
    w.receive(wire::Done{});  // where Welcome was due
    REQUIRE(w.what() == Do::done);
    CHECK(w.c->outcome().status().code == Code::protocol);
}
