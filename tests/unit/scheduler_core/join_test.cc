// Hosts that join: who gets a certificate, whose certificate counts, and for how long.
#include "base/text.h"
#include "pool.h"
#include "scheduler/core/decisions.h"
#include "support/about.h"

using namespace dcs;
using namespace dcs::core;

namespace {

constexpr std::int64_t wall = 1'000'000;

struct Joining : Pool {
    Program root = stranger("root", true);
    Joining() {
        add_host("h1");
        add_host("h2");
        table();
        events.clear();
    }
    Lines create(int code, const std::string &host = "", std::int64_t ttl_s = 60, std::int64_t at = wall) {
        return call(root, CreateCode{host, HostRole::server, ttl_s, at, {}, numbered_hash(code), "pool:7001", "hash"});
    }
    static JoinCall asking(int code, int key, const std::string &host = "", const std::string &own_name = "box") {
        JoinCall c;
        c.conn = ConnId{7000};
        c.request = RequestId{1};
        c.host = host;
        c.own_name = own_name;
        c.address = "127.0.0." + std::to_string(key % 200);  // all of them are one
        c.has_code = code != 0;
        c.code = numbered_hash(code);
        c.key = numbered_hash(key);
        c.public_key = "public key";
        c.wall_s = wall;
        return c;
    }
    Lines join(int code, int key, const std::string &host = "", std::int64_t at = wall) {
        JoinCall c = asking(code, key, host);
        c.wall_s = at;
        return feed(c);
    }
    Lines certified_call(const std::string &as, const std::string &host, int key) {
        auto call = std::make_shared<wire::FirstCall>();
        call->host = as;
        return feed(ServerFirstCall{ConnId{++server_}, call, Certified{host, numbered_hash(key)}});
    }
    bool lets_in(const Lines &lines, const std::string &host) const {
        return lines == Lines{"7000: certificate of " + host, "close 7000"} ||
               (lines.size() == 3 && lines[1] == "7000: certificate of " + host);
    }
    static bool refuses(const Lines &lines, const std::string &why) {
        return lines.size() == 2 && lines[0] == about("7000: error " + why);
    }
    std::uint64_t server_ = 8000;
};

}  // namespace

TEST_CASE("a code lets one key in, which may repeat it") {
    Joining pool;
    CHECK(pool.create(1, "h1") == Lines{"root: TokenCreated"});
    CHECK(pool.touched_disk());
    CHECK(pool.lets_in(pool.join(1, 11), "h1"));
    CHECK(pool.touched_disk());
    CHECK(pool.events.back() ==
          about("audit host h1 joined 127.0.0.11 code 0100000000 root key " + in_words(numbered_hash(11))));
    CHECK(pool.lets_in(pool.join(1, 11), "h1"));
    CHECK_FALSE(pool.touched_disk());
    CHECK(Joining::refuses(pool.join(1, 12), "used host h1"));
    CHECK(pool.state.trust.keys == std::map<std::string, TokenHash>{{"h1", numbered_hash(11)}});
}

TEST_CASE("two hosts with one key are a problem: it was copied, and each can speak for the other") {
    Joining pool;
    const auto shared = [&] {
        pool.call(pool.root, wire::Doctor{});
        std::size_t n = 0;
        for (const Effect &e : pool.effects)
            if (const auto *reply = std::get_if<ReplyDoctor>(&e))
                for (const auto &p : reply->problems)
                    n += p.entity == "host h2" && p.problem == "has the same key as host h1";
        return n;
    };
    pool.create(1, "h1");
    pool.join(1, 11);
    CHECK(shared() == 0);
    pool.create(2, "h2");
    pool.join(2, 11, "h2");
    CHECK(shared() == 1);
}

TEST_CASE("a key that was removed or replaced stays refused, until its certificates have expired") {
    Joining pool;
    constexpr std::int64_t life = 90 * 24 * 3600;
    const auto joins = [&](int code, int key, std::int64_t at = wall) {
        JoinCall call = pool.asking(code, key, "h1");
        call.wall_s = at, call.until_s = at + life;
        return pool.feed(call);
    };
    const std::string why = "removed from the pool stays refused repeat --new-key";
    pool.create(1, "h1");
    CHECK(pool.lets_in(joins(1, 11), "h1"));
    SECTION("removed") { pool.call(pool.root, wire::RemoveHost{"h1"}); }
    SECTION("replaced") {
        pool.create(2, "h1");
        CHECK(pool.lets_in(joins(2, 12), "h1"));
    }
    pool.table();
    pool.create(3, "h1");
    CHECK(Joining::refuses(joins(3, 11), why));
    JoinCall without_code = pool.asking(0, 11, "h1");
    without_code.has_code = false;
    CHECK(Joining::refuses(pool.feed(without_code), why));
    CHECK(pool.state.pending.empty());
    CHECK(pool.state.trust.removed.size() == 1);
    CHECK(pool.lets_in(joins(3, 13), "h1"));  // the same code, which is not used up
    const std::int64_t after = wall + life + 2 * 24 * 3600;
    pool.call(pool.root, CreateCode{"h1", HostRole::server, 60, after, {}, numbered_hash(4), "pool:7001", "hash"});
    CHECK(pool.state.trust.removed.count(numbered_hash(11)) == 0);
}

TEST_CASE("codes that do not count") {
    Joining pool;
    pool.create(1, "h1");
    pool.create(2);
    const Trust before = pool.state.trust;
    CHECK(Joining::refuses(pool.join(9, 11), "is unknown"));
    CHECK(Joining::refuses(pool.join(1, 11, "h2"), "is for host h1, not for h2"));
    CHECK(Joining::refuses(pool.join(1, 11, "", wall + 60), "expired"));
    CHECK(Joining::refuses(pool.join(1, 11, "", wall - 31 * 24 * 3600), "expired"));  // made while the clock was ahead
    CHECK(Joining::refuses(pool.join(2, 11, "H1"), "\"H1\" not host table lists \"h1\" upper and lower case count"));
    CHECK(Joining::refuses(pool.join(2, 11), "\"box\" not host table"));
    CHECK(Joining::refuses(pool.join(2, 11, "../h1"), "a host's name is"));
    pool.state.backup_host.name = "vault";
    pool.state.sources["desk1"] = {};
    CHECK(pool.create(3, "vault").at(0) == about("root: error NOT_FOUND vault role=backup add --role backup"));
    CHECK(pool.create(3, "desk1").at(0) == about("root: error NOT_FOUND desk1 role=client add --role client"));
    CHECK(pool.state.trust == before);
    CHECK_FALSE(pool.touched_disk());
    pool.call(pool.root, wire::RevokeToken{id_of_code(numbered_hash(1))});
    CHECK(Joining::refuses(pool.join(1, 11), "is unknown"));
    CHECK(pool.lets_in(pool.join(2, 11, "h1", wall + 59), "h1"));
}

TEST_CASE("a code for any host takes no party's place, one that names the host does") {
    Joining pool;
    pool.create(1, "h1");
    pool.join(1, 11);
    pool.create(2);
    CHECK(Joining::refuses(pool.join(2, 12, "h1"), "has already joined"));
    CHECK(pool.lets_in(pool.join(2, 12, "h2"), "h2"));
    pool.certified_call("h1", "h1", 11);
    const ConnId link = pool.conn("h1");
    pool.create(3, "h1");
    const Lines lines = pool.join(3, 13);
    CHECK(lines[0] == "close " + to_text(link));
    CHECK(pool.state.trust.keys.at("h1") == numbered_hash(13));
    CHECK(pool.events.back().find("its former certificate is revoked") != std::string::npos);
    // The machine whose place was taken may repeat its code as often as it likes.
    CHECK(Joining::refuses(pool.join(1, 11), "another machine has joined"));
}

TEST_CASE("whose certificate counts") {
    Joining pool;
    pool.create(1, "h1");
    pool.join(1, 11);
    const auto turned_away = [&](const Lines &lines, const std::string &why) {
        return lines.size() == 2 && lines[0].find("refused: ") != std::string::npos &&
               lines[0].find(why) != std::string::npos;
    };
    CHECK(turned_away(pool.certified_call("h2", "h1", 11), "names host h1, but the server reports as h2"));
    CHECK(turned_away(pool.certified_call("h1", "h1", 12), "another key has since joined"));
    CHECK(turned_away(pool.certified_call("h2", "h2", 11), "has been revoked: the host must join again"));
    const Lines taken = pool.certified_call("h1", "h1", 11);
    const std::string to_h1 = to_text(pool.conn("h1"));
    CHECK(taken == Lines{to_h1 + ": configure interval 10000ms slots 1", to_h1 + ": BackupPlace"});
    CHECK(pool.state.host(pool.id("h2"))->conn == no_connection);
    // Out of the table and back in: no other party has come under that name.
    pool.hosts.erase(pool.hosts.begin());
    pool.table();
    CHECK(turned_away(pool.certified_call("h1", "h1", 11), "not in the scheduler's host table"));
}

TEST_CASE("a host that is removed is revoked at once and permanently") {
    Joining pool;
    pool.create(1, "h1");
    pool.join(1, 11);
    pool.create(2, "h1");
    pool.create(3);
    pool.certified_call("h1", "h1", 11);
    const std::string link = to_text(pool.conn("h1"));
    const Lines lines = pool.call(pool.root, wire::RemoveHost{"h1"});
    CHECK(lines == Lines{link + ": refused: this host was removed from the scheduler's host table", "close " + link,
                         "root: line of h1 removed"});
    CHECK(pool.touched_disk());
    CHECK(pool.state.trust.keys.empty());
    CHECK(pool.state.trust.codes.size() == 1);
    pool.table();  // its line is back
    CHECK(pool.certified_call("h1", "h1", 11)[0].find("revoked") != std::string::npos);
    for (const int code : {1, 2}) CHECK(Joining::refuses(pool.join(code, 11), "is unknown"));
    CHECK(pool.lets_in(pool.join(3, 13, "h1"), "h1"));
    CHECK(pool.call(pool.root, wire::RemoveHost{"h9"})[0].find("error NOT_FOUND") != std::string::npos);
}

TEST_CASE(
    "a removed host ends its grains, whether it is connected or not, and a new life begins without what was set") {
    Joining pool;
    pool.create(1, "h1");
    pool.join(1, 11);
    pool.certified_call("h1", "h1", 11);
    pool.add_host("h2");
    pool.table();
    const Program ann = pool.begin("ann", "find");
    pool.open(ann, 1);
    pool.gexec(ann, 1, 0);
    wire::SetHost set;
    set.host = "h1";
    set.slots = 2;
    pool.call(pool.root, set);
    const std::string link = to_text(pool.conn("h1"));
    CHECK(pool.call(pool.root, wire::RemoveHost{"h1"})[0] ==
          about("error REFUSED runs 1 grain start again dcs host drain h1 dcs host rm h1 --move-grains"));
    CHECK(pool.call(pool.root, wire::RemoveHost{"h1", true}) ==
          Lines{link + ": withdraw ann/1:0 inc 1 discard because its host was removed from the pool",
                link + ": refused: this host was removed from the scheduler's host table", "close " + link,
                "root: line of h1 removed"});
    CHECK(pool.status("ann/1:0") == "ready");
    pool.table();  // its line is back
    CHECK(pool.state.host(pool.id("h1"))->config->slots == 1);
    // It did not hear that: the grain was started elsewhere, or will be.
    const auto calls = [&](const std::string &host, Incarnation held) {
        auto call = std::make_shared<wire::FirstCall>();
        call->host = host;
        call->held.push_back({wire::wire_of(Pool::key("ann/1:0")), held, 0});
        return pool.feed(ServerFirstCall{ConnId{++pool.server_}, call, Certified{host, numbered_hash(11)}});
    };
    for (const bool elsewhere : {false, true}) {
        if (elsewhere) CHECK(pool.first_call("h2").size() == 2);
        const Lines lines = calls("h1", 1);
        REQUIRE(lines.size() == 3);
        CHECK(lines[0] == about("withdraw ann/1:0 inc 1 discard because certificate revoked"));
        CHECK(lines[1] == about("refused revoked"));
    }
    CHECK(calls("h9", 1).size() == 3);  // of which the scheduler no longer knows
}

TEST_CASE("a host without a code waits until a party lets it in") {
    Joining pool;
    CHECK(pool.join(0, 11, "h1") == Lines{"7000: JoinPending", "close 7000"});
    CHECK_FALSE(pool.touched_disk());
    const auto approve = [&](const std::string &host, const std::string &words = "", bool replace = false) {
        return pool.call(pool.root, core::ApproveHost{host, words, replace, wall})[0];
    };
    const auto list = pool.answer<wire::TokenList>(pool.root, ListCodes{wall, "", ""});
    REQUIRE(list.pending.size() == 1);
    CHECK(list.pending[0].host == "h1");
    CHECK(list.pending[0].address == "127.0.0.11");
    CHECK(list.pending[0].key.substr(0, 1) == "\x0b");
    CHECK(approve("h2", in_words(numbered_hash(11))).find("error NOT_FOUND") != std::string::npos);
    CHECK(approve("h1", in_words(numbered_hash(12))).find("error NOT_FOUND") != std::string::npos);
    pool.join(0, 12, "h1");  // another party under the same name
    CHECK(approve("h1").find("error INVALID") != std::string::npos);
    CHECK(approve("").find("error INVALID") != std::string::npos);
    CHECK(approve("h1", in_words(numbered_hash(12))) == "root: done");
    CHECK(pool.touched_disk());
    CHECK(pool.join(0, 11, "h1")[0] == "7000: JoinPending");
    CHECK(pool.lets_in(pool.join(0, 12, "h1"), "h1"));
    CHECK(pool.lets_in(pool.join(0, 12), "h1"));
    CHECK(pool.state.pending.size() == 1);
    CHECK(pool.join(0, 12, "h1", wall + 24 * 3600)[0] == "7000: JoinPending");  // that consent is over
    CHECK(approve("h1", in_words(numbered_hash(11))).find("error REFUSED") !=
          std::string::npos);  // another has that name
    CHECK(pool.state.trust.keys.at("h1") == numbered_hash(12));
    CHECK(approve("h1", in_words(numbered_hash(11)), true) == "root: done");
    CHECK(pool.lets_in(pool.join(0, 11, "h1"), "h1"));
    CHECK(pool.state.trust.keys.at("h1") == numbered_hash(11));
    pool.join(0, 13, "h9");
    CHECK(approve("h9", in_words(numbered_hash(13))) == about("not scheduler's host table"));
}

TEST_CASE("those who wait are few, and give up") {
    Joining pool;
    int key = 20;
    for (std::size_t i = 0; i < limits::pending_of_address; ++i)
        CHECK(pool.join(0, ++key, "h1")[0] == "7000: JoinPending");
    CHECK(Joining::refuses(pool.join(0, 99, "h1"), "too many hosts wait"));
    CHECK(pool.join(0, key, "h1")[0] == "7000: JoinPending");  // one that waits already
    for (std::size_t i = 0; pool.state.pending.size() < limits::pending_hosts; ++i) {
        JoinCall c = Joining::asking(0, ++key);
        c.address = "192.0.2." + std::to_string(10 + i);
        CHECK(pool.feed(c)[0] == "7000: JoinPending");
    }
    JoinCall late = Joining::asking(0, 99);
    late.address = "198.51.100.1";
    CHECK(Joining::refuses(pool.feed(late), "too many hosts wait"));
    pool.now = pool.now + seconds(121);
    CHECK(pool.feed(late)[0] == "7000: JoinPending");
    CHECK(pool.state.pending.size() == 1);
}

TEST_CASE("orders about joining are for operators, and have bounds") {
    Joining pool;
    const Program ann = pool.stranger("ann");
    pool.join(0, 11, "h1");
    const Trust before = pool.state.trust;
    const CreateCode create{"h1", HostRole::server, 60, wall, {}, numbered_hash(1), "pool:7001", "hash"};
    const std::vector<UserRequest> orders = {create, ListCodes{wall, "", ""}, wire::RevokeToken{"0100000000"},
                                             core::ApproveHost{"h1", "", false, wall}, wire::RemoveHost{"h1"}};
    for (const UserRequest &order : orders) {
        const Lines lines = pool.call(ann, order);
        REQUIRE(lines.size() == 1);
        CHECK(lines[0].find("ann: error REFUSED") == 0);
        CHECK(pool.changes.empty());
    }
    const auto refused = [&](const CreateCode &call, const char *what) {
        return pool.call(pool.root, call)[0].find(what) != std::string::npos;
    };
    CHECK(refused({"h1", HostRole::server, 60, wall, {}, numbered_hash(1), "", ""}, "accepts no other hosts"));
    CHECK(refused({"h9", HostRole::server, 60, wall, {}, numbered_hash(1), "pool:7001", ""}, "error NOT_FOUND"));
    for (const std::int64_t ttl : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{30} * 24 * 3600 + 1, INT64_MAX})
        CHECK(
            refused({"h1", HostRole::server, ttl, wall, {}, numbered_hash(1), "pool:7001", ""}, "1 second to 30 days"));
    CHECK(pool.state.trust == before);
}

TEST_CASE("codes are bounded, and the expired ones make room") {
    Joining pool;
    Trust full;
    for (std::size_t i = 0; i < limits::join_codes; ++i) {
        TokenHash h = numbered_hash(200);
        h[1] = static_cast<std::uint8_t>(i), h[2] = static_cast<std::uint8_t>(i >> 8);
        full.codes[h] = JoinCode{"h1", "root", wall + 10, false, {}};
    }
    Undo undo;
    apply(pool.state, SetTrust{full}, undo);
    CHECK(pool.create(1, "h1")[0].find("error LIMIT") != std::string::npos);
    CHECK(pool.create(1, "h1", 60, wall + 10)[0] == "root: TokenCreated");
    CHECK(pool.state.trust.codes.size() == 1);
    roll_back(pool.state, undo);
    CHECK(pool.state.trust.codes.empty());
}

TEST_CASE(
    "when a host joined and when its certificate ends is known, until it is removed or another one has its name") {
    constexpr std::int64_t day = 24 * 3600;
    Joining pool;
    HostConfig desk;
    desk.name = "desk";
    desk.source = true;
    desk.users = {"ann"};
    pool.hosts.push_back(desk);
    pool.table();
    const auto row = [&] {
        wire::Query hosts;
        hosts.type = wire::QueryType::hosts;
        const auto members = pool.answer<wire::QueryReply>(pool.root, hosts).members;
        REQUIRE(members.size() == 1);
        CHECK(members[0].name == "desk");
        CHECK(members[0].role == "client");
        CHECK(members[0].users == std::vector<std::string>{"ann"});
        return members[0];
    };
    CHECK_FALSE(row().joined);
    const auto join = [&](int code, int key, std::int64_t at) {
        pool.call(pool.root,
                  CreateCode{"desk", HostRole::client, 7 * day, wall, {}, numbered_hash(code), "pool:7001", "hash"});
        JoinCall call = Joining::asking(code, key, "desk");
        call.role = HostRole::client;
        call.wall_s = at;
        call.until_s = at + 90 * day;
        CHECK(pool.lets_in(pool.feed(call), "desk"));
    };
    join(1, 11, wall);
    CHECK(row().joined);
    CHECK(row().joined_s == wall);
    CHECK(row().expires_s == wall + 90 * day);
    join(1, 11, wall + 5);  // a repetition of the same day costs nothing
    CHECK(row().expires_s == wall + 90 * day);

    const auto renewed = [&](int key, std::int64_t until) {
        pool.feed(CertificateRenewed{HostRole::client, {"desk", numbered_hash(key), until}});
    };
    renewed(11, wall + 150 * day);
    CHECK(pool.touched_disk());
    CHECK(row().joined_s == wall);
    CHECK(row().expires_s == wall + 150 * day);
    renewed(11, wall + 150 * day + 1);
    CHECK_FALSE(pool.touched_disk());
    renewed(12, wall + 200 * day);  // not its key
    CHECK(row().expires_s == wall + 150 * day);

    join(2, 12, wall + day);
    CHECK(row().joined_s == wall + day);
    CHECK(pool.state.trust.members.size() == 1);
    pool.call(pool.root, wire::RemoveHost{"desk"});
    CHECK(pool.state.trust.members.empty());
    CHECK_FALSE(row().joined);
}
