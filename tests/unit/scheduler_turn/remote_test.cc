// Control programs of other hosts, in frames: who is heard, what survives, whose connections end.
#include <algorithm>

#include "base/load_limits.h"
#include "pki/authority.h"
#include "pool.h"
#include "scheduler/record/codec.h"
#include "support/catch.h"

using namespace dcs;
using namespace dcs::test;

namespace {

constexpr std::int64_t wall = 1'000'000'000;  // of the pool

core::HostConfig source(const std::string &name) {
    core::HostConfig h;
    h.name = name;
    h.source = true;
    return h;
}

struct Desk {
    std::string key = pki::new_key(), program_key = pki::new_key();
    core::Certified certified() const { return {"desk1", pki::sha256(*pki::public_key_of(key)), wall + 100}; }
    core::Certified program(std::int64_t not_after_s = wall + 100) const {
        return {"desk1", pki::sha256(*pki::public_key_of(program_key)), not_after_s};
    }
    wire::BeginControl asking(const std::string &user = "ann") const {
        return {wire::opening_form, user, "find", *pki::public_key_of(program_key)};
    }
    void join(Pool &pool) const {
        const ConnId root = pool.open(turn::Door::user, "root", true);
        pool.ask<wire::Welcome>(root, wire::Hello{});
        const auto made = pool.ask<wire::TokenCreated>(root, wire::CreateToken{"desk1", 3600, 1});
        const ConnId conn = pool.open(turn::Door::join, "a stranger");
        wire::JoinHost call{wire::opening_form, "", "box", made.token, *pki::make_request(key), 1};
        CHECK(pool.ask<wire::Joined>(conn, call).certificate == "certificate of client desk1");
    }
    std::string begin(Pool &pool, const std::string &user = "ann") const {
        const ConnId conn = pool.open(turn::Door::begin, "host desk1", false, certified());
        const auto begun = pool.ask<wire::Begun>(conn, asking(user));
        CHECK(begun.certificate == "certificate of " + user + "/desk1/find");
        CHECK(pool.outside->closed.back() == conn);
        return begun.token;
    }
    ConnId connect(Pool &pool, const std::string &token, const std::string &user = "ann") const {
        const ConnId conn = pool.open(turn::Door::user, user, false, program());
        CHECK(pool.ask<wire::Welcome>(conn, wire::Hello{wire::opening_form, token}).user == user);
        return conn;
    }
};

}  // namespace

TEST_CASE("a program of another host works as one of this host, and its token survives") {
    Pool pool({host("h1", 1), source("desk1")});
    const Desk desk;
    desk.join(pool);
    const std::string token = desk.begin(pool);
    for (const auto &[path, content] : pool.disk.files()) CHECK(content.find(token) == std::string::npos);
    ConnId conn = desk.connect(pool, token);
    const auto own = pool.ask<wire::AuthReply>(conn, wire::GetAuth{"sweep"});
    pool.verify();
    pool.restart();
    pool.verify();
    conn = desk.connect(pool, own.token);
    pool.ask<wire::OpenReply>(conn, wire::OpenSession{1, wire::OpenMode::open, false});
    wire::GrainSpec spec;
    spec.argv = {"/bin/true"};
    pool.ask<wire::Done>(conn, wire::Gexec{1, 1, spec});
    pool.verify();
    // The same session from this host is a matter of the ident, not of the place.
    const ConnId here = pool.control("ann", "sweep");
    const auto resumed = pool.ask<wire::OpenReply>(here, wire::OpenSession{1, wire::OpenMode::resume, false});
    CHECK(resumed.as == wire::OpenedAs::resumed);
    CHECK(pool.refusal(conn, wire::Gexec{1, 2, spec}) == Code::session_taken);
}

TEST_CASE("without its token a program of another host is not heard at all") {
    Pool pool({host("h1", 1), source("desk1")});
    const Desk desk;
    desk.join(pool);
    const std::string token = desk.begin(pool);
    const ConnId here = pool.control("ann", "local");
    const std::string digest(32, 'd');
    const std::vector<wire::AnyMessage> calls = {
        wire::Query{},       wire::AskContents{{digest}},
        wire::GetAuth{"x"},  wire::PutContent{digest, 1, 0, "x"},
        wire::ImportPiece{}, wire::OpenSession{1, wire::OpenMode::open, false}};
    for (const std::string &bad : {std::string(), std::string(32, 'x')})
        for (const wire::AnyMessage &call : calls) {
            const ConnId conn = desk.connect(pool, bad);
            CHECK(pool.refusal(conn, call) == Code::no_auth);
        }
    const ConnId ben = desk.connect(pool, token, "ben");
    CHECK(pool.refusal(ben, wire::AskContents{{digest}}) == Code::no_auth);
    Desk other;
    other.key = desk.key;
    CHECK(pool.refusal(other.connect(pool, token), wire::AskContents{{digest}}) == Code::no_auth);
    pool.ask<wire::MissingContents>(desk.connect(pool, token), wire::AskContents{{digest}});
    pool.ask<wire::QueryReply>(here, wire::Query{});
}

TEST_CASE("an expired certificate ends its connection, in the middle too") {
    Pool pool({host("h1", 1), source("desk1")});
    const Desk desk;
    desk.join(pool);
    const std::string token = desk.begin(pool);
    ConnId conn = pool.open(turn::Door::user, "ann", false, desk.program(wall - 1));
    CHECK(pool.refusal(conn, wire::Hello{wire::opening_form, token}) == Code::no_auth);
    CHECK(pool.outside->closed.back() == conn);
    core::Certified old = desk.certified();
    old.not_after_s = wall - 1;
    conn = pool.open(turn::Door::begin, "host desk1", false, old);
    CHECK(pool.refusal(conn, desk.asking()) == Code::no_auth);
}

TEST_CASE("a wall clock that is set ends no connection that stands, and a certificate's time passes all the same") {
    Pool pool({host("h1", 1), source("desk1")});
    const Desk desk;
    desk.join(pool);
    const std::string token = desk.begin(pool);
    const ConnId conn = desk.connect(pool, token);  // 100 s are left
    for (const std::int64_t step : {3600L, -3600L, 315'360'000L, -315'360'000L}) {
        pool.outside->wall = wall + step;
        pool.ask<wire::QueryReply>(conn, wire::Query{});
    }
    pool.outside->clock = pool.outside->clock + seconds(99);
    pool.ask<wire::QueryReply>(conn, wire::Query{});
    pool.outside->clock = pool.outside->clock + seconds(2);
    CHECK(pool.refusal(conn, wire::Query{}) == Code::no_auth);
    CHECK(pool.outside->closed.back() == conn);
}

TEST_CASE("the host of a program may say two things") {
    Pool pool({host("h1", 1), source("desk1")});
    const Desk desk;
    desk.join(pool);
    const auto refused = [&](const wire::AnyMessage &message, Code why) {
        const ConnId conn = pool.open(turn::Door::begin, "host desk1", false, desk.certified());
        CHECK(pool.refusal(conn, message) == why);
        CHECK(pool.outside->closed.back() == conn);
    };
    refused(wire::Hello{}, Code::refused);
    refused(wire::FirstCall{}, Code::refused);
    refused(wire::CreateToken{}, Code::refused);
    wire::BeginControl call = desk.asking();
    call.public_key += "x";
    refused(call, Code::invalid);
    refused(desk.asking("root"), Code::refused);
    refused(desk.asking("../x"), Code::invalid);
    CHECK(pool.outside->looked_up.empty());
    pool.outside->login = fail(Code::refused, "unknown login");
    refused(desk.asking(), Code::refused);
    CHECK(pool.outside->looked_up == std::vector<std::string>{"ann"});
    pool.outside->login = Status::ok();
    pool.disk.set_capacity(0);
    REQUIRE(pool.store->flush().answer == store::Answer::done);
    refused(desk.asking(), Code::no_space);
    pool.disk.set_capacity(~0ull);
    desk.begin(pool);
    const ConnId local = pool.open(turn::Door::user, "ann");
    pool.ask<wire::Welcome>(local, wire::Hello{});
    CHECK(pool.refusal(local, desk.asking()) == Code::protocol);
}

TEST_CASE("a renewed certificate is for the same key") {
    Pool pool({host("h1", 1), source("desk1")});
    const Desk desk;
    desk.join(pool);
    const ConnId conn = desk.connect(pool, desk.begin(pool));
    const auto renewed = pool.ask<wire::Renewed>(conn, wire::RenewCertificate{*pki::make_request(desk.program_key)});
    CHECK(renewed.certificate == "certificate of ann/desk1/find");
    CHECK(pool.refusal(conn, wire::RenewCertificate{*pki::make_request(pki::new_key())}) == Code::refused);
    CHECK(pool.refusal(conn, wire::RenewCertificate{"x"}) == Code::invalid);
    const ConnId local = pool.control("ann", "here");
    CHECK(pool.refusal(local, wire::RenewCertificate{*pki::make_request(desk.program_key)}) == Code::protocol);
}

TEST_CASE("a host of control programs gets a new certificate for its key as long as it belongs to the pool") {
    Pool pool({host("h1", 1), source("desk1")});
    const Desk desk, other;
    const auto renewal = [](const std::string &key) { return wire::RenewCertificate{*pki::make_request(key)}; };
    const auto door = [&](const Desk &who) {
        return pool.open(turn::Door::begin, "host desk1", false, who.certified());
    };
    CHECK(pool.refusal(door(desk), renewal(desk.key)) == Code::refused);  // it has not joined
    desk.join(pool);
    const ConnId conn = door(desk);
    CHECK(pool.ask<wire::Renewed>(conn, renewal(desk.key)).certificate == "certificate of client desk1");
    CHECK(pool.outside->closed.back() == conn);
    CHECK(pool.refusal(door(desk), renewal(other.key)) == Code::refused);
    CHECK(pool.refusal(door(desk), wire::RenewCertificate{"x"}) == Code::invalid);
    other.join(pool);
    CHECK(pool.refusal(door(desk), renewal(desk.key)) == Code::refused);  // another machine has its name
    CHECK(pool.ask<wire::Renewed>(door(other), renewal(other.key)).certificate == "certificate of client desk1");
}

TEST_CASE("a key gets so many certificates at once and one a second, whoever else asks under its name") {
    Pool pool({host("h1", 1), source("desk1")});
    const Desk desk, former;
    former.join(pool);
    desk.join(pool);
    const auto renewal = [](const Desk &who) { return wire::RenewCertificate{*pki::make_request(who.key)}; };
    const auto door = [&](const Desk &who) {
        return pool.open(turn::Door::begin, "host desk1", false, who.certified());
    };
    for (std::size_t i = 0; i < limits::log_lines_at_once; ++i) pool.ask<wire::Renewed>(door(desk), renewal(desk));
    CHECK(pool.refusal(door(desk), renewal(desk)) == Code::limit);
    pool.outside->clock = pool.outside->clock + seconds(3);
    for (int i = 0; i < 3; ++i) pool.ask<wire::Renewed>(door(desk), renewal(desk));
    CHECK(pool.refusal(door(desk), renewal(desk)) == Code::limit);
    pool.outside->clock = pool.outside->clock + seconds(500);
    for (int i = 0; i < 500; ++i) pool.refusal(door(former), renewal(former));
    pool.ask<wire::Renewed>(door(desk), renewal(desk));
    // And a control program of a user there.
    const ConnId conn = desk.connect(pool, desk.begin(pool));
    const wire::RenewCertificate own{*pki::make_request(desk.program_key)};
    for (std::size_t i = 0; i < limits::log_lines_at_once; ++i) pool.ask<wire::Renewed>(conn, own);
    CHECK(pool.refusal(conn, own) == Code::limit);
}

TEST_CASE("the connections of a host that may not call any more end") {
    Pool pool({host("h1", 1), source("desk1")});
    const Desk desk;
    desk.join(pool);
    const std::string token = desk.begin(pool);
    const ConnId one = desk.connect(pool, token), two = desk.connect(pool, token), local = pool.control("ann", "here");
    pool.turn->take_host_table({host("h1", 1)});
    pool.pump();
    const auto &closed = pool.outside->closed;
    for (const ConnId conn : {one, two}) CHECK(std::find(closed.begin(), closed.end(), conn) != closed.end());
    CHECK(std::find(closed.begin(), closed.end(), local) == closed.end());
    pool.verify();
}

TEST_CASE("an authority that does not sign gives a program of another host nothing") {
    Pool pool({host("h1", 1), source("desk1")});
    const Desk desk;
    desk.join(pool);
    pool.outside->authority = false;
    const ConnId conn = pool.open(turn::Door::begin, "host desk1", false, desk.certified());
    const auto reply = pool.call(conn, desk.asking());
    REQUIRE(std::holds_alternative<wire::ErrorReply>(reply));
    CHECK(std::get<wire::ErrorReply>(reply).text == "this scheduler has no authority");
    CHECK(pool.outside->closed.back() == conn);
    pool.outside->authority = true;
    pool.ask<wire::Welcome>(desk.connect(pool, desk.begin(pool)), wire::Hello{});
    pool.verify();
}
