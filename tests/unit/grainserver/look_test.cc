// What a look at a grain's room counts: the increments that are expected, however many other names there are.
#include <unistd.h>

#include "core_bench.h"
#include "launcher_bench.h"
#include "grainserver/shell/grain_files.h"

using namespace bench;
using namespace dcs::server;

namespace {
struct LookedAt {
    ScratchDir dir;
    GrainFiles grains;
    const GrainId id{{{"ann", 3}, 1}, 1};
    std::string room;

    LookedAt() {
        REQUIRE(grains.open(dir.path, "local1", "boot"));
        wire::Launch launch;
        launch.key = wire::wire_of(id.key);
        launch.argv = {"/bin/true"};
        REQUIRE(grains.prepare(id, launch, 1));
        room = dir.path + "/grains/" + grains.name_of(id) + "/room/";
    }
    void put(const std::string &name, const std::string &text = "") { put_file(room + name, text, 0600); }
    void increment(std::uint32_t k) {
        put("out." + std::to_string(k), "o");
        put("err." + std::to_string(k), "e");
    }
    bool there(const std::string &name) { return ::access((room + name).c_str(), F_OK) == 0; }
};
}  // namespace

TEST_CASE("a look counts the increments after the acknowledged ones up to a gap") {
    LookedAt g;
    for (const std::uint32_t k : {4, 5, 6, 8}) g.increment(k);
    for (const char *name : {"checkpoint.3", "checkpoint.5", "checkpoint.9"}) g.put(name, "x");
    const DirFacts f = g.grains.look(g.id, 3);
    REQUIRE(f.increments == std::map<std::uint32_t, std::uint64_t>{{4, 2}, {5, 2}, {6, 2}});
    REQUIRE(f.checkpoints == std::map<std::uint32_t, std::uint64_t>{{5, 1}});
    REQUIRE_FALSE(f.too_many);
    for (std::uint32_t k = 7; k <= 7 + increments_max; ++k) g.increment(k);
    REQUIRE(g.grains.look(g.id, 6).too_many);
}

TEST_CASE("an acknowledgement removes what one that a crash has interrupted left") {
    LookedAt g;
    for (const std::uint32_t k : {4, 5, 6, 8}) g.increment(k);
    for (const char *name : {"checkpoint.3", "checkpoint.5", "checkpoint.6"}) g.put(name, "x");
    ::unlink((g.room + "out.4").c_str());
    REQUIRE(g.grains.write_acked(g.id, 6));
    for (const char *name : {"err.4", "out.5", "err.5", "checkpoint.3", "checkpoint.5", "out.6", "err.6"})
        REQUIRE_FALSE(g.there(name));
    REQUIRE((g.there("out.8") && g.there("checkpoint.6")));
}

TEST_CASE("a grain that is killed before it has files for its output fails, one that removes them fails for ever") {
    Bench b;
    b.connect();
    b.run_grain(id());
    ExitFacts e;
    DirFacts d;
    d.lost = "out.1 is gone";
    const bool by_signal = GENERATE(true, false);
    if (by_signal) e.signal = 9;
    b.exit(id(), d, e);
    const SendReport r = b.one<SendReport>();
    CHECK((r.ended && !r.innocent));
    CHECK(r.limit != by_signal);
    CHECK(r.reason.empty() == by_signal);
    CHECK(r.exit_code == (by_signal ? 0 : 74));
}

TEST_CASE("files that cannot be read from time to time are no reason to give a grain up") {
    Bench b;
    b.connect(9);
    b.run_grain(id());
    for (unsigned seq = 1; seq <= 3; ++seq) {
        for (int i = 0; i < 3; ++i) {
            INFO(seq << " " << i);
            b.pass(seconds(9));
            b.look(id(), dir({{seq, 5}, {seq + 1, 5}}, {{seq, 3}}));
            b.one<SendReport>();
            if (i < 2) b.in(ReportUnsendable{id(), ReportUnsendable::Why::unreadable, 0, "input/output error"});
        }
        b.ack(id(), seq, false, wire::Verdict::taken);
    }
    REQUIRE(b.state.grains.size() == 1);
    REQUIRE(b.state.grains.begin()->second.ending == Ending::none);
}
