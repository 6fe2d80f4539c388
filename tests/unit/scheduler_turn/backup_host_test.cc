// A passive backup on a host of its own: how it comes in, who learns about it, and what ends it.
#include <algorithm>

#include "pki/key.h"
#include "pool.h"
#include "support/about.h"
#include "support/catch.h"

using namespace dcs;
using namespace dcs::test;

namespace {

core::HostConfig vault(const std::string &name = "vault", const std::string &address = "vault:7002") {
    core::HostConfig h;
    h.name = name;
    h.backup_at = address;
    return h;
}

// What takes the door for other hosts to join, and comes back with its certificate.
struct Member {
    std::string name;
    std::uint8_t role;
    std::string key = pki::new_key();
    ConnId conn{};
    core::Certified certified() const { return {name, pki::sha256(*pki::public_key_of(key)), 1'000'000'100}; }
    std::string hash() const {
        const TokenHash bytes = certified().key;
        return std::string(bytes.begin(), bytes.end());
    }
    wire::AnyMessage join(Pool &pool) const {
        const ConnId root = pool.open(turn::Door::user, "root", true);
        pool.ask<wire::Welcome>(root, wire::Hello{});
        const auto made = pool.ask<wire::TokenCreated>(root, wire::CreateToken{name, 3600, role});
        const ConnId stranger = pool.open(turn::Door::join, "a stranger");
        return pool.call(stranger,
                         wire::JoinHost{wire::opening_form, "", "box", made.token, *pki::make_request(key), role});
    }
    std::vector<wire::AnyMessage> connect(Pool &pool) {
        conn = pool.open(role == 2 ? turn::Door::backup : turn::Door::server, "host " + name, false, certified());
        wire::FirstCall call;
        call.host = name;
        if (role == 2) pool.post(conn, wire::BackupCall{wire::opening_form, 7});
        else pool.post(conn, call);
        pool.pump();
        return pool.take_sent(conn);
    }
};

template <class M> std::vector<M> all(const std::vector<wire::AnyMessage> &sent) {
    std::vector<M> found;
    for (const wire::AnyMessage &message : sent)
        if (const M *m = std::get_if<M>(&message)) found.push_back(*m);
    return found;
}

struct TwoHosts {
    Pool pool{{host("h1", 1), host("h2", 1), vault()}};
    Member h1{"h1", 0}, backup{"vault", 2};

    TwoHosts() {
        h1.join(pool);
        REQUIRE(std::get<wire::Joined>(backup.join(pool)).certificate == "certificate of backup vault");
    }
    bool closed(ConnId conn) const {
        const auto &all = pool.outside->closed;
        return std::find(all.begin(), all.end(), conn) != all.end();
    }
    void command(const wire::AnyMessage &order) {
        const ConnId root = pool.open(turn::Door::user, "root", true);
        pool.ask<wire::Welcome>(root, wire::Hello{});
        pool.call(root, order);
    }
};

}  // namespace

TEST_CASE("servers of other hosts are told where the backup is, and it which servers there are") {
    TwoHosts t;
    const auto told = all<wire::BackupPlace>(t.h1.connect(t.pool));
    REQUIRE(told.size() == 1);
    CHECK(told[0] == wire::BackupPlace{"vault", "vault:7002", t.backup.hash()});
    const auto sent = t.backup.connect(t.pool);
    REQUIRE(all<wire::BackupKnown>(sent).size() == 1);
    const auto members = all<wire::MemberKeys>(sent);
    REQUIRE(members.size() == 1);
    REQUIRE(members[0].members.size() == 1);
    CHECK(members[0].members[0].host == "h1");
    CHECK(members[0].members[0].key == t.h1.hash());
    Member h2{"h2", 0};
    h2.join(t.pool);  // while it exists
    CHECK(all<wire::MemberKeys>(t.pool.take_sent(t.backup.conn)).back().members.size() == 2);
    t.command(wire::RemoveHost{"h2"});
    CHECK(all<wire::MemberKeys>(t.pool.take_sent(t.backup.conn)).back().members.size() == 1);
    t.pool.verify();
}

TEST_CASE("the doctor names a backup on another host that is not connected") {
    TwoHosts t;
    const auto problem = [&] {
        const ConnId root = t.pool.open(turn::Door::user, "root", true);
        t.pool.ask<wire::Welcome>(root, wire::Hello{});
        std::string found;
        for (const auto &row : t.pool.ask<wire::DoctorReply>(root, wire::Doctor{}).problems)
            if (row.entity == "backup vault") found = row.problem + "; " + row.advice;
        return found;
    };
    const std::string away =
        "is not connected; check that dcs_backupd runs on vault and can reach the scheduler; if its copy has "
        "been promoted, stop this scheduler";
    CHECK(problem() == away);
    t.backup.connect(t.pool);
    CHECK(problem().empty());
    t.pool.hang_up(t.backup.conn);
    t.pool.pump();
    CHECK(problem() == away);
    t.backup.connect(t.pool);
    CHECK(problem().empty());
    t.command(wire::RemoveHost{"vault"});
    CHECK(problem() ==
          about("not joined certificate revoked dcs token create --host vault --role backup prints command joins"));
}

TEST_CASE("a server of this host is told nothing") {
    TwoHosts t;
    ModelServer local(t.pool, "h2");
    local.connect();
    const ConnId conn = t.pool.open(turn::Door::server, "root", true);
    wire::FirstCall call;
    call.host = "h2";
    t.pool.post(conn, call);
    t.pool.pump();
    CHECK(all<wire::BackupPlace>(t.pool.take_sent(conn)).empty());
}

TEST_CASE("a backup that the table does not name, or with another key, is none") {
    TwoHosts t;
    Member other{"vault", 2}, elsewhere{"cellar", 2};
    for (Member *m : {&other, &elsewhere}) {
        const auto sent = m->connect(t.pool);
        CHECK(all<wire::BackupKnown>(sent).empty());
        CHECK(all<wire::Refused>(sent).size() == 1);
        CHECK(t.closed(m->conn));
    }
}

TEST_CASE("each certificate opens its own door only") {
    TwoHosts t;
    const ConnId as_server = t.pool.open(turn::Door::backup, "host vault", false, t.backup.certified());
    wire::FirstCall call;
    call.host = "vault";
    t.pool.post(as_server, call);
    const ConnId as_backup = t.pool.open(turn::Door::server, "host h1", false, t.h1.certified());
    t.pool.post(as_backup, wire::BackupCall{wire::opening_form, 7});
    const ConnId early = t.pool.open(turn::Door::backup, "host vault", false, t.backup.certified());
    t.pool.post(early, wire::HandOver{"h1", 1, {}});
    t.pool.pump();
    for (const ConnId conn : {as_server, as_backup, early}) {
        CHECK(t.closed(conn));
        CHECK(t.pool.take_sent(conn).empty());
    }
}

TEST_CASE("a backup that is removed, or replaced, is heard no more, and its servers know") {
    TwoHosts t;
    t.h1.connect(t.pool);
    t.backup.connect(t.pool);
    t.command(wire::RemoveHost{"vault"});
    CHECK(t.closed(t.backup.conn));
    const auto none = all<wire::BackupPlace>(t.pool.take_sent(t.h1.conn));
    REQUIRE(none.size() == 1);
    CHECK(none[0].address.empty());
    CHECK(all<wire::BackupKnown>(t.backup.connect(t.pool)).empty());
    Member second{"vault", 2};
    REQUIRE(std::holds_alternative<wire::Joined>(second.join(t.pool)));
    CHECK(all<wire::BackupPlace>(t.pool.take_sent(t.h1.conn)).back().key == second.hash());
    CHECK(all<wire::BackupKnown>(second.connect(t.pool)).size() == 1);
    CHECK(all<wire::BackupKnown>(t.backup.connect(t.pool)).empty());
    t.pool.turn->take_host_table({host("h1", 1), vault("vault", "10.0.0.9:7002")});
    t.pool.pump();
    CHECK(all<wire::BackupPlace>(t.pool.take_sent(t.h1.conn)).back().address == "10.0.0.9:7002");
    CHECK_FALSE(t.closed(second.conn));
    t.pool.turn->take_host_table({host("h1", 1)});
    t.pool.pump();
    CHECK(t.closed(second.conn));
    CHECK(all<wire::BackupPlace>(t.pool.take_sent(t.h1.conn)).back().address.empty());
}

TEST_CASE("a backup's certificate is renewed for the backup that is here, and for its own key") {
    TwoHosts t;
    const ConnId early = t.pool.open(turn::Door::backup, "host vault", false, t.backup.certified());
    t.pool.post(early, wire::RenewCertificate{*pki::make_request(t.backup.key)});
    t.pool.pump();
    CHECK(t.closed(early));
    t.backup.connect(t.pool);
    t.pool.post(t.backup.conn, wire::RenewCertificate{*pki::make_request(pki::new_key())});
    t.pool.pump();
    CHECK(t.pool.take_sent(t.backup.conn).empty());
    t.pool.post(t.backup.conn, wire::RenewCertificate{*pki::make_request(t.backup.key)});
    t.pool.pump();
    const auto renewed = all<wire::Renewed>(t.pool.take_sent(t.backup.conn));
    REQUIRE(renewed.size() == 1);
    CHECK(renewed[0].certificate == "certificate of backup vault");
}

TEST_CASE("a backup whose place another link has taken gets no certificate") {
    TwoHosts t;
    t.backup.connect(t.pool);
    const ConnId old = t.backup.conn, next = t.pool.open(turn::Door::backup, "host vault", false, t.backup.certified());
    t.pool.outside->lines.clear();
    t.pool.post(next, wire::BackupCall{wire::opening_form, 7});  // both in one turn
    t.pool.post(old, wire::RenewCertificate{*pki::make_request(t.backup.key)});
    t.pool.pump();
    const std::string line = "connection " + to_text(old) +
                             ": a certificate for the backup was requested on a link that is not, or no longer, the "
                             "backup's";
    const auto &lines = t.pool.outside->lines;
    CHECK(std::find(lines.begin(), lines.end(), line) != lines.end());
    CHECK(t.closed(old));
    CHECK_FALSE(t.closed(next));
    CHECK(t.pool.turn->state().backup.conn == next);
    CHECK(all<wire::Renewed>(t.pool.take_sent(old)).empty());
}
