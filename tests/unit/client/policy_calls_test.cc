// d_sethost, d_clear_nogo, d_explain, d_grestart, d_gkill_of and the new parameters of grains.
#include <cerrno>
#include <cmath>
#include <functional>

#include "base/limits.h"
#include "dcs.h"
#include "fake_scheduler.h"
#include "support/about.h"
#include "support/catch.h"

using namespace dcs;
using dcs::test::Act;
using dcs::test::FakeScheduler;
using dcs::test::plausible;

namespace {

FakeScheduler::Script answer_with(wire::AnyMessage reply) {
    return [reply](const wire::AnyMessage &m, int nth) {
        Act a;
        a.reply = nth < 0 ? plausible(m) : reply;
        return a;
    };
}

wire::Explanation explanation() {
    wire::Explanation e;
    e.state = "ready", e.summary = "It waits for a slot.", e.can_run = true, e.ahead = 4;
    e.reasons = {{"busy", "All slots are busy.", "wait", 3, {"h1", "h2", "h3"}},
                 {"quota", "The user runs enough.", "", 0, {}}};
    return e;
}

d_host_change drained_change() {
    d_host_change change;
    d_host_change_init(&change);
    change.drained = 1;
    return change;
}

struct NewCall {
    const char *name;
    std::function<int()> call;
    std::vector<int> errors;  // that dcs.h documents for what the scheduler answers
    wire::AnyMessage reply = wire::Done{};
};

std::vector<NewCall> new_calls() {
    static d_explanation *why = nullptr;
    return {
        {"d_sethost",
         [] {
             const d_host_change change = drained_change();
             return d_sethost("local1", &change);
         },
         {D_E_REFUSED, D_E_NOT_FOUND, D_E_INVALID, D_E_NO_SPACE}},
        {"d_clear_nogo",
         [] { return d_clear_nogo("ann", 3, 17, "local1"); },
         {D_E_REFUSED, D_E_NOT_FOUND, D_E_SESSION_UNKNOWN, D_E_GRAIN_UNKNOWN, D_E_NO_SPACE}},
        {"d_explain",
         [] {
             d_explanation_free(why);
             return d_explain("ann", 3, 17, &why);
         },
         {D_E_REFUSED, D_E_SESSION_UNKNOWN, D_E_GRAIN_UNKNOWN},
         explanation()},
        {"d_grestart",
         [] { return d_grestart("ann", 3, 17); },
         {D_E_REFUSED, D_E_SESSION_UNKNOWN, D_E_SESSION_CLOSED, D_E_GRAIN_UNKNOWN, D_E_NO_SPACE}},
        {"d_gkill_of",
         [] { return d_gkill_of("ann", 3, 17); },
         {D_E_REFUSED, D_E_SESSION_UNKNOWN, D_E_GRAIN_UNKNOWN, D_E_NO_SPACE}},
    };
}

std::size_t requests(const FakeScheduler &fake) {
    std::size_t n = 0;
    for (const auto &s : fake.seen()) n += !std::holds_alternative<wire::Hello>(s.message);
    return n;
}

}  // namespace

TEST_CASE("new calls: success without d_get_auth, and the scheduler's errors with its words") {
    for (const NewCall &call : new_calls()) {
        INFO(call.name);
        FakeScheduler fake;
        fake.script(answer_with(call.reply));
        CHECK(call.call() == NO_ERROR);
        CHECK(std::string(d_errortext()).empty());
        CHECK(requests(fake) == 1);
        for (const int error : call.errors) {
            fake.script(answer_with(wire::ErrorReply{error, "because of that"}));
            CHECK(call.call() == error);
            CHECK(std::string(d_errortext()) == "because of that");
        }
        fake.script(answer_with(wire::Welcome{}));
        CHECK(call.call() == D_E_PROTOCOL);
        fake.script(answer_with(call.reply));
        CHECK(call.call() == NO_ERROR);
    }
}

TEST_CASE("new calls over a lost connection: the same request again, then broken or unreachable") {
    for (const NewCall &call : new_calls()) {
        for (const bool inside : {false, true}) {
            INFO(call.name << ", cut inside " << inside);
            FakeScheduler fake;
            fake.script([&](const wire::AnyMessage &m, int nth) {
                Act a = answer_with(call.reply)(m, nth);
                a.cut_before = nth == 0 && !inside;
                a.cut_inside = nth == 0 && inside;
                return a;
            });
            CHECK(call.call() == NO_ERROR);
            std::vector<std::uint64_t> ids;
            for (const auto &s : fake.seen())
                if (!std::holds_alternative<wire::Hello>(s.message)) ids.push_back(s.request);
            REQUIRE(ids.size() == 2);
            CHECK(ids[0] == ids[1]);
        }
        INFO(call.name);
        FakeScheduler fake;
        ::setenv("DCS_PATIENCE_S", "0.2", 1);
        fake.script([](const wire::AnyMessage &m, int nth) {
            Act a;
            a.reply = plausible(m);
            a.cut_before = nth >= 0;
            return a;
        });
        errno = 0;
        CHECK(call.call() == D_E_BROKEN);
        CHECK(errno == ECONNRESET);
        fake.stop();
        CHECK(call.call() == D_E_UNREACHABLE);
        CHECK(errno == ECONNREFUSED);
    }
}

TEST_CASE("d_sethost: what was set travels, the rest stays") {
    FakeScheduler fake;
    const auto sent = [&](auto change_it) {
        d_host_change change;
        d_host_change_init(&change);
        change_it(change);
        const std::size_t before = fake.all<wire::SetHost>().size();
        REQUIRE(d_sethost("local1", &change) == NO_ERROR);
        REQUIRE(fake.all<wire::SetHost>().size() == before + 1);
        return fake.all<wire::SetHost>().back().second;
    };
    wire::SetHost s = sent([](d_host_change &c) { c.slots = 0; });
    CHECK(s.host == "local1");
    CHECK(s.slots == 0);
    CHECK((s.interval_s < 0 && s.alert_s < 0 && s.limit_s < 0 && s.extended_s < 0));
    CHECK(s.drained == -1);
    CHECK(s.host_class == 0);
    CHECK((!s.reset && !s.clear_nogo));
    CHECK((s.session == -1 && s.grain == -1));
    s = sent([](d_host_change &c) { c.drained = 5, c.slots = -7; });
    CHECK(s.drained == 1);
    CHECK(s.slots == -1);
    CHECK(sent([](d_host_change &c) { c.drained = 0; }).drained == 0);
    CHECK(sent([](d_host_change &c) { c.reset = 2; }).reset);
    CHECK(sent([](d_host_change &c) { c.host_class = 0x80000000u; }).host_class == 0x80000000u);
    s = sent([](d_host_change &c) { c.interval_s = 1, c.alert_s = 2, c.limit_s = 3, c.extended_s = 4.5; });
    CHECK(s.interval_s == 1);
    CHECK(s.alert_s == 2);
    CHECK(s.limit_s == 3);
    CHECK(s.extended_s == 4.5);
}

TEST_CASE("d_sethost and d_clear_nogo: what makes no sense does not leave the process") {
    FakeScheduler fake;
    d_host_change change = drained_change();
    CHECK(d_sethost(nullptr, &change) == D_E_INVALID);
    CHECK(d_sethost("", &change) == D_E_INVALID);
    CHECK(d_sethost(std::string(limits::name_bytes + 1, 'h').c_str(), &change) == D_E_INVALID);
    CHECK(d_sethost("local1", nullptr) == D_E_INVALID);
    for (double d_host_change::*field :
         {&d_host_change::interval_s, &d_host_change::alert_s, &d_host_change::limit_s, &d_host_change::extended_s})
        for (const double value : {double(NAN), double(INFINITY), -double(INFINITY), 2e9}) {
            change = drained_change();
            change.*field = value;
            CHECK(d_sethost("local1", &change) == D_E_INVALID);
            CHECK(std::string(d_errortext()) == about("_s 1e9 seconds"));
        }
    d_host_change_init(&change);
    CHECK(d_sethost("local1", &change) == D_E_INVALID);
    CHECK(std::string(d_errortext()) == about("no field change"));
    CHECK(d_clear_nogo(nullptr, 3, 17, nullptr) == D_E_INVALID);
    CHECK(d_clear_nogo(nullptr, 3, -1, "local1") == D_E_INVALID);
    CHECK(d_clear_nogo(nullptr, -1, 17, "local1") == D_E_INVALID);
    CHECK(d_clear_nogo(std::string(limits::name_bytes + 1, 'u').c_str(), 3, 17, "local1") == D_E_INVALID);
    CHECK(requests(fake) == 0);
}

TEST_CASE("d_clear_nogo: of one grain, or of all") {
    FakeScheduler fake;
    REQUIRE(d_clear_nogo("bob", 3, 17, "local2") == NO_ERROR);
    REQUIRE(d_clear_nogo(nullptr, -1, -1, "local2") == NO_ERROR);
    const auto calls = fake.all<wire::SetHost>();
    REQUIRE(calls.size() == 2);
    const wire::SetHost &one = calls[0].second, &all = calls[1].second;
    CHECK((one.clear_nogo && all.clear_nogo));
    CHECK(one.host == "local2");
    CHECK(one.user == "bob");
    CHECK(one.session == 3);
    CHECK(one.grain == 17);
    CHECK(all.user.empty());
    CHECK((all.session == -1 && all.grain == -1));
    CHECK((all.slots == -1 && all.drained == -1 && !all.reset));  // and nothing else of the host
}

TEST_CASE("d_explain: every field, in a block of its own") {
    FakeScheduler fake;
    fake.script(answer_with(explanation()));
    d_explanation *why = nullptr, *other = nullptr;
    REQUIRE(d_explain("bob", 3, 17, &why) == NO_ERROR);
    fake.script(answer_with(wire::Explanation{"finished", "It has finished.", false, -1, {}}));
    REQUIRE(d_explain(nullptr, 3, 18, &other) == NO_ERROR);
    CHECK(std::string(why->state) == "ready");
    CHECK(std::string(why->summary) == "It waits for a slot.");
    CHECK(why->can_run == 1);
    CHECK(why->ahead == 4);
    REQUIRE(why->reason_count == 2);
    CHECK(std::string(why->reasons[0].reason) == "busy");
    CHECK(std::string(why->reasons[0].text) == "All slots are busy.");
    CHECK(std::string(why->reasons[0].hint) == "wait");
    CHECK(why->reasons[0].hosts == 3);
    REQUIRE(why->reasons[0].name_count == 3);
    CHECK(std::string(why->reasons[0].names[2]) == "h3");
    CHECK(why->reasons[1].hosts == 0);
    CHECK(why->reasons[1].name_count == 0);
    CHECK(why->reasons[1].names == nullptr);
    CHECK(std::string(why->reasons[1].hint).empty());
    CHECK(other->can_run == 0);
    CHECK(other->ahead == -1);
    CHECK(other->reason_count == 0);
    d_explanation_free(why);
    d_explanation_free(other);
    d_explanation_free(nullptr);
    const auto asked = fake.all<wire::Explain>();
    REQUIRE(asked.size() == 2);
    CHECK(asked[0].second.user == "bob");
    CHECK(asked[0].second.session == 3);
    CHECK(asked[0].second.grain == 17);
    CHECK(asked[1].second.user.empty());

    d_explanation *none = reinterpret_cast<d_explanation *>(&fake);
    fake.script(answer_with(wire::ErrorReply{D_E_GRAIN_UNKNOWN, "no"}));
    CHECK(d_explain(nullptr, 3, 17, &none) == D_E_GRAIN_UNKNOWN);
    CHECK(none == nullptr);
    CHECK(d_explain(nullptr, 3, 17, nullptr) == D_E_INVALID);
    CHECK(d_explain(nullptr, -1, 17, &none) == D_E_INVALID);
    CHECK(d_explain(nullptr, 3, -1, &none) == D_E_INVALID);
    CHECK(fake.all<wire::Explain>().size() == 3);
}

TEST_CASE("d_grestart and d_gkill_of name the grain and its owner") {
    FakeScheduler fake;
    REQUIRE(d_grestart("bob", 3, 17) == NO_ERROR);
    REQUIRE(d_grestart(nullptr, 4, 18) == NO_ERROR);
    REQUIRE(d_gkill_of("bob", 3, 19) == NO_ERROR);
    REQUIRE(d_gkill(3, 20) == NO_ERROR);
    const auto restarts = fake.all<wire::RestartGrain>();
    REQUIRE(restarts.size() == 2);
    CHECK(restarts[0].second.user == "bob");
    CHECK(restarts[0].second.session == 3);
    CHECK(restarts[0].second.grain == 17);
    CHECK(restarts[1].second.user.empty());
    const auto kills = fake.all<wire::Gkill>();
    REQUIRE(kills.size() == 2);
    CHECK(kills[0].second.user == "bob");
    CHECK(kills[0].second.grain == 19);
    CHECK(kills[1].second.user.empty());
    const std::string long_name(limits::name_bytes + 1, 'u');
    CHECK(d_grestart(long_name.c_str(), 3, 17) == D_E_INVALID);
    CHECK(d_grestart(nullptr, 3, -1) == D_E_INVALID);
    CHECK(d_gkill_of(long_name.c_str(), 3, 17) == D_E_INVALID);
    CHECK(d_gkill_of(nullptr, -3, 17) == D_E_INVALID);
}

TEST_CASE("a grain's cores, memory and time travel with it, negative ones do not") {
    FakeScheduler fake;
    REQUIRE(d_get_auth("tester") == NO_ERROR);
    char *words[] = {const_cast<char *>("bin/ecm"), nullptr};
    d_grain grain;
    d_grain_init(&grain);
    CHECK((grain.cores == 0 && grain.memory_mb == 0 && grain.wall_s == 0));
    grain.gargv = words;
    grain.cores = 2, grain.memory_mb = 512, grain.wall_s = 3600;
    REQUIRE(d_gexec_grain(3, 1, &grain) == NO_ERROR);
    REQUIRE(d_gexec(3, 2, words, nullptr, nullptr, 0, 0, 0, 0) == NO_ERROR);
    const auto execs = fake.all<wire::Gexec>();
    REQUIRE(execs.size() == 2);
    CHECK(execs[0].second.spec.demands.cores == 2);
    CHECK(execs[0].second.spec.demands.memory_mb == 512);
    CHECK(execs[0].second.spec.demands.wall_s == 3600);
    CHECK(execs[1].second.spec.demands.cores == 0);
    for (int d_grain::*field : {&d_grain::cores, &d_grain::memory_mb, &d_grain::wall_s}) {
        d_grain bad = grain;
        bad.*field = -1;
        CHECK(d_gexec_grain(3, 3, &bad) == D_E_INVALID);
    }
    CHECK(fake.all<wire::Gexec>().size() == 2);
}
