#include <cstring>

#include <sys/mman.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/limits.h"
#include "dcs.h"
#include "fake_scheduler.h"
#include "support/catch.h"

using namespace dcs;
using dcs::test::Act;
using dcs::test::FakeScheduler;
using dcs::test::plausible;

namespace {

std::string contents(FILE *f) {
    std::string all;
    char buffer[65536];
    for (std::size_t n; (n = std::fread(buffer, 1, sizeof buffer, f)) > 0;) all.append(buffer, n);
    std::fclose(f);
    return all;
}

std::string pattern(std::size_t n) {
    std::string s(n, '\0');
    for (std::size_t i = 0; i < n; ++i) s[i] = static_cast<char>(i * 2654435761u >> 24);
    return s;
}

// Serves `out` by pieces, cutting the connection at the given requests.
FakeScheduler::Script serve(const std::string &out, int cut_at = -1) {
    return [out, cut_at](const wire::AnyMessage &m, int nth) {
        Act a;
        a.reply = plausible(m);
        a.cut_before = nth >= 0 && nth == cut_at;
        if (std::holds_alternative<wire::Gwait>(m)) {
            wire::GrainResult r;
            r.grain = 17, r.sent = 1;
            r.out = out.substr(0, limits::gwait_text_bytes), r.out_length = out.size();
            r.err = "e", r.err_length = 1;
            a.reply = r;
        }
        if (const auto *f = std::get_if<wire::Fetch>(&m))
            a.reply = wire::Piece{out.size(), f->offset < out.size() ? out.substr(f->offset, f->max) : ""};
        return a;
    };
}

}  // namespace

TEST_CASE("whole outputs come as streams, over a broken connection too") {
    for (const std::size_t size : {std::size_t{0}, std::size_t{3}, limits::gwait_text_bytes,
                                   limits::gwait_text_bytes + 1, 3 * limits::fetch_chunk_bytes + 12345}) {
        INFO(size);
        FakeScheduler fake;
        REQUIRE(d_get_auth("tester") == NO_ERROR);
        REQUIRE(d_open_ses(3) == NO_ERROR);
        const std::string out = pattern(size);
        fake.script(serve(out, 2));
        FILE *o = nullptr, *e = nullptr;
        int grain = 0;
        REQUIRE(d_gwait_streams(1, 3, &grain, nullptr, nullptr, nullptr, nullptr, nullptr, &o, &e) == NO_ERROR);
        CHECK(grain == 17);
        CHECK(contents(o) == out);
        CHECK(contents(e) == "e");
        for (const auto &[id, f] : fake.all<wire::Fetch>()) {
            CHECK(f.grain == 17);
            CHECK(f.offset >= limits::gwait_text_bytes);
        }
    }
}

TEST_CASE("a stream that cannot be fetched leaves the result for the next call") {
    FakeScheduler fake;
    REQUIRE(d_get_auth("tester") == NO_ERROR);
    REQUIRE(d_open_ses(3) == NO_ERROR);
    const std::string out = pattern(100000);
    fake.script([&](const wire::AnyMessage &m, int nth) {
        Act a = serve(out)(m, nth);
        if (std::holds_alternative<wire::Fetch>(m)) a.reply = wire::ErrorReply{D_E_IO_ERROR, "disk"};
        return a;
    });
    FILE *o = nullptr;
    CHECK(d_gwait_streams(1, 3, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, &o, nullptr) == D_E_IO_ERROR);
    CHECK(o == nullptr);
    fake.script(serve(out));
    REQUIRE(d_gwait_streams(1, 3, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, &o, nullptr) == NO_ERROR);
    CHECK(contents(o) == out);
    const auto waits = fake.all<wire::Gwait>();
    REQUIRE(waits.size() == 2);
    CHECK(waits[0].second.next == 0);
    CHECK(waits[1].second.next == 0);
}

TEST_CASE("a stream that ends early is an error") {
    FakeScheduler fake;
    REQUIRE(d_get_auth("tester") == NO_ERROR);
    REQUIRE(d_open_ses(3) == NO_ERROR);
    const std::string out = pattern(100000);
    fake.script([&](const wire::AnyMessage &m, int nth) {
        Act a = serve(out)(m, nth);
        if (auto *p = std::get_if<wire::Piece>(&a.reply)) p->bytes.clear();
        return a;
    });
    FILE *o = nullptr;
    CHECK(d_gwait_streams(1, 3, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, &o, nullptr) == D_E_IO_ERROR);
}

TEST_CASE("d_grain_stream fetches to the end that the scheduler tells") {
    FakeScheduler fake;
    const std::string out = pattern(2 * limits::fetch_chunk_bytes + 1);
    fake.script(serve(out));
    FILE *f = nullptr;
    REQUIRE(d_grain_stream("bob", 3, 17, "input", &f) == NO_ERROR);
    CHECK(contents(f) == out);
    const auto fetches = fake.all<wire::Fetch>();
    REQUIRE(fetches.size() == 3);
    CHECK(fetches[0].second.user == "bob");
    CHECK(fetches[0].second.stream == wire::Stream::input);
    CHECK(fetches[2].second.offset == 2 * limits::fetch_chunk_bytes);
    fake.script(serve(""));
    REQUIRE(d_grain_stream(nullptr, 3, 17, "err", &f) == NO_ERROR);
    CHECK(contents(f).empty());
}

TEST_CASE("a checkpoint that is replaced while it is fetched is fetched again") {
    FakeScheduler fake;
    const std::string old_one(300000, 'o'), new_one = pattern(400000) + "new";
    fake.script([&](const wire::AnyMessage &m, int nth) { return serve(nth == 0 ? old_one : new_one)(m, nth); });
    FILE *f = nullptr;
    REQUIRE(d_grain_stream(nullptr, 3, 17, "checkpoint", &f) == NO_ERROR);
    CHECK(contents(f) == new_one);
}

TEST_CASE("queries: rows arrive in the caller's structs") {
    FakeScheduler fake;
    fake.script([](const wire::AnyMessage &m, int) {
        Act a;
        a.reply = plausible(m);
        if (!std::holds_alternative<wire::Query>(m)) return a;
        wire::QueryReply r;
        r.system.pid = 4711, r.system.version = "0.1.0", r.system.hosts_active = 2;
        wire::HostRow h;
        h.name = "local1", h.state = "active", h.slots = 4, h.load = 0.5;
        r.hosts = {h, h};
        wire::SessionRow s;
        s.user = "ann", s.session = 3, s.finished = 9, s.ident = "factor", s.state = "active";
        r.sessions = {s};
        wire::GrainRow g;
        g.user = "ann", g.grain = 17, g.state = "running", g.argv = {"bin/ecm", "12"}, g.cpu_s = 1.5, g.run_cpu_s = 0.5,
        g.message = "half";
        r.grains = {g};
        a.reply = r;
        return a;
    });
    d_info *info = nullptr;
    REQUIRE(d_query(D_Q_GRAIN, "ann", 3, 17, &info) == NO_ERROR);
    CHECK(info->scheduler_pid == 4711);
    CHECK(std::string(info->version) == "0.1.0");
    REQUIRE(info->host_count == 2);
    CHECK(std::string(info->hosts[1].name) == "local1");
    CHECK(info->hosts[1].slots == 4);
    REQUIRE(info->session_count == 1);
    CHECK(std::string(info->sessions[0].ident) == "factor");
    CHECK(info->sessions[0].finished == 9);
    REQUIRE(info->grain_count == 1);
    CHECK(info->grains[0].cpu_s == 1.5);
    CHECK(info->grains[0].run_cpu_s == 0.5);
    CHECK(std::string(info->grains[0].argv[0]) == "bin/ecm");
    CHECK(std::string(info->grains[0].argv[1]) == "12");
    CHECK(info->grains[0].argv[2] == nullptr);
    d_query_free(info);
    d_query_free(nullptr);
    const wire::Query q = fake.all<wire::Query>().at(0).second;
    CHECK(q.type == wire::QueryType::grain);
    CHECK(q.user == "ann");
    CHECK(q.session == 3);
    CHECK(q.grain == 17);
}

TEST_CASE("grains come page by page, those of all sessions session by session") {
    FakeScheduler fake;
    fake.script([](const wire::AnyMessage &m, int) {
        Act a;
        a.reply = plausible(m);
        const auto *q = std::get_if<wire::Query>(&m);
        if (!q) return a;
        wire::QueryReply r;
        if (q->type == wire::QueryType::sessions) {
            wire::SessionRow s;
            s.user = "ann", s.session = 1;
            r.sessions.push_back(s);
            s.user = "bob", s.session = 5;
            r.sessions.push_back(s);
            s.user = "ann", s.session = 2;
            r.sessions.push_back(s);
        }
        if (q->type == wire::QueryType::grains) {
            for (int i = q->after + 1; i <= q->after + 3 && i < 8; ++i) {
                wire::GrainRow g;
                g.session = q->session, g.grain = i;
                r.grains.push_back(g);
            }
            r.more = q->after + 3 < 7;
        }
        a.reply = r;
        return a;
    });
    d_info *info = nullptr;
    REQUIRE(d_query(D_Q_FINISHED, nullptr, 4, -1, &info) == NO_ERROR);
    REQUIRE(info->grain_count == 8);
    for (int i = 0; i < 8; ++i) CHECK(info->grains[i].grain == i);
    CHECK(info->grains[0].argv == nullptr);
    d_query_free(info);
    for (const auto &[id, q] : fake.all<wire::Query>()) CHECK(q.status == "finished");
    REQUIRE(d_query(D_Q_GRAINS, nullptr, -1, -1, &info) == NO_ERROR);
    REQUIRE(info->grain_count == 16);  // ann, as the scheduler calls us, has two sessions
    CHECK(info->grains[0].session == 1);
    CHECK(info->grains[15].session == 2);
    d_query_free(info);
}

TEST_CASE("pages that do not go on are noticed") {
    FakeScheduler fake;
    fake.script([](const wire::AnyMessage &m, int) {
        Act a;
        a.reply = plausible(m);
        if (!std::holds_alternative<wire::Query>(m)) return a;
        wire::QueryReply r;
        r.grains.resize(1);
        r.grains[0].grain = 5;
        r.more = true;
        a.reply = r;
        return a;
    });
    d_info *info = nullptr;
    CHECK(d_query(D_Q_GRAINS, nullptr, 4, -1, &info) == D_E_PROTOCOL);
    CHECK(info == nullptr);
}

TEST_CASE("d_close_ses_of names the other user") {
    FakeScheduler fake;
    REQUIRE(d_close_ses_of("bob", 7) == NO_ERROR);
    const auto close = fake.all<wire::CloseSession>().at(0).second;
    CHECK(close.user == "bob");
    CHECK(close.acknowledged == -1);
    REQUIRE(d_clean_ses(7) == NO_ERROR);
    CHECK(fake.all<wire::CleanSession>().at(0).second.number == 7);
}

TEST_CASE("the token of dcs_begin is taken once, from a sealed descriptor only") {
    FakeScheduler fake;
    const std::string token(32, '\x7f');
    const int fd = ::memfd_create("t", MFD_ALLOW_SEALING);
    REQUIRE(::write(fd, token.data(), token.size()) == 32);
    REQUIRE(::fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) == 0);
    ::setenv("DCS_AUTH_FD", std::to_string(fd).c_str(), 1);
    REQUIRE(d_get_auth("inherited") == NO_ERROR);
    CHECK(std::getenv("DCS_AUTH_FD") == nullptr);
    CHECK(::fcntl(fd, F_GET_SEALS) == -1);  // closed; the number may serve a socket by now
    const auto hellos = fake.all<wire::Hello>();
    REQUIRE(!hellos.empty());
    CHECK(hellos.back().second.token == token);
    CHECK(fake.all<wire::GetAuth>().back().second.ident == "inherited");
    REQUIRE(d_open_ses(1) == NO_ERROR);
    CHECK(fake.all<wire::Hello>().back().second.token == std::string(32, 'i'));

    int pipe[2];
    REQUIRE(::pipe(pipe) == 0);
    ::setenv("DCS_AUTH_FD", std::to_string(pipe[0]).c_str(), 1);
    CHECK(d_get_auth("another") == D_E_NO_AUTH);
    CHECK(::fcntl(pipe[0], F_GETFD) != -1);  // not ours, left alone
    CHECK(std::getenv("DCS_AUTH_FD") == nullptr);
    ::close(pipe[0]), ::close(pipe[1]);
    for (const char *bad : {"", "x", "-1", "99999", "7 ", "99999999999999999999"}) {
        ::setenv("DCS_AUTH_FD", bad, 1);
        CHECK(d_get_auth("another") == D_E_NO_AUTH);
    }
    CHECK(d_get_auth("another") == NO_ERROR);
}

TEST_CASE("an inherited token that the scheduler forgot is told, the next call asks for a new one") {
    FakeScheduler fake;
    const std::string token(32, '\x01');
    const int fd = ::memfd_create("t", MFD_ALLOW_SEALING);
    REQUIRE(::write(fd, token.data(), token.size()) == 32);
    REQUIRE(::fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) == 0);
    ::setenv("DCS_AUTH_FD", std::to_string(fd).c_str(), 1);
    fake.script([](const wire::AnyMessage &m, int) {
        Act a;
        a.reply = plausible(m);
        if (const auto *h = std::get_if<wire::Hello>(&m); h && !h->token.empty())
            a.reply = wire::ErrorReply{D_E_NO_AUTH, "unknown token"};
        return a;
    });
    CHECK(d_get_auth("forgotten") == D_E_NO_AUTH);
    CHECK(std::string(d_errortext()) == "unknown token");
    CHECK(d_get_auth("forgotten") == NO_ERROR);
}
