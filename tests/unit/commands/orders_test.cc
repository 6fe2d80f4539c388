// Whole commands against a scheduler of a few lines: what is asked, what is printed, exit codes.
#include <cstdio>
#include <cstdlib>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <unistd.h>

#include "commands/dcs/verbs.h"
#include "commands/dcs/query/scheduler.h"
#include "dcs.h"
#include "support/about.h"
#include "support/catch.h"
#include "unit/client/fake_scheduler.h"

using namespace dcs;
using namespace dcs::commands;
using dcs::test::Act;
using dcs::test::FakeScheduler;
using dcs::test::plausible;

namespace {

struct Ran {
    int exit = -1;
    std::string out, err;
};

// Stdout or stderr of this process into a file meanwhile.
class Capture {
public:
    explicit Capture(FILE *stream) : stream_(stream), file_(std::tmpfile()) {
        std::fflush(stream_);
        saved_ = ::dup(::fileno(stream_));
        ::dup2(::fileno(file_), ::fileno(stream_));
    }
    ~Capture() { std::fclose(file_); }
    std::string end() {
        std::fflush(stream_);
        ::dup2(saved_, ::fileno(stream_));
        ::close(saved_);
        std::rewind(file_);
        std::string all;
        char buffer[4096];
        for (std::size_t n; (n = std::fread(buffer, 1, sizeof buffer, file_)) > 0;) all.append(buffer, n);
        return all;
    }

private:
    FILE *stream_, *file_;
    int saved_ = -1;
};

Ran dcs_command(const std::vector<std::string> &line) {
    Capture out(stdout), err(stderr);
    Ran ran;
    ran.exit = run_command(line);
    ran.out = out.end();
    ran.err = err.end();
    return ran;
}

// Hosts local1 (as the table has it), local2 (drained and evicted, with an interval set) and a session
// 7 of the caller with the grains 1 running, 2 ready, 3 finished, 4 killed.
struct World {
    int set_host_error = 0, order_error = 0;
    std::string grain_2 = "ready";  // what it is once a party asks for it alone

    wire::QueryReply answer(const wire::Query &q) const {
        wire::QueryReply r;
        if (q.type == wire::QueryType::hosts) {
            wire::HostRow h;
            h.name = "local1", h.state = "active", h.slots = 2, h.running = 1;
            r.hosts.push_back(h);
            h.name = "local2", h.drained = true, h.settings = "slots=0 interval=2.5 drained", h.slots = 0;
            r.hosts.push_back(h);
        } else if (q.type == wire::QueryType::system) {
            r.system.classes = {{"gpu", 4}, {"fast", 2}};
        } else if (q.type == wire::QueryType::sessions) {
            wire::SessionRow s;
            s.user = own_user(), s.session = 7, s.state = "active";
            r.sessions.push_back(s);
        } else {
            const char *states[] = {"running", grain_2.c_str(), "finished", "killed"};
            for (int i = 1; i <= 4; ++i) {
                if (q.type == wire::QueryType::grain && q.grain != i) continue;
                wire::GrainRow g;
                g.user = own_user(), g.session = 7, g.grain = i;
                g.state = i == 2 && q.type == wire::QueryType::grains ? "ready" : states[i - 1];
                r.grains.push_back(g);
            }
        }
        return r;
    }
    Act operator()(const wire::AnyMessage &m, int) const {
        Act a;
        a.reply = plausible(m);
        if (const auto *q = std::get_if<wire::Query>(&m)) a.reply = answer(*q);
        if (const auto *q = std::get_if<wire::Query>(&m); q && q->grain > 4)
            a.reply = wire::ErrorReply{D_E_GRAIN_UNKNOWN, "no"};
        if (std::holds_alternative<wire::Explain>(m))
            a.reply = wire::Explanation{"ready", "it waits", true, 1, {{"busy", "all are busy", "", 2, {"local1"}}}};
        if (std::holds_alternative<wire::SetHost>(m) && set_host_error)
            a.reply = wire::ErrorReply{set_host_error, "no"};
        const bool order = std::holds_alternative<wire::Gkill>(m) || std::holds_alternative<wire::RestartGrain>(m) ||
                           std::holds_alternative<wire::Explain>(m);
        if (order && order_error) a.reply = wire::ErrorReply{order_error, "no"};
        return a;
    }
};

template <class Message> std::vector<int> grains_of(const FakeScheduler &fake) {
    std::vector<int> numbers;
    for (const auto &[id, m] : fake.all<Message>()) numbers.push_back(m.grain);
    return numbers;
}

boost::json::object one_document(const std::string &text) {
    INFO(text);
    REQUIRE(text.find('\n') + 1 == text.size());
    return boost::json::parse(text).as_object();
}

}  // namespace

TEST_CASE("dcs host drain, --evict and undrain: what is set, and how the host stands then") {
    FakeScheduler fake;
    fake.script(World());
    const Ran drained = dcs_command({"host", "drain", "local1"});
    CHECK(drained.exit == exits::ok);
    // The rows of this scheduler stay as they are.
    CHECK(drained.out == "host local1: no longer drained: another command undrained it in the meantime\n");
    REQUIRE(dcs_command({"host", "drain", "--evict", "all"}).exit == exits::ok);
    const Ran undrained = dcs_command({"host", "undrain", "local2", "-o", "json"});
    REQUIRE(undrained.exit == exits::ok);
    const auto calls = fake.all<wire::SetHost>();
    REQUIRE(calls.size() == 4);
    CHECK((calls[0].second.host == "local1" && calls[0].second.drained == 1 && calls[0].second.slots == -1));
    CHECK(calls[0].second.drain_reason.empty());
    CHECK((calls[1].second.host == "local1" && calls[1].second.drained == 1 && calls[1].second.slots == 0));
    CHECK((calls[2].second.host == "local2" && calls[2].second.slots == 0));
    const wire::SetHost &back = calls[3].second;
    CHECK((back.host == "local2" && back.drained == 0 && back.reset && back.slots == -1 && back.interval_s == 2.5));
    const auto document = one_document(undrained.out);
    CHECK(document.at("schema").as_string() == "dcs.host/1");
    CHECK(document.at("host").as_object().at("settings").as_string() == "slots=0 interval=2.5 drained");
}

TEST_CASE("dcs host show and ls: text, json, names") {
    FakeScheduler fake;
    fake.script(World());
    CHECK(dcs_command({"host", "show", "local2"}).out.find("set          slots=0 interval=2.5 drained\n") !=
          std::string::npos);
    CHECK(dcs_command({"host", "show", "all", "-o", "name"}).out == "local1\nlocal2\n");
    CHECK(dcs_command({"host", "ls"}).out.find("active, drained") != std::string::npos);
    CHECK(dcs_command({"host", "show"}).exit == exits::usage);
    CHECK(dcs_command({"host", "show", "nowhere"}).exit == exits::not_found);
    CHECK(dcs_command({"host", "ls", "nowhere"}).exit == exits::not_found);
}

TEST_CASE("dcs host set: hosts that there are, and grains that there are, or nothing is done") {
    FakeScheduler fake;
    fake.script(World());
    CHECK(dcs_command({"host", "set", "local1", "nowhere", "--slots", "1"}).exit == exits::not_found);
    CHECK(dcs_command({"host", "set", "local1", "--slots", "1", "--clear-nogo", "8:1"}).exit == exits::not_found);
    CHECK(dcs_command({"host", "set", "local1", "--slots", "x"}).exit == exits::usage);
    CHECK(fake.all<wire::SetHost>().empty());
    REQUIRE(dcs_command({"host", "set", "local1", "--slots", "3", "--clear-nogo", "7:1-2"}).exit == exits::ok);
    auto calls = fake.all<wire::SetHost>();
    REQUIRE(calls.size() == 3);
    CHECK((calls[0].second.slots == 3 && !calls[0].second.clear_nogo));
    CHECK((calls[1].second.clear_nogo && calls[1].second.session == 7 && calls[1].second.grain == 1));
    CHECK((calls[2].second.clear_nogo && calls[2].second.grain == 2 && calls[2].second.user == own_user()));
    REQUIRE(dcs_command({"host", "set", "local1", "--class", "gpu,fast,0x8"}).exit == exits::ok);
    CHECK(fake.all<wire::SetHost>().back().second.host_class == 14);
    const Ran unknown = dcs_command({"host", "set", "local1", "--class", "fsat"});
    CHECK(unknown.exit == exits::not_found);
    CHECK(unknown.err == about("no class fast?"));
    CHECK(dcs_command({"run", "--class", "gpux", "true"}).exit == exits::run_failed);
    REQUIRE(dcs_command({"host", "set", "local1", "--clear-nogo"}).exit == exits::ok);
    calls = fake.all<wire::SetHost>();
    REQUIRE(calls.size() == 5);
    CHECK((calls[4].second.clear_nogo && calls[4].second.session == -1 && calls[4].second.slots == -1));
    World world;
    world.set_host_error = D_E_REFUSED;
    fake.script(world);
    const Ran refused = dcs_command({"host", "set", "local1", "--slots", "3", "-o", "json"});
    CHECK(refused.exit == exits::refused);
    CHECK(refused.out.empty());
    CHECK(one_document(refused.err).at("error").as_object().at("code").as_string() == "refused");
    world.set_host_error = D_E_INVALID;
    fake.script(world);
    CHECK(dcs_command({"host", "set", "local1", "--interval", "99h"}).exit == exits::usage);
    CHECK(dcs_command({"host", "drain", "local1"}).exit == exits::usage);
}

TEST_CASE("dcs grain explain: text and json of each grain") {
    FakeScheduler fake;
    fake.script(World());
    CHECK(dcs_command({"grain", "explain", "7:2"}).out ==
          "7:2 ready: it waits\n  2 of 2 hosts (local1, ...): all are busy\n");
    const Ran json = dcs_command({"grain", "explain", "last:2", "-o", "json"});
    REQUIRE(json.exit == exits::ok);
    const auto document = one_document(json.out);
    CHECK(document.at("schema").as_string() == "dcs.grain.explain/1");
    CHECK(document.at("user").as_string() == own_user());
    CHECK(document.at("session").as_int64() == 7);
    CHECK(document.at("grain").as_int64() == 2);
    CHECK(document.at("ahead").as_int64() == 1);
    CHECK(document.at("reasons").as_array().size() == 1);
    CHECK(dcs_command({"grain", "explain", "7:1-4", "-o", "name"}).out == "7:1\n7:2\n7:3\n7:4\n");
    CHECK(dcs_command({"grain", "explain"}).exit == exits::usage);
    CHECK(dcs_command({"grain", "explain", "7"}).exit == exits::usage);
    CHECK(dcs_command({"grain", "explain", "9:1"}).exit == exits::not_found);
    World world;
    world.order_error = D_E_REFUSED;
    fake.script(world);
    CHECK(dcs_command({"grain", "explain", "7:1"}).exit == exits::refused);
}

TEST_CASE("dcs grain restart and kill: a range passes over what has ended, a grain named alone is taken at its word") {
    FakeScheduler fake;
    fake.script(World());
    CHECK(dcs_command({"grain", "restart", "7:all"}).out == "grain 7:1 restarted\ngrain 7:2 restarted\n");
    CHECK(grains_of<wire::RestartGrain>(fake) == std::vector<int>{1, 2});
    const Ran killed = dcs_command({"grain", "kill", "7:2-4", "-o", "json"});
    CHECK(killed.out == "{\"schema\":\"dcs.grain.kill/1\",\"killed\":[\"7:2\"]}\n");
    CHECK(dcs_command({"grain", "kill", "7:3"}).exit == exits::refused);  // it has finished, which the call forgives
    CHECK(dcs_command({"grain", "kill", "7:4", "-o", "name"}).out == "7:4\n");
    CHECK(grains_of<wire::Gkill>(fake) == std::vector<int>{2, 4});
    CHECK(fake.all<wire::Gkill>()[0].second.user == own_user());
    CHECK(dcs_command({"grain", "kill", "7:3-4"}).out == "nothing to do: none of these grains is ready or running\n");
    CHECK(dcs_command({"grain", "kill", "7:9"}).exit == exits::not_found);
    CHECK(dcs_command({"grain", "restart"}).exit == exits::usage);
}

TEST_CASE("dcs grain restart: one that ended meanwhile spoils no range, other errors end it") {
    FakeScheduler fake;
    World world;
    world.order_error = D_E_REFUSED;
    fake.script(world);
    CHECK(dcs_command({"grain", "restart", "7:1-2"}).exit == exits::refused);
    CHECK(grains_of<wire::RestartGrain>(fake) == std::vector<int>{1});
    world.grain_2 = "finished";
    fake.script(world);
    const Ran range = dcs_command({"grain", "restart", "7:all"});
    CHECK(range.exit == exits::refused);  // grain 1 still runs
    world.order_error = 0;
    fake.script([world](const wire::AnyMessage &m, int nth) {
        Act a = world(m, nth);
        const auto *r = std::get_if<wire::RestartGrain>(&m);
        if (r && r->grain == 2) a.reply = wire::ErrorReply{D_E_REFUSED, "finished"};
        return a;
    });
    const Ran passed = dcs_command({"grain", "restart", "7:all"});
    CHECK(passed.exit == exits::ok);
    CHECK(passed.out == "grain 7:1 restarted\n");
    CHECK(dcs_command({"grain", "restart", "7:2"}).exit == exits::refused);
}
