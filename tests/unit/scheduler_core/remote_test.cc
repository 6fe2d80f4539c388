// Control programs of other hosts: who may begin one there, what its token is good for, and for how long.
#include <set>

#include "pool.h"
#include "scheduler/core/authorise.h"
#include "scheduler/core/decisions.h"
#include "support/about.h"
#include "unit/wire/samples.h"

using namespace dcs;
using namespace dcs::core;

namespace {

constexpr std::int64_t remote_wall = 1'000'000, day = 24 * 3600;
constexpr ConnId asker{7000}, next_to_it{7001};

// Where a program runs, with which token and key.
struct Remote {
    std::string user = "ann", host = "desk1";
    int token = 21, key = 31;
};

struct Desks : Pool {
    Program root = stranger("root", true);
    Desks() {
        add_host("h1");
        source("desk1");
        source("desk2", {"ann", "root"});
        table();
        join("desk1", 11);
        join("desk2", 12);
        events.clear();
    }
    void source(const std::string &name, std::vector<std::string> users = {}) {
        HostConfig c;
        c.name = name;
        c.source = true;
        c.users = std::move(users);
        hosts.push_back(c);
    }
    Lines create(int code, const std::string &host, HostRole role = HostRole::client) {
        return call(root, CreateCode{host, role, 60, remote_wall, {}, numbered_hash(code), "pool:7001", "hash"});
    }
    Lines join(const std::string &host, int key, HostRole role = HostRole::client, int code = 0) {
        JoinCall c;
        c.conn = asker;
        c.request = RequestId{1};
        c.host = host;
        c.role = role;
        c.has_code = true;
        c.code = numbered_hash(code != 0 ? code : 100 + key);
        c.key = numbered_hash(key);
        c.address = "192.0.2.1";
        c.wall_s = remote_wall;
        if (code == 0) create(100 + key, host, role);
        return feed(c);
    }
    static BeginControl asking(const Remote &r, int host_key, const std::string &ident = "find") {
        BeginControl b;
        b.conn = asker;
        b.request = RequestId{1};
        b.from = Certified{r.host, numbered_hash(host_key)};
        b.address = "192.0.2.1";
        b.user = r.user;
        b.ident = ident;
        b.public_key = "public key";
        b.key = numbered_hash(r.key);
        b.fresh[0] = 1;
        b.fresh_hash = numbered_hash(r.token);
        b.wall_s = remote_wall;
        return b;
    }
    Lines begin(const Remote &r, int host_key = 11, const std::string &ident = "find") {
        return feed(asking(r, host_key, ident));
    }
    // A call of that program; the token may be none.
    Lines from(const Remote &r, UserRequest what) {
        const TokenHash token = r.token != 0 ? numbered_hash(r.token) : TokenHash{};
        Caller c{next_to_it, RequestId{++request}, r.user, false, r.token != 0, token};
        c.host = r.host;
        if (!r.host.empty()) c.key = numbered_hash(r.key);
        return feed(UserCall{c, std::move(what)});
    }
    std::string opens(const Remote &r, int number = 1) {
        const std::string line = from(r, wire::OpenSession{number, wire::OpenMode::resume, false}).at(0);
        return line.find("error") == std::string::npos ? "" : line;
    }
    static bool says(const Lines &lines, const std::string &why) {
        return !lines.empty() && lines[0] == about("error " + why);
    }
};

bool mentions(const std::string &text, const std::string &part) { return text == about(part); }

}  // namespace

TEST_CASE("who may begin a control program on another host") {
    Desks pool;
    const Trust trust = pool.state.trust;
    const Remote ann, ben{"ben"}, root{"root"}, there{"ann", "desk2"};
    CHECK(Desks::says(pool.begin(ann, 12), "machine key since joined under name"));
    CHECK(Desks::says(pool.begin({"ann", "desk9"}), "revoked host must join"));
    CHECK(Desks::says(pool.begin(root), "lets in all but root"));
    CHECK(Desks::says(pool.begin({"ben", "desk2"}, 12), "ben not call host desk2"));
    CHECK(Desks::says(pool.begin({"a/b"}), "login name"));
    CHECK(Desks::says(pool.begin(ann, 11, "-x"), "control ident must be"));
    BeginControl unknown = Desks::asking(ann, 11);
    unknown.login = fail(Code::refused, "not of the group");
    CHECK(Desks::says(pool.feed(unknown), "not of the group"));
    CHECK(pool.effects.size() == 2);  // and the connection ends
    Policy policy;
    policy.users = {"ben"};
    pool.rules(policy);
    CHECK(Desks::says(pool.begin(ann), "not scheduler's list users"));
    pool.rules(Policy{});
    CHECK(pool.state.auth.empty());
    CHECK(pool.state.trust == trust);
    CHECK(pool.begin(ann) == Lines{"7000: certificate for program ann/desk1/find token", "close 7000"});
    const AuthEntry &entry = pool.state.auth.at(numbered_hash(21));
    CHECK(entry == AuthEntry{"ann", "find", remote_wall, "desk1", numbered_hash(31)});
    CHECK(pool.begin({"root", "desk2", 22, 32}, 12).size() == 2);
    CHECK(pool.state.auth.size() == 2);
}

TEST_CASE("a token counts for its user, on its host, with its key, and nowhere else") {
    Desks pool;
    const Remote ann;
    pool.begin(ann);
    pool.begin({"ben", "desk1", 22, 32});
    pool.begin({"ann", "desk2", 23, 33}, 12);
    CHECK(pool.opens(ann).empty());
    CHECK(mentions(pool.opens({"ben", "desk1", 21, 32}), "is not one of ben"));
    CHECK(mentions(pool.opens({"ann", "desk1", 21, 34}), "to another key"));
    CHECK(mentions(pool.opens({"ann", "desk2", 21, 33}), "control desk1 desk2"));
    CHECK(mentions(pool.opens({"ann", "desk1", 0, 31}), "carries no authorization token"));
    CHECK(mentions(pool.opens({"ann", "desk1", 99, 31}), "the authorization token is unknown"));
    // Neither the other way round: what was got on this host is for this host.
    CHECK(mentions(pool.opens({"ann", "", 21, 0}), "host desk1 scheduler's"));
    const Program local = pool.Pool::begin("ann", "find");
    Caller c{asker, RequestId{++pool.request}, "ann", false, true, local.token};
    c.host = "desk1";
    c.key = numbered_hash(31);
    CHECK(Desks::says(pool.feed(UserCall{c, wire::Query{}}), "control program scheduler's host"));
    // Without a token a program of another host is no party, also where others need none.
    CHECK(Desks::says(pool.from({"ann", "desk1", 0, 31}, wire::Query{}), "carries no authorization token"));
    CHECK(Desks::says(pool.from({"ann", "desk1", 0, 31}, GetAuth{"x", {}, numbered_hash(40), remote_wall}),
                      "no authorization"));
    // A token that it asks for is bound as its first one is.
    pool.from(ann, GetAuth{"other", {}, numbered_hash(41), remote_wall});
    CHECK(pool.state.auth.at(numbered_hash(41)) == AuthEntry{"ann", "other", remote_wall, "desk1", numbered_hash(31)});
}

TEST_CASE("a host that may not call any more takes its programs along") {
    Desks pool;
    const Remote ann, there{"ann", "desk2", 23, 33};
    pool.begin(ann);
    pool.begin(there, 12);
    CHECK(pool.opens(ann).empty());
    const auto hosts = pool.hosts;
    std::erase_if(pool.hosts, [](const HostConfig &h) { return h.name == "desk1"; });
    CHECK(pool.table() == Lines{"close programs of desk1"});
    CHECK(mentions(pool.opens(ann), "not call desk1"));
    CHECK(Desks::says(pool.begin(ann), "not call host desk1"));
    pool.hosts = hosts;  // its line is back, and so is what it could do
    CHECK(pool.table().empty());
    CHECK(pool.opens(ann).empty());
    const Lines lines = pool.call(pool.root, wire::RemoveHost{"desk1"});
    CHECK(lines == Lines{"close programs of desk1", "root: line of desk1 removed"});
    CHECK(pool.state.auth.count(numbered_hash(21)) == 0);
    CHECK(pool.state.auth.count(numbered_hash(23)) == 1);
    CHECK(mentions(pool.opens(ann), "was removed from the pool"));
    CHECK(Desks::says(pool.begin(ann), "has been revoked"));
    CHECK(pool.opens(there, 2).empty());
    pool.join("desk1", 14);
    CHECK(mentions(pool.opens(ann), "the authorization token is unknown"));
    CHECK(pool.begin({"ann", "desk1", 25, 35}, 14).size() == 2);
    // Another machine takes the name: what was begun under the first one is over.
    pool.create(77, "desk1");
    CHECK(pool.join("desk1", 15, HostRole::client, 77)[0] == "close programs of desk1");
    CHECK(pool.state.auth.count(numbered_hash(25)) == 0);
}

TEST_CASE("one host may have both roles, with a key and a code for each") {
    Desks pool;
    pool.source("h1");
    pool.table();
    pool.create(1, "h1", HostRole::server);
    pool.create(2, "h1", HostRole::client);
    CHECK(Desks::says(pool.join("h1", 51, HostRole::client, 1), "host grain server"));
    CHECK(Desks::says(pool.join("h1", 51, HostRole::server, 2), "host of control programs"));
    CHECK(pool.join("h1", 51, HostRole::server, 1)[0] == "7000: certificate of h1");
    CHECK(pool.join("h1", 52, HostRole::client, 2)[0] == "7000: certificate of h1");
    CHECK(pool.state.trust.keys.at("h1") == numbered_hash(51));
    CHECK(pool.state.trust.clients.at("h1") == numbered_hash(52));
    CHECK(Desks::says(pool.begin({"ann", "h1"}, 51), "another key"));
    CHECK(pool.begin({"ann", "h1"}, 52).size() == 2);
    CHECK(Desks::says(pool.create(3, "desk1", HostRole::server),
                      "in scheduler's host table role=client only add --role client"));
    CHECK(Desks::says(pool.create(3, "h7", HostRole::client), "with role=client"));
}

TEST_CASE("a program renews its certificate, and its token stays young with it") {
    Desks pool;
    const Remote ann;
    pool.begin(ann);
    CHECK(Desks::says(pool.from(ann, RenewProgram{"public key", numbered_hash(32), remote_wall}), "for its own key"));
    const Program local = pool.Pool::begin("ann", "local");
    CHECK(Desks::says(pool.call(local, RenewProgram{"public key", numbered_hash(31), remote_wall}), "no certificate"));
    CHECK(pool.from(ann, RenewProgram{"public key", numbered_hash(31), remote_wall + day}) ==
          Lines{"7001: certificate for program ann/desk1/find"});
    // Another one begins a little later, and the old ones are looked through.
    BeginControl later = Desks::asking({"ann", "desk1", 22, 32}, 11);
    later.wall_s = remote_wall + day + 100;
    pool.feed(later);
    CHECK(pool.state.auth.count(numbered_hash(21)) == 1);
    later = Desks::asking({"ann", "desk1", 24, 34}, 11);
    later.wall_s = remote_wall + 3 * day;
    pool.feed(later);
    CHECK(pool.state.auth.count(numbered_hash(21)) == 0);
    CHECK(pool.state.auth.count(numbered_hash(24)) == 1);
}

TEST_CASE("from other hosts a program may say what its user may, the host itself two things") {
    const auto all = wire::samples::all();
    std::set<std::string> more, begin;
    for (const wire::AnyMessage &m : all) {
        const bool user = may_say(Party::user, m), program = may_say(Party::program, m);
        REQUIRE((program || !user));
        if (program && !user) more.insert(wire::kind_name(m));
        if (may_say(Party::begin, m)) begin.insert(wire::kind_name(m));
    }
    REQUIRE(more == std::set<std::string>{"RenewCertificate"});
    REQUIRE(begin == std::set<std::string>{"BeginControl", "RenewCertificate"});
}
