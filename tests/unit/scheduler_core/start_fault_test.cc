// Starts that fail: what is the grain's fault counts against the grain, what is the program's against the program of
// this user, and a mark that lapses is never "never".
#include "support/about.h"
#include "unit/scheduler_core/pool.h"

using namespace dcs;
using namespace dcs::core;

namespace {

SubmitGrain of_program(int session, int number, std::uint32_t program) {
    SubmitGrain g = Pool::grain(session, number);
    g.program = program;
    g.demands.attempts = 1;
    return g;
}

struct StartFaultStage {
    Pool pool;
    Program ann, bob;
    explicit StartFaultStage(int hosts) : pool(hosts) {
        ann = pool.begin("ann", "find");
        bob = pool.begin("bob", "find");
        pool.open(ann, 1);
        pool.open(bob, 1);
    }
    wire::GrainRow row(const Program &p, int session) {  // of its first grain
        return pool.answer<wire::QueryReply>(p, wire::Query{wire::QueryType::grains, "", session}).grains.at(0);
    }
    bool cannot_run(const Program &p, int session) {
        return pool.gwait(p, session, 0).at(0).find("CANNOT_RUN") != std::string::npos;
    }
};

}  // namespace

TEST_CASE("a grain that asks for what no host has is a result that says so, others of its program go on") {
    StartFaultStage s(2);
    s.pool.call(s.ann, of_program(1, 0, 7));
    CHECK(s.pool.launched("h1", "ann/1:0", Code::invalid) == Lines{"h2: launch ann/1:0 inc 2 next 1"});
    CHECK(s.pool.at("ann/1:0").course->nogo.get() == std::vector<HostId>{HostId{0}});
    CHECK(s.pool.state.host(HostId{0})->missing.empty());
    // the same program meanwhile, of the same user
    CHECK(s.pool.call(s.ann, of_program(1, 1, 7)) == Lines{"ann: done", "h1: launch ann/1:1 inc 1 next 1"});
    s.pool.launched("h2", "ann/1:0", Code::invalid);
    const Grain &g = s.pool.at("ann/1:0");
    CHECK(s.pool.status("ann/1:0") == "finished");
    CHECK(g.as<core::Finished>().exit_code == 126);
    CHECK(g.course->moves->back().reason == MoveReason::given_up);
    CHECK(g.course->moves->back().detail == about("not h1 h2"));
    CHECK(g.course->err_length ==
          30 + g.course->moves->back().detail.size());  // "dcs: the grain was given up: ", and the line's end
    CHECK(s.pool.gwait(s.ann, 1, 0).at(0).find("result ann/1:0") != std::string::npos);
    CHECK(s.row(s.ann, 1).starts == 0);
    CHECK(s.pool.end("h1", "ann/1:1").size() == 1);
    CHECK(s.pool.status("ann/1:1") == "finished");
}

TEST_CASE("what a host says that cannot start a grain fills no disk") {
    StartFaultStage s(1);
    s.pool.call(s.ann, of_program(1, 0, 7));
    s.pool.launched("h1", "ann/1:0", Code::invalid, std::string(10'000'000, 'x'));
    CHECK(s.pool.status("ann/1:0") == "finished");
    CHECK(s.pool.at("ann/1:0").course->err_length < 2 * limits::message_bytes);
}

TEST_CASE("a directory that one host lacks sends the grain elsewhere") {
    StartFaultStage s(2);
    s.pool.call(s.ann, of_program(1, 0, 7));
    s.pool.launched("h1", "ann/1:0", Code::invalid);
    s.pool.launched("h2", "ann/1:0");
    s.pool.end("h2", "ann/1:0");
    CHECK(s.pool.at("ann/1:0").as<core::Finished>().exit_code == 0);
    CHECK(s.pool.explain("ann/1:0").summary == about("finished h2 0"));
}

TEST_CASE("a program that is missing is so for its user only, and no party hears `never` for a mark that lapses") {
    StartFaultStage s(1);
    s.pool.call(s.ann, of_program(1, 0, 7));
    s.pool.launched("h1", "ann/1:0", Code::not_found);
    CHECK(s.cannot_run(s.ann, 1));  // it was tried itself wherever it could run
    // bob's program of the same number
    CHECK(s.pool.call(s.bob, of_program(1, 0, 7)).back() == "h1: launch bob/1:0 inc 1 next 1");
    s.pool.end("h1", "bob/1:0");
    // ann's next session: what is submitted is tried
    s.pool.open(s.ann, 2);
    CHECK(s.pool.call(s.ann, of_program(2, 0, 7)).back() == "h1: launch ann/2:0 inc 1 next 1");
    CHECK_FALSE(s.cannot_run(s.ann, 2));
    s.pool.end("h1", "ann/2:0");
    CHECK(s.pool.status("ann/2:0") == "finished");
}

TEST_CASE("where other hosts have the program, the mark keeps its grains from the one that lacks it") {
    StartFaultStage s(2);
    for (int i = 0; i < 4; ++i) s.pool.call(s.ann, of_program(1, i, 7));
    CHECK(s.pool.launched("h1", "ann/1:0", Code::not_found).empty());  // h2 is busy, and the others do not try
    CHECK(s.pool.explain("ann/1:2").summary.find("1 program_missing") != std::string::npos);
    CHECK(s.pool.end("h2", "ann/1:1").back() == "h2: launch ann/1:0 inc 2 next 1");
    CHECK_FALSE(s.pool.wait(seconds(9)).size() > 0);
    CHECK(s.pool.wait(seconds(2)) == Lines{"h1: launch ann/1:2 inc 1 next 1"});  // without a call-in
}

TEST_CASE("a program that no host has: each grain is tried itself, without long rests, then the wait ends") {
    StartFaultStage s(2);
    constexpr int grains = 40;
    for (int i = 0; i < grains; ++i) s.pool.call(s.ann, of_program(1, i, 7));
    int tried = 0;
    for (int i = 0; i < 10 * grains; ++i) {
        bool any = false;
        for (int h = 0; h < 2; ++h) {
            const auto there = s.pool.state.running[static_cast<std::size_t>(h)];
            for (const GrainKey &key : there) {
                CHECK_FALSE(s.cannot_run(s.ann, 1));
                s.pool.launched("h" + std::to_string(h + 1), to_text(key), Code::not_found);
                any = true, ++tried;
            }
        }
        if (!any) s.pool.wait(milliseconds(10));
    }
    CHECK(tried == 2 * grains);
    CHECK(s.pool.now - Instant{} < seconds(1000 + 10));
    const std::string said = s.pool.gwait(s.ann, 1, 0).at(0);
    CHECK(said == about("CANNOT_RUN no ann/1"));
    CHECK(said == about("2 not start"));
    CHECK(said.find("because; on h") != std::string::npos);
}

TEST_CASE("a grain that is submitted again is tried again: what was in its way may have been put right") {
    StartFaultStage s(2);
    s.pool.open(s.ann, 2, wire::OpenMode::resume);
    s.pool.call(s.ann, of_program(2, 0, 7));
    s.pool.launched("h1", "ann/2:0", Code::not_found);
    s.pool.launched("h2", "ann/2:0", Code::not_found);
    CHECK(s.cannot_run(s.ann, 2));
    CHECK(s.pool.call(s.ann, of_program(2, 0, 7)) == Lines{"ann: done", "h1: launch ann/2:0 inc 3 next 1"});
    CHECK(s.pool.at("ann/2:0").course->nogo->empty());
    CHECK(s.pool.touched_disk());
    CHECK(s.pool.state.lacking.empty());
    s.pool.end("h1", "ann/2:0");
    CHECK(s.pool.status("ann/2:0") == "finished");
}

TEST_CASE("a session that is resumed has its grains tried again, also those that are not submitted again") {
    StartFaultStage s(2);
    s.pool.open(s.ann, 2, wire::OpenMode::resume);
    for (int i = 0; i < 3; ++i) s.pool.call(s.ann, of_program(2, i, 7));
    for (int i = 0; i < 3 * 2 * 10 && !s.cannot_run(s.ann, 2); ++i) {
        for (int h = 0; h < 2; ++h) {
            const auto there = s.pool.state.running[static_cast<std::size_t>(h)];
            for (const GrainKey &key : there)
                s.pool.launched("h" + std::to_string(h + 1), to_text(key), Code::not_found);
        }
        s.pool.wait(milliseconds(10));
    }
    REQUIRE(s.cannot_run(s.ann, 2));
    const Lines lines = s.pool.open(s.ann, 2, wire::OpenMode::resume);
    CHECK(lines.size() == 3);  // resumed, and each host has one
    CHECK_FALSE(s.cannot_run(s.ann, 2));
    for (int i = 0; i < 3; ++i) CHECK(s.pool.at("ann/2:" + std::to_string(i)).course->nogo->empty());
}

TEST_CASE("a repeated submission does not forgive a host where the grain itself failed twice") {
    StartFaultStage s(2);
    s.pool.open(s.ann, 2, wire::OpenMode::resume);
    SubmitGrain g = of_program(2, 0, 7);
    g.demands.attempts = 5;
    s.pool.call(s.ann, g);
    s.pool.end("h1", "ann/2:0", 1);
    s.pool.end("h1", "ann/2:0", 1);
    s.pool.launched("h2", "ann/2:0", Code::not_found);
    CHECK(s.pool.at("ann/2:0").course->nogo->size() == 2);
    CHECK(s.pool.call(s.ann, g) == Lines{"ann: done", "h2: launch ann/2:0 inc 4 next 1"});
    CHECK(s.pool.at("ann/2:0").course->nogo.get() == std::vector<HostId>{HostId{0}});
}

TEST_CASE("starts count what ran: neither starts that failed nor numbers of earlier grains") {
    StartFaultStage s(2);
    s.pool.call(s.ann, of_program(1, 0, 7));
    s.pool.launched("h1", "ann/1:0", Code::not_found);
    s.pool.launched("h2", "ann/1:0");
    const auto row = [&] { return s.row(s.ann, 1); };
    s.pool.end("h2", "ann/1:0");
    CHECK(row().incarnation == 2);
    CHECK(row().starts == 1);
    CHECK(row().restarts == 0);
    s.pool.close(s.ann, 1);
    s.pool.call(s.ann, wire::CleanSession{"", 1});
    s.pool.open(s.ann, 1);
    s.pool.call(s.ann, of_program(1, 0, 8));
    s.pool.end("h1", "ann/1:0");
    CHECK(row().incarnation == 3);
    CHECK(row().starts == 1);
}
