// A scheduler that is spoken to by control programs with valid tokens, by others, by grain servers of its host table
// and by strangers, in any order and with anything in the fields. Whatever they say: it does not abort, its cross
// references hold, no lease is given to two hosts, and what a scheduler started on its disk would know is what it
// knows.
#include "unit/scheduler_turn/pool.h"

#include "script.h"
#include "unit/wire/samples.h"

namespace dcs::fuzz {
namespace {

enum Who : std::uint8_t { ann, bob, greeted, stranger, h1, h2, other_server, world };
const std::vector<core::HostConfig> table = {test::host("h1", 2), test::host("h2", 1)};

// Tokens are 1, 2, ... in the order in which they were given out.
test::SimDisk with_controls() {
    test::Pool pool(table);
    pool.control("ann", "prog");
    pool.control("bob", "prog");
    return pool.disk.killed();
}

struct Play {
    static const test::SimDisk &begin() {
        static const test::SimDisk disk = with_controls();
        return disk;
    }
    test::Pool pool{table, begin().killed()};
    std::map<std::uint8_t, ConnId> conns;
    std::map<std::pair<GrainKey, Incarnation>, std::string> leases;  // to which host

    Play() { pool.outside->tokens = 2; }

    ConnId conn(std::uint8_t who) {
        auto [at, fresh] = conns.try_emplace(who, no_connection);
        const auto &closed = pool.outside->closed;
        if (!fresh && std::find(closed.begin(), closed.end(), at->second) == closed.end()) return at->second;
        const char *const users[] = {"ann", "bob", "cid", "eve"};
        if (who >= h1) return at->second = pool.open(turn::Door::server, "root");
        at->second = pool.open(turn::Door::user, users[who], who == greeted);
        if (who == stranger) return at->second;
        const std::string token = who == greeted ? std::string() : std::string(32, static_cast<char>(who + 1));
        pool.post(at->second, wire::Hello{wire::opening_form, token});
        return at->second;
    }

    void say(const Item &item) {
        turn::Arrival arrival;
        arrival.conn = conn(item.who);
        arrival.header = header_of(item.kind, item.payload, item.who >= h1 ? 0 : 1 + pool.outside->sent.size());
        arrival.payload = item.payload;
        pool.turn->take(std::move(arrival));
        const auto message = decoded(item);  // numbers of a removed session's grains begin again
        if (message && (std::holds_alternative<wire::CleanSession>(*message) ||
                        std::holds_alternative<wire::ImportSession>(*message)))
            leases.clear();
    }

    void happen(const Item &item) {
        const std::uint64_t size = item.payload.empty() ? 0 : static_cast<unsigned char>(item.payload[0]);
        switch (item.kind % 8) {
        case 0: pool.outside->clock = pool.outside->clock + milliseconds(static_cast<std::int64_t>(size * size)); break;
        case 1: pool.do_library_jobs(); break;
        case 2: pool.turn->tidy(); break;
        case 3: return hang_up(static_cast<std::uint8_t>(size % world));
        case 4: pool.disk.set_capacity(size == 0 ? ~0ull : pool.disk.used_bytes() + size * 64); break;
        case 5: return restart();
        case 6: {
            core::Policy policy;
            policy.fair_share = true, policy.grains_per_user = static_cast<std::int32_t>(size), policy.probation = 1;
            pool.turn->take_policy(policy);
            break;
        }
        default: pool.outside->clock = pool.outside->clock + seconds(static_cast<std::int64_t>(size)); break;
        }
    }

    void hang_up(std::uint8_t who) {
        const auto found = conns.find(who);
        if (found == conns.end()) return;
        pool.hang_up(found->second);
        conns.erase(found);
    }

    void restart() {
        const std::uint8_t tokens = pool.outside->tokens;
        pool.restart();
        pool.outside->tokens = tokens;
        conns.clear();
    }

    void check() {
        expect(core::check(pool.turn->state()).empty(), core::check(pool.turn->state()));
        for (const test::Sent &sent : pool.outside->sent) {
            const auto *launch = std::get_if<wire::Launch>(&sent.message);
            if (!launch) continue;
            const core::HostId to = host_of(sent.conn);
            if (to == core::no_host) continue;  // its link has gone since
            const std::string &host = pool.turn->state().hosts[static_cast<std::size_t>(to)].config->name;
            const auto [at, fresh] = leases.try_emplace({wire::key_of(launch->key), launch->incarnation}, host);
            expect(fresh || at->second == host, "one lease is not given to two hosts");
        }
        pool.outside->sent.clear();
    }
    core::HostId host_of(ConnId id) {
        const auto &known = pool.turn->state().host_of_conn;
        const auto found = known.find(id);
        return found == known.end() ? core::no_host : found->second;
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
    play.pool.disk.set_capacity(~0ull);
    play.pool.verify();
}

namespace {

Item passes(std::uint8_t kind, std::uint8_t size) {
    Item item = action(world, kind);
    item.payload = static_cast<char>(size);
    return item;
}
Item first_call(std::uint8_t who, const char *host) {
    wire::FirstCall call;
    call.host = host;
    return item(who, call);
}
wire::GrainReport report(std::int32_t grain, std::uint32_t incarnation, bool ended) {
    wire::GrainReport r;
    r.key = {"ann", 1, grain};
    r.incarnation = incarnation;
    r.first_seq = r.last_seq = 1;
    r.ended = ended, r.out = "out", r.err = "err";
    if (!ended) r.has_checkpoint = true, r.checkpoint = "ckpt", r.message = "half", r.input_position = 3;
    return r;
}

// A session's life, in which every kind of call has its place.
std::vector<Item> life() {
    std::vector<Item> play = {first_call(h1, "h1"), item(ann, wire::OpenSession{1, wire::OpenMode::open, false})};
    for (std::int32_t g = 0; g < 4; ++g)
        play.push_back(item(ann, wire::Gexec{1, g, test::copying_grain("some input")}));
    for (std::int32_t g = 0; g < 2; ++g)
        play.push_back(item(h1, wire::LaunchResult{{"ann", 1, g}, 1, true, false, 0, ""}));
    play.push_back(item(h1, report(0, 1, true)));
    play.push_back(item(h1, report(1, 1, false)));
    play.push_back(item(h1, wire::CallIn{0.5, 1 << 20, true, ""}));
    play.push_back(item(ann, wire::Gwait{1, 0, true}));
    play.push_back(item(ann, wire::Gkill{"", 1, 3}));
    play.push_back(item(ann, wire::Explain{"", 1, 2}));
    play.push_back(item(ann, wire::Fetch{"", 1, 1, wire::Stream::out, 0, 100, ""}));
    play.push_back(item(ann, wire::Query{wire::QueryType::grain, "ann", 1, 1}));
    return play;
}

std::vector<Item> end_of_life() {
    std::vector<Item> play = life();
    for (const Item &i :
         {item(greeted, wire::SetHost{"h1", 0}), item(greeted, wire::Doctor{}), passes(0, 200), passes(7, 100),
          first_call(h2, "h2"), item(ann, wire::CloseSession{"", 1, 1}), item(ann, wire::ExportPage{"", 1, -1, 2}),
          passes(2, 0), passes(5, 0), item(ann, wire::OpenSession{1, wire::OpenMode::reopen, true}),
          item(ann, wire::CloseSession{"", 1, -1}), item(ann, wire::CleanSession{"", 1})})
        play.push_back(i);
    return play;
}

}  // namespace

std::vector<Seed> seeds() {
    std::vector<Seed> list{{"life", bytes_of(life())}, {"end-of-life", bytes_of(end_of_life())}};
    for (std::size_t first = 0; first < kinds; first += 10) {  // few seeds: each is a whole life
        std::vector<Item> play = life();
        for (std::size_t kind = first; kind < std::min(first + 10, kinds); ++kind)
            for (const Who who : {ann, stranger, h1}) play.push_back(item(who, samples()[kind]));
        list.push_back({"all-kinds-" + std::to_string(first), bytes_of(play)});
    }
    return list;
}

}  // namespace dcs::fuzz
