// Joining, in frames: what survives the scheduler's death, what is on the disk, what a full disk does to it.
#include "pki/authority.h"
#include "pool.h"
#include "scheduler/record/codec.h"
#include "support/catch.h"

using namespace dcs;
using namespace dcs::test;

namespace {

struct Joiner {
    std::string key = pki::new_key();
    wire::JoinHost call(const std::string &token, const std::string &host = "") const {
        return wire::JoinHost{wire::opening_form, host, "box", token, *pki::make_request(key)};
    }
    TokenHash hash() const { return pki::sha256(*pki::public_key_of(key)); }
};

std::string code_for(Pool &pool, const std::string &host) {
    const ConnId root = pool.open(turn::Door::user, "root", true);
    pool.ask<wire::Welcome>(root, wire::Hello{});
    const auto made = pool.ask<wire::TokenCreated>(root, wire::CreateToken{host, 3600});
    CHECK(made.address == "pool:7001");
    return made.token;
}

bool on_disk(const Pool &pool, const std::string &bytes) {
    for (const auto &[path, content] : pool.disk.files())
        if (content.find(bytes) != std::string::npos) return true;
    return false;
}

}  // namespace

TEST_CASE("what joining has left survives") {
    Pool pool({host("h1", 1), host("h2", 1)});
    const std::string code = code_for(pool, "h1"), other = code_for(pool, "h2");
    const Joiner h1;
    ConnId conn = pool.open(turn::Door::join, "a stranger");
    const auto joined = pool.ask<wire::Joined>(conn, h1.call(code));
    CHECK(joined.host == "h1");
    CHECK(joined.certificate == "certificate of h1");
    CHECK(pool.outside->closed.back() == conn);
    CHECK_FALSE(on_disk(pool, code));
    const core::Member member = pool.turn->state().trust.members.at(h1.hash());
    CHECK(member.expires_s == member.joined_s + pki::certificate_life_s);
    pool.verify();
    pool.restart();
    pool.verify();
    CHECK(pool.turn->state().trust.members.at(h1.hash()) == member);
    CHECK(pool.turn->state().trust.keys == std::map<std::string, TokenHash>{{"h1", h1.hash()}});
    conn = pool.open(turn::Door::join, "a stranger");
    CHECK(pool.ask<wire::Joined>(conn, h1.call(code)).host == "h1");
    conn = pool.open(turn::Door::join, "a stranger");
    CHECK(pool.refusal(conn, Joiner().call(code)) == Code::refused);
    conn = pool.open(turn::Door::join, "a stranger");
    CHECK(pool.ask<wire::Joined>(conn, Joiner().call(other)).host == "h2");
}

TEST_CASE("a host without a certificate may ask for one, in one way only") {
    Pool pool({host("h1", 1)});
    const std::string code = code_for(pool, "h1");
    const auto refused = [&](const wire::AnyMessage &message, Code why) {
        const ConnId conn = pool.open(turn::Door::join, "a stranger");
        CHECK(pool.refusal(conn, message) == why);
        CHECK(pool.outside->closed.back() == conn);
    };
    wire::FirstCall first;
    first.host = "h1";
    refused(first, Code::refused);
    refused(wire::Hello{}, Code::refused);
    refused(wire::CreateToken{"h1", 60}, Code::refused);
    refused(wire::CallIn{}, Code::refused);
    const Joiner h1;
    wire::JoinHost call = h1.call(code);
    call.request[call.request.size() - 1] = static_cast<char>(call.request.back() ^ 1);
    refused(call, Code::invalid);
    call = h1.call(code);
    call.request = "no request";
    refused(call, Code::invalid);
    refused(h1.call(code.substr(1)), Code::invalid);
    // A control program cannot pose as a host.
    const ConnId user = pool.open(turn::Door::user, "ann");
    pool.ask<wire::Welcome>(user, wire::Hello{});
    CHECK(pool.refusal(user, h1.call(code)) == Code::protocol);
    CHECK(pool.turn->state().trust.keys.empty());
}

TEST_CASE("a full disk lets no party in, and says so") {
    Pool pool({host("h1", 1)});
    const std::string code = code_for(pool, "h1");
    REQUIRE(pool.store->flush().answer == store::Answer::done);
    pool.disk.set_capacity(0);
    const Joiner h1;
    ConnId conn = pool.open(turn::Door::join, "a stranger");
    CHECK(pool.refusal(conn, h1.call(code)) == Code::no_space);
    CHECK(pool.outside->closed.back() == conn);
    CHECK(pool.turn->state().trust.keys.empty());
    pool.verify();
    pool.disk.set_capacity(~0ull);
    conn = pool.open(turn::Door::join, "a stranger");
    CHECK(pool.ask<wire::Joined>(conn, h1.call(code)).host == "h1");
    pool.verify();
}

TEST_CASE("damaged: no certificate counts any more") {
    Pool pool({host("h1", 1)});
    const Joiner h1;
    const ConnId conn = pool.open(turn::Door::join, "a stranger");
    pool.ask<wire::Joined>(conn, h1.call(code_for(pool, "h1")));
    REQUIRE(pool.store->flush().answer == store::Answer::done);
    const std::string path = "trust/table";
    const std::string good = pool.disk.files().at(path);
    for (std::size_t at = 0; at < good.size(); at += 7) {
        std::string bad = good;
        bad[at] = static_cast<char>(bad[at] ^ 0x40);
        CHECK_FALSE(record::decode_trust(bad));
        CHECK_FALSE(record::decode_trust(good.substr(0, at)));
    }
    CHECK_FALSE(record::decode_trust(good + "x"));
    CHECK(*record::decode_trust(good) == pool.turn->state().trust);
}

TEST_CASE("a host is removed, and its line with it") {
    Pool pool({host("h1", 1)});
    const ConnId conn = pool.open(turn::Door::join, "a stranger");
    pool.ask<wire::Joined>(conn, Joiner().call(code_for(pool, "h1")));
    const ConnId root = pool.open(turn::Door::user, "root", true);
    pool.ask<wire::Welcome>(root, wire::Hello{});
    pool.ask<wire::Done>(root, wire::RemoveHost{"h1"});
    CHECK(pool.outside->removed_lines == std::vector<std::string>{"h1"});
    CHECK(pool.turn->state().trust.keys.empty());
    pool.verify();
    pool.outside->line_stays = fail(Code::io_error, "read-only");
    pool.turn->take_host_table({host("h2", 1)});
    pool.pump();
    CHECK(pool.refusal(root, wire::RemoveHost{"h2"}) == Code::io_error);
}
