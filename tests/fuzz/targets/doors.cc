// The doors for other hosts behind TLS: hosts that have no certificate and want to join, dcs_begin of a host that has
// one, control programs and grain servers with certificates, and an operator who gives out codes, approves and removes.
// Whatever they say: no peer gets a certificate whose key does not count, no peer a token that is not known, and what a
// scheduler started on its disk would know is what it knows.
#include "pki/authority.h"
#include "script.h"
#include "unit/scheduler_turn/pool.h"

namespace dcs::fuzz {
namespace {

enum Who : std::uint8_t { stranger, other_stranger, desk, other_desk, program, server, operating, world };
constexpr std::int64_t wall = 1'000'000'000;  // of the pool

core::HostConfig source(const std::string &name) {
    core::HostConfig h;
    h.name = name;
    h.source = true;
    return h;
}
const std::vector<core::HostConfig> table = {test::host("h1", 2), test::host("h2", 1), source("desk1")};

// Made once: keys cost more than a whole script.
struct Keys {
    std::string desk = pki::new_key(), program = pki::new_key(), server = pki::new_key();
    std::string open = *pki::public_key_of(program);
    std::string desk_request = *pki::make_request(desk), server_request = *pki::make_request(server);
    static TokenHash hash(const std::string &key) { return pki::sha256(*pki::public_key_of(key)); }
    static const Keys &it() {
        static const Keys *keys = new Keys;
        return *keys;
    }
};

// desk1 and h1 have joined, and ann has begun a program there, whose token is `token_of_program`.
struct Begun {
    test::SimDisk disk;
    std::string token;
    std::uint8_t tokens = 0;
};
Begun begun() {
    const Keys &keys = Keys::it();
    test::Pool pool(table);
    const ConnId root = pool.open(turn::Door::user, "root", true);
    pool.ask<wire::Welcome>(root, wire::Hello{});
    for (const std::uint8_t role : {0, 1}) {
        const std::string name = role == 0 ? "h1" : "desk1";
        const auto code = pool.ask<wire::TokenCreated>(root, wire::CreateToken{name, 3600, role});
        const std::string &request = role == 0 ? keys.server_request : keys.desk_request;
        pool.ask<wire::Joined>(pool.open(turn::Door::join, "a stranger"),
                               wire::JoinHost{wire::opening_form, "", "box", code.token, request, role});
    }
    const core::Certified from{"desk1", Keys::hash(keys.desk), wall + 100};
    const ConnId asking = pool.open(turn::Door::begin, "host desk1", false, from);
    const wire::BeginControl call{wire::opening_form, "ann", "find", keys.open};
    const auto made = pool.ask<wire::Begun>(asking, call);
    return {pool.disk.killed(), made.token, pool.outside->tokens};
}

struct Play {
    static const Begun &begin() {
        static const Begun *world = new Begun(begun());
        return *world;
    }
    test::Pool pool{table, begin().disk.killed()};
    std::map<std::uint8_t, ConnId> conns;

    Play() { pool.outside->tokens = begin().tokens; }

    ConnId open(std::uint8_t who) {
        const Keys &keys = Keys::it();
        const auto certified = [](const char *host, const std::string &key) {
            return core::Certified{host, Keys::hash(key), wall + 100};
        };
        switch (who) {
        case desk: return pool.open(turn::Door::begin, "host desk1", false, certified("desk1", keys.desk));
        case other_desk: return pool.open(turn::Door::begin, "host desk1", false, certified("desk1", keys.server));
        case program: {
            const ConnId conn = pool.open(turn::Door::user, "ann", false, certified("desk1", keys.program));
            pool.post(conn, wire::Hello{wire::opening_form, begin().token});
            return conn;
        }
        case server: return pool.open(turn::Door::server, "host h1", false, certified("h1", keys.server));
        case operating: {
            const ConnId conn = pool.open(turn::Door::user, "root", true);
            pool.post(conn, wire::Hello{wire::opening_form, ""});
            return conn;
        }
        default: return pool.open(turn::Door::join, "a stranger");
        }
    }
    ConnId conn(std::uint8_t who) {
        auto [at, fresh] = conns.try_emplace(who, no_connection);
        const auto &closed = pool.outside->closed;
        if (fresh || std::find(closed.begin(), closed.end(), at->second) != closed.end()) at->second = open(who);
        return at->second;
    }
    void say(const Item &item) {
        turn::Arrival arrival;
        arrival.conn = conn(item.who);
        arrival.header = header_of(item.kind, item.payload, item.who == server ? 0 : 1 + pool.outside->sent.size());
        arrival.payload = item.payload;
        pool.turn->take(std::move(arrival));
    }
    static wire::BeginControl asking(const std::string &user = "ann") {
        return {wire::opening_form, user, "find", Keys::it().open};
    }
    // What can be said only with a key, or a code that a peer got: a mutator would not find it.
    void join(std::uint8_t who, std::uint8_t how) {
        const Keys &keys = Keys::it();
        const std::string token = (how & 4) == 0 ? std::string() : std::string(32, static_cast<char>(how >> 3));
        wire::JoinHost call{wire::opening_form,
                            (how & 2) != 0 ? "h2" : "",
                            "h2",
                            token,
                            who == stranger ? keys.server_request : keys.desk_request,
                            static_cast<std::uint8_t>(how & 1)};
        pool.post(conn(who), call, 1);
    }
    void happen(const Item &item) {
        const std::uint8_t how = item.payload.empty() ? 0 : static_cast<std::uint8_t>(item.payload[0]);
        switch (item.kind % 6) {
        case 0: return join(stranger, how);
        case 1: return join(other_stranger, how);
        case 2: pool.post(conn(desk), asking(), 1); break;
        case 3: return restart();
        case 4: pool.outside->login = how == 0 ? Status::ok() : fail(Code::refused, "is not known"); return;
        default: pool.outside->clock = pool.outside->clock + seconds(how); return;
        }
    }
    void restart() {
        const std::uint8_t tokens = pool.outside->tokens;
        pool.restart();
        pool.outside->tokens = tokens;
        conns.clear();
    }
    void check() {
        const core::State &state = pool.turn->state();
        expect(core::check(state).empty(), core::check(state));
        for (const test::Sent &sent : pool.outside->sent) {
            if (const auto *joined = std::get_if<wire::Joined>(&sent.message))
                expect(state.trust.keys.count(joined->host) + state.trust.clients.count(joined->host) > 0,
                       "a key counts before its host has a certificate");
            if (const auto *made = std::get_if<wire::Begun>(&sent.message))
                expect(state.auth.count(pki::sha256(made->token)) > 0, "a token is known before it is given out");
        }
        pool.outside->sent.clear();
    }
};

}  // namespace

void run(std::string_view bytes) {
    Play play;
    for (const Item &item : items_of(bytes)) {
        const Item one{static_cast<std::uint8_t>(item.who % 8), item.kind, item.payload};
        if (one.who == world) play.happen(one);
        else play.say(one);
        play.pool.pump();
        if (!play.pool.outside->died.empty()) return;
        play.check();
    }
    play.pool.verify();
}

namespace {

Item happens(std::uint8_t kind, int how) {
    Item item = action(world, kind);
    item.payload = static_cast<char>(how);
    return item;
}

std::vector<Item> everything() {
    const Keys &keys = Keys::it();
    wire::FirstCall first;
    first.host = "h1";
    wire::JoinHost stray{wire::opening_form, "h2", "box", std::string(32, 'x'), keys.desk_request};
    return {item(operating, wire::CreateToken{"h2", 60}),
            happens(0, 4 + (4 << 3)),
            item(operating, wire::ListTokens{}),
            item(other_stranger, stray),
            happens(1, 0),
            item(operating, wire::ApproveHost{"h2", ""}),
            happens(1, 0),
            happens(2, 0),
            item(desk, Play::asking("ben")),
            happens(4, 1),
            happens(2, 0),
            item(program, wire::OpenSession{1, wire::OpenMode::open, false}),
            item(program, wire::Gexec{1, 1, test::copying_grain("input")}),
            item(program, wire::RenewCertificate{keys.desk_request}),
            item(other_desk, Play::asking()),
            item(server, first),
            item(server, wire::RenewCertificate{keys.server_request}),
            happens(3, 0),
            item(server, first),
            item(operating, wire::RemoveHost{"desk1"}),
            happens(2, 0),
            item(program, wire::Gwait{1, 0, false}),
            item(operating, wire::RevokeToken{"0000"}),
            happens(5, 200)};
}

}  // namespace

std::vector<Seed> seeds() {
    std::vector<Seed> list{{"everything", bytes_of(everything())}};
    for (std::size_t first = 0; first < kinds; first += 8) {  // each kind through each door
        std::vector<Item> play;
        for (std::size_t kind = first; kind < std::min(first + 8, kinds); ++kind)
            for (const Who who : {stranger, desk, program, server}) play.push_back(item(who, samples()[kind]));
        list.push_back({"all-kinds-" + std::to_string(first), bytes_of(play)});
    }
    return list;
}

}  // namespace dcs::fuzz
