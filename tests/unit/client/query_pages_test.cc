// Long answers of d_query, and the rows' lists.
#include <algorithm>

#include "dcs.h"
#include "fake_scheduler.h"
#include "support/catch.h"

using namespace dcs;
using dcs::test::Act;
using dcs::test::FakeScheduler;
using dcs::test::plausible;

namespace {

struct Row {
    const char *user;
    int session;
    const char *state;
};

// A scheduler with these sessions, in ascending order, that answers with pages of `page` rows; each
// session has the grains 0 to 2.
FakeScheduler::Script pages_of(std::vector<Row> rows, std::size_t page) {
    return [rows, page](const wire::AnyMessage &m, int) {
        Act a;
        a.reply = plausible(m);
        const auto *q = std::get_if<wire::Query>(&m);
        if (!q) return a;
        wire::QueryReply r;
        for (const Row &row : rows) {
            if (q->type != wire::QueryType::sessions) break;
            if (!q->user.empty() && q->user != row.user) continue;
            const bool all = q->after_user.empty() && q->after < 0;
            if (!all && std::pair<std::string, int>(row.user, row.session) <=
                            std::pair<std::string, int>(q->after_user, q->after))
                continue;
            r.more = r.sessions.size() == page;
            if (r.more) break;
            wire::SessionRow s;
            s.user = row.user, s.session = row.session, s.state = row.state;
            r.sessions.push_back(s);
        }
        for (int i = 0; q->type == wire::QueryType::grains && i < 3; ++i) {
            wire::GrainRow g;
            g.user = q->user, g.session = q->session, g.grain = i;
            r.grains.push_back(g);
        }
        a.reply = r;
        return a;
    };
}

const std::vector<Row> six = {{"ann", 0, "active"}, {"ann", 3, "terminated"}, {"ann", 7, "active"},
                              {"bob", 0, "active"}, {"bob", 2, "active"},     {"cid", 9, "active"}};

}  // namespace

TEST_CASE("sessions come page by page, whatever the size of a page") {
    for (std::size_t page = 1; page <= 7; ++page) {
        INFO("pages of " << page);
        FakeScheduler fake;
        fake.script(pages_of(six, page));
        d_info *info = nullptr;
        REQUIRE(d_query(D_Q_SESSIONS, nullptr, -1, -1, &info) == NO_ERROR);
        REQUIRE(info->session_count == 6);
        for (std::size_t i = 0; i < 6; ++i) {
            CHECK(std::string(info->sessions[i].user) == six[i].user);
            CHECK(info->sessions[i].session == six[i].session);
        }
        d_query_free(info);
        CHECK(fake.all<wire::Query>().size() == (6 + page - 1) / page);
        REQUIRE(d_query(D_Q_SESSIONS, "bob", -1, -1, &info) == NO_ERROR);
        REQUIRE(info->session_count == 2);
        CHECK(info->sessions[1].session == 2);
        d_query_free(info);
    }
}

TEST_CASE("pages of sessions that do not go on are noticed") {
    for (const bool empty : {false, true}) {
        FakeScheduler fake;
        fake.script([empty](const wire::AnyMessage &m, int) {
            Act a;
            a.reply = plausible(m);
            if (!std::holds_alternative<wire::Query>(m)) return a;
            wire::QueryReply r;
            r.sessions.resize(empty ? 0 : 1);
            if (!empty) r.sessions[0].user = "ann", r.sessions[0].session = 5;
            r.more = true;
            a.reply = r;
            return a;
        });
        d_info *info = nullptr;
        CHECK(d_query(D_Q_SESSIONS, nullptr, -1, -1, &info) == D_E_PROTOCOL);
        CHECK(info == nullptr);
        CHECK(d_query(D_Q_GRAINS, nullptr, -1, -1, &info) == D_E_PROTOCOL);
    }
}

TEST_CASE("grains of all sessions: over all pages, but those that are damaged or were removed meanwhile") {
    FakeScheduler fake;
    const std::vector<Row> rows = {{"ann", 1, "active"},
                                   {"ann", 2, "damaged"},
                                   {"ann", 3, "terminated"},
                                   {"ann", 4, "active"},
                                   {"bob", 1, "active"}};
    const auto pages = pages_of(rows, 2);
    fake.script([&](const wire::AnyMessage &m, int nth) {
        Act a = pages(m, nth);
        const auto *q = std::get_if<wire::Query>(&m);
        if (q && q->type == wire::QueryType::grains && q->session != 1 && q->session != 4)
            a.reply = wire::ErrorReply{q->session == 3 ? D_E_SESSION_UNKNOWN : D_E_IO_ERROR, "gone"};
        return a;
    });
    d_info *info = nullptr;
    REQUIRE(d_query(D_Q_GRAINS, nullptr, -1, -1, &info) == NO_ERROR);
    REQUIRE(info->grain_count == 6);
    CHECK(info->grains[2].session == 1);
    CHECK(info->grains[3].session == 4);
    d_query_free(info);
    fake.script([&](const wire::AnyMessage &m, int nth) {
        Act a = pages(m, nth);
        const auto *q = std::get_if<wire::Query>(&m);
        if (q && q->type == wire::QueryType::grains) a.reply = wire::ErrorReply{D_E_REFUSED, "not yours"};
        return a;
    });
    CHECK(d_query(D_Q_GRAINS, "bob", -1, -1, &info) == D_E_REFUSED);  // other errors are not swallowed
    CHECK(info == nullptr);
}

TEST_CASE("hosts can be asked for by their state") {
    FakeScheduler fake;
    d_info *info = nullptr;
    for (const int type : {D_Q_HOSTS, D_Q_HOSTS_ACTIVE, D_Q_HOSTS_DELINQUENT}) {
        REQUIRE(d_query(type, nullptr, -1, -1, &info) == NO_ERROR);
        d_query_free(info);
    }
    const auto asked = fake.all<wire::Query>();
    REQUIRE(asked.size() == 3);
    for (const auto &[id, q] : asked) CHECK(q.type == wire::QueryType::hosts);
    CHECK(asked[0].second.status.empty());
    CHECK(asked[1].second.status == "active");
    CHECK(asked[2].second.status == "delinquent");
    CHECK(d_query(D_Q_HOSTS_DELINQUENT + 1, nullptr, -1, -1, &info) == D_E_INVALID);
    CHECK(d_query(-1, nullptr, -1, -1, &info) == D_E_INVALID);
}

TEST_CASE("hosts and grains come with their lists and all their figures") {
    FakeScheduler fake;
    fake.script([](const wire::AnyMessage &m, int) {
        Act a;
        a.reply = plausible(m);
        if (!std::holds_alternative<wire::Query>(m)) return a;
        wire::QueryReply r;
        wire::HostRow h;
        h.name = "local1", h.alert_s = 3, h.limit_s = 6, h.extended_s = 12;
        h.cores = 4, h.cores_used = 3, h.memory_mb = 2048, h.memory_used_mb = 512;
        h.connected = true, h.drained = true, h.settings = "slots=0", h.note = "on probation";
        h.users = {"ann", "bob"}, h.blamed = 6, h.blamed_lately = 2;
        r.hosts = {h, wire::HostRow{}};
        wire::GrainRow g;
        g.demands = {0, 64, true, 5, 7, 2, 512, 3600}, g.nogo = {"local2", "local3"};
        g.moves = {{"usurped", "local2", "for ann/2:1", 3, 12.5}, {"host_dead", "local3", "", 2, -1}};
        r.grains = {wire::GrainRow{}, g, wire::GrainRow{}, g};
        a.reply = r;
        return a;
    });
    d_info *info = nullptr;
    REQUIRE(d_query(D_Q_GRAIN, "ann", 3, 17, &info) == NO_ERROR);
    const d_host_row &h = info->hosts[0];
    CHECK(h.alert_s == 3);
    CHECK(h.limit_s == 6);
    CHECK(h.extended_s == 12);
    CHECK((h.cores == 4 && h.cores_used == 3));
    CHECK((h.memory_mb == 2048 && h.memory_used_mb == 512));
    CHECK((h.connected == 1 && h.drained == 1));
    CHECK(std::string(h.settings) == "slots=0");
    CHECK(std::string(h.note) == "on probation");
    REQUIRE(h.user_count == 2);
    CHECK(std::string(h.users[1]) == "bob");
    CHECK((h.blamed == 6 && h.blamed_lately == 2));
    CHECK(info->hosts[1].user_count == 0);
    CHECK(info->hosts[1].users == nullptr);
    CHECK(std::string(info->hosts[1].settings).empty());
    for (const std::size_t i : {1, 3}) {  // the lists of one row are not those of another
        const d_grain_row &g = info->grains[i];
        CHECK((g.thrash == 64 && g.notice == 5 && g.attempts == 7 && g.urgent == 1));
        CHECK((g.cores == 2 && g.memory_mb == 512 && g.wall_s == 3600));
        REQUIRE(g.nogo_count == 2);
        CHECK(std::string(g.nogo[0]) == "local2");
        CHECK(std::string(g.nogo[1]) == "local3");
        REQUIRE(g.move_count == 2);
        CHECK(std::string(g.moves[0].reason) == "usurped");
        CHECK(std::string(g.moves[0].host) == "local2");
        CHECK(std::string(g.moves[0].detail) == "for ann/2:1");
        CHECK(g.moves[0].incarnation == 3);
        CHECK(g.moves[0].age_s == 12.5);
        CHECK(std::string(g.moves[1].reason) == "host_dead");
    }
    CHECK(info->grains[2].nogo == nullptr);
    CHECK(info->grains[2].moves == nullptr);
    CHECK((info->grains[2].nogo_count == 0 && info->grains[2].move_count == 0));
    d_query_free(info);
}
