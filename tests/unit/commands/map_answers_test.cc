// What `dcs map` and `dcs run` say when the scheduler refuses them something, answers what cannot be, or goes away.
#include <atomic>
#include <csignal>
#include <thread>

#include "base/limits.h"
#include "command_bench.h"
#include "support/catch.h"

using namespace dcs;
using namespace dcs::test;
using Reply = CommandBench::Reply;

namespace {

using Words = std::vector<std::string>;

const Words work = {"--", "true", ":::", "1"};

Words operator+(Words a, const Words &b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

wire::ErrorReply error(Code code, const std::string &text) { return {static_cast<std::int32_t>(code), text, -1}; }

// The name that sessions of `dcs map -- true ::: 1` have here.
std::string ident_of_the_map(CommandBench &bench) {
    check(bench.dcs(Words{"map"} + work), 0, "dcs map: session 4: 1 grain\nout");
    const auto asked = bench.fake.all<wire::GetAuth>();
    REQUIRE(!asked.empty());
    return asked.back().second.ident;
}

}  // namespace

TEST_CASE("sessions of a map that cannot be opened") {
    CommandBench bench;
    bench.refuse<wire::GetAuth>(disk_full);
    check(bench.dcs(Words{"map"} + work), 255, "dcs: the authorization: " + no_room);
    check(bench.dcs(Words{"map", "--session", "77"} + work), 255, "dcs: the authorization: " + no_room);
    bench.refuse<wire::OpenSession>(disk_full);
    check(bench.dcs(Words{"map"} + work), 255, "dcs: a new session: " + no_room);
    check(bench.dcs(Words{"map", "--session", "77"} + work), 255, "dcs: session 77: " + no_room);
    check(bench.dcs(Words{"map", "--new", "--session", "2"} + work), 255,
          "dcs: session 2 exists already\n  hint: omit --session, or give a free number\n");
}

TEST_CASE("numbers that others take, again and again") {
    CommandBench bench;
    bench.refuse<wire::OpenSession>(error(Code::session_taken, "somebody was faster"));
    const Said said = bench.dcs(Words{"run"} + Words{"--", "true"});
    CHECK(said.text.rfind("dcs: a new session: somebody was faster\n", 0) == 0);
    CHECK(said.exit == 125);
    CHECK(bench.fake.all<wire::OpenSession>().size() == 1000);
}

TEST_CASE("sessions of a map that cannot be taken up again") {
    CommandBench bench;
    bench.ident = ident_of_the_map(bench);
    bench.as_usual();
    check(bench.dcs(Words{"map", "--new", "--session", "1"} + work), 255,
          "dcs: session 1 exists already\n  hint: omit --session, or give a free number\n");
    bench.refuse<wire::GetAuth>(disk_full);
    check(bench.dcs(Words{"map"} + work), 255, "dcs: the authorization: " + no_room);
    bench.refuse<wire::OpenSession>(disk_full);
    check(bench.dcs(Words{"map", "--session", "1"} + work), 255, "dcs: session 1: " + no_room);
    const Words again = Words{"map", "--session", "1", "--resume-failed"} + work;
    bench.answer([](const wire::AnyMessage &m) {
        const auto *query = std::get_if<wire::Query>(&m);
        return query != nullptr && query->type == wire::QueryType::grains ? Reply(disk_full) : Reply();
    });
    check(bench.dcs(again), 255, "dcs: session 1: " + no_room);
    bench.refuse<wire::GexecMany>(error(Code::limit, "there are too many"));
    check(bench.dcs(again), 255, "dcs: grains from 1:1 on were not submitted: there are too many\n");
}

TEST_CASE("grains of a map that are not taken") {
    CommandBench bench;
    const std::string begun = "dcs map: session 4: 1 grain\n";
    // No results meanwhile: what comes first would be a matter of luck.
    const auto refused_by = [&](const wire::ErrorReply &why, const Words &words) {
        bench.answer([&](const wire::AnyMessage &m) {
            if (std::holds_alternative<wire::GexecMany>(m) || std::holds_alternative<wire::Gexec>(m)) return Reply(why);
            if (std::holds_alternative<wire::GwaitMany>(m)) return Reply(error(Code::nothing_left, "nothing is left"));
            return Reply();
        });
        return bench.dcs(words);
    };
    wire::ErrorReply why = error(Code::limit, "there are too many");
    Said said = refused_by(why, Words{"map"} + work);
    CHECK(said.text.rfind(begun + "dcs: grains from 4:1 on were not submitted: there are too many\n", 0) == 0);
    CHECK(said.exit == 255);
    why.grain = 1;
    said = refused_by(why, Words{"map"} + work);
    CHECK(said.text.rfind(begun + "dcs: grain 4:1 was not submitted: there are too many\n", 0) == 0);
    why.text = "ann has 2 unfinished grains and submits 3, but the pool's policy allows 4: wait until some finish";
    CHECK(refused_by(why, Words{"map"} + work).text.ends_with("  hint: -j N submits no more than N at a time\n"));
    why = error(Code::grain_differs, "argv differs");
    const std::string again =
        "--new runs all inputs again in a new session, with the options as they are now; with the options of the first "
        "run, the same command runs only what has not succeeded\n";
    check(refused_by(why, Words{"map"} + work), 255,
          begun + "dcs: grains from 4:1 on were not submitted: argv differs\n  hint: " + again);
    why.grain = 1;
    check(refused_by(why, Words{"map"} + work), 255,
          begun + "dcs: grain 4:1 was not submitted: argv differs\n  hint: " + again);
    // As a scheduler of release 0.1 says: it keeps what the grain was submitted with.
    why.text = "grain 4:1 was submitted with other parameters:\nenv[0]: recorded \"A=1\", now \"A=2\"\nfiles[0]: other";
    said = refused_by(why, Words{"map", "--detach"} + work);
    CHECK((said.exit == 0 && said.text == about("warning environment of grain 4:1 keeps was submitted with")));
    why.text += "\nargv[0]: recorded \"a\", now \"b\"";
    CHECK(refused_by(why, Words{"map"} + work).exit == 255);
}

TEST_CASE("a map says why its grains were not taken, and not what follows from it") {
    CommandBench bench;
    bench.fake.script([&](const wire::AnyMessage &m, int) {
        Act act;
        act.reply = as_of_a_pool(m, "prog");
        if (std::holds_alternative<wire::GwaitMany>(m)) {
            act.park = true;
        } else if (std::holds_alternative<wire::GexecMany>(m)) {
            act.delay_ms = 300;  // until the other thread waits, too
            act.reply = error(Code::limit, "there are too many");
        } else if (std::holds_alternative<wire::CloseSession>(m)) {
            act.parked_reply = error(Code::session_closed, "the session is closed");
        } else if (std::holds_alternative<wire::CleanSession>(m)) {
            act.delay_ms = 300;  // in which the other thread prints, if it does
        }
        return act;
    });
    const Said said = bench.dcs(Words{"map"} + work);
    check(said, 255, "dcs map: session 4: 1 grain\ndcs: grains from 4:1 on were not submitted: there are too many\n");
}

TEST_CASE("a map whose scheduler goes away permanently") {
    CommandBench bench;
    bench.fake.script([&](const wire::AnyMessage &m, int) {
        Act act;
        act.reply = as_of_a_pool(m, "prog");
        act.cut_before = std::holds_alternative<wire::GexecMany>(m);
        act.park = std::holds_alternative<wire::GwaitMany>(m);
        return act;
    });
    const Said said = bench.dcs(Words{"map"} + work);
    const std::string begin =
                          "dcs map: session 4: 1 grain\ndcs: grains from 4:1 on were not submitted: the connection "
                          "to the scheduler broke, and it is unknown whether the call took effect: ",
                      end = "run the same command again to continue\n";
    INFO(said.text);
    CHECK(said.text.rfind(begin, 0) == 0);
    REQUIRE(said.text.size() > end.size());
    CHECK(said.text.substr(said.text.size() - end.size()) == end);
    CHECK(said.exit == 255);
}

TEST_CASE("results of a map that do not come") {
    CommandBench bench;
    bench.refuse<wire::GwaitMany>(error(Code::session_taken, "another run has it"));
    check(bench.dcs(Words{"map"} + work), 255,
          "dcs map: session 4: 1 grain\ndcs: the results of session 4: another run has it\n"
          "  hint: another run of the same command has taken the session over\n");
    bench.refuse<wire::GwaitMany>(error(Code::session_closed, "session 4 was closed"));
    check(bench.dcs(Words{"map"} + work), 255,
          "dcs map: session 4: 1 grain\ndcs: the results of session 4: session 4 was closed\n"
          "  hint: the same command says how it ended, and runs what has not run\n");
    bench.answer([](const wire::AnyMessage &m) {
        wire::GrainResult one;
        one.grain = one.completed = one.sent = 1;
        one.out_length = 2 * limits::gwait_text_bytes;
        one.out = std::string(limits::gwait_text_bytes, 'x');
        if (std::holds_alternative<wire::GwaitMany>(m)) return Reply(wire::GrainResults{{one}});
        return std::holds_alternative<wire::Fetch>(m) ? Reply(disk_full) : Reply();
    });
    check(bench.dcs(Words{"map"} + work), 255, "dcs map: session 4: 1 grain\ndcs: the output of grain 4:1: " + no_room);
    bench.refuse<wire::CloseSession>(disk_full);
    check(bench.dcs(Words{"map"} + work), 255,
          "dcs map: session 4: 1 grain\noutdcs: session 4 was not closed: " + no_room);
}

TEST_CASE("a run that is interrupted while the scheduler says nothing") {
    CommandBench bench;
    std::atomic<bool> waits{false};
    bench.fake.script([&](const wire::AnyMessage &m, int) {
        Act act;
        act.reply = as_of_a_pool(m, "prog");
        if (std::holds_alternative<wire::Gwait>(m)) waits = true;
        act.park = waits;
        return act;
    });
    RunningCommand command({"run", "--", "true"});
    for (int i = 0; !waits && i < 120'000; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    REQUIRE(waits);
    REQUIRE(::kill(command.pid(), SIGINT) == 0);
    check(command.wait(), 130,
          "dcs run: the scheduler does not answer, so the grain of session 4 may keep running; "
          "`dcs session close 4` ends it\n");
}
