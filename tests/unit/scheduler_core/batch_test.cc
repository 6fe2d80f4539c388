// d_gexec_many and d_gwait_many: all or none, the same rules as one by one.
#include "pool.h"

using namespace dcs;
using namespace dcs::core;

namespace {

SubmitGrains batch(std::vector<SubmitGrain> grains) {
    return {1, std::make_shared<const std::vector<SubmitGrain>>(std::move(grains))};
}
SubmitGrains batch_of(std::initializer_list<int> numbers, const std::string &spec = "spec") {
    std::vector<SubmitGrain> grains;
    for (const int n : numbers) grains.push_back(Pool::grain(1, n, 0, spec));
    return batch(std::move(grains));
}

struct BatchStage {
    Pool pool{2};
    Program find = pool.begin("ann", "find");
    BatchStage() { pool.open(find, 1); }
    std::size_t grains() const { return pool.session("ann/1").grains.size(); }
    // Nothing of the batch is there, and the reply names the grain.
    void refused(SubmitGrains call, const char *error, std::int32_t grain) {
        const std::size_t before = grains();
        const Lines lines = pool.call(find, std::move(call));
        REQUIRE(lines.size() == 1);
        CHECK(lines[0].find(std::string("ann: error ") + error) == 0);
        CHECK(pool.changes.empty());
        CHECK(grains() == before);
        const auto *reply = std::get_if<Reply>(&pool.effects.at(0));
        REQUIRE(reply);
        CHECK(std::get<wire::ErrorReply>(reply->message).grain == grain);
    }
};

}  // namespace

TEST_CASE("a batch is recorded as a whole, answered once, and placed in its order") {
    BatchStage s;
    CHECK(s.pool.call(s.find, batch_of({5, 3, 9, 4})) ==
          Lines{"ann: done", "h1: launch ann/1:5 inc 1 next 1", "h2: launch ann/1:3 inc 1 next 1"});
    CHECK(s.pool.queue("ann/1") == std::vector<GrainNumber>{9, 4});
    CHECK(s.pool.session("ann/1").info.inputs_length == 16);
    CHECK(s.pool.at("ann/1:9").params_offset == 8);
    CHECK(s.pool.at("ann/1:3").request == s.pool.at("ann/1:4").request);
}

TEST_CASE("a batch among older sessions' grains overtakes no party") {
    Pool pool(0);
    const Program old = pool.begin("ann", "old"), young = pool.begin("bob", "young");
    pool.open(old, 1);
    pool.open(young, 1);
    pool.call(young, batch_of({0, 1}));
    pool.call(old, batch_of({0, 1, 2}));
    pool.add_host("h1").slots = 4;
    pool.table();
    CHECK(pool.first_call("h1") == Lines{"h1: configure interval 10000ms slots 4", "h1: launch ann/1:0 inc 1 next 1",
                                         "h1: launch ann/1:1 inc 1 next 1", "h1: launch ann/1:2 inc 1 next 1",
                                         "h1: launch bob/1:0 inc 1 next 1"});
}

TEST_CASE("one bad grain refuses the whole batch, and is named") {
    BatchStage s;
    s.pool.gexec(s.find, 1, 7);
    std::vector<SubmitGrain> bad = *batch_of({0, 1, 2}).grains;
    bad[1].demands.attempts = 0;
    s.refused(batch(bad), "INVALID", 1);
    s.refused(batch_of({0, 1, 0}), "INVALID", 0);
    s.refused(batch_of({0, 7, 1}), "GRAIN_EXISTS", 7);
    s.refused(batch({}), "INVALID", -1);
    bad = *batch_of({0, 1, 2}).grains;
    bad[2].demands.thrash = -1;
    s.refused(batch(bad), "INVALID", 2);
    const Program stranger = s.pool.begin("bob", "find");
    CHECK(s.pool.call(stranger, batch_of({0})).at(0).find("SESSION_UNKNOWN") != std::string::npos);
    CHECK(s.pool.call(s.find, batch_of({0, 1, 2})).at(0) == "ann: done");
}

TEST_CASE("a batch repeated, whole or cut otherwise, is the same run") {
    BatchStage s;
    CHECK(s.pool.call(s.find, batch_of({0, 1, 2})).at(0) == "ann: done");
    // The same request, also in a plainly opened session.
    CHECK(s.pool.repeat(s.find, batch_of({0, 1, 2})) == Lines{"ann: done"});
    CHECK(s.pool.changes.empty());
    s.refused(batch_of({2, 3}), "GRAIN_EXISTS", 2);
    s.pool.open(s.find, 1, wire::OpenMode::resume);
    CHECK(s.pool.call(s.find, batch_of({1, 2, 3, 4})) == Lines{"ann: done"});
    CHECK(s.grains() == 5);
    CHECK(s.pool.gexec(s.find, 1, 3) == Lines{"ann: done"});
    CHECK(s.pool.changes.empty());
    CHECK(s.pool.call(s.find, batch_of({4, 0})) == Lines{"ann: done"});
    CHECK(s.pool.changes.empty());
    // How many of them have no result.
    s.pool.call(s.find, wire::Gkill{"", 1, 3});
    CHECK(s.pool.call(s.find, batch_of({4, 3})) == Lines{"ann: done repeated 2 killed 1"});
    CHECK(s.pool.repeat(s.find, batch_of({4, 3})) == Lines{"ann: done repeated 2 killed 1"});
    // Another one is distinguished, and nothing beside it is recorded.
    CHECK(s.pool.call(s.find, batch({Pool::grain(1, 5), Pool::grain(1, 3, 0, "other")})) ==
          Lines{"ann: difference from ann/1:3"});
    CHECK(s.pool.changes.empty());
    CHECK(s.grains() == 5);
}

TEST_CASE("a closed session replays batches, and takes no new grain by them") {
    BatchStage s;
    s.pool.call(s.find, batch_of({0, 1}));
    s.pool.end("h1", "ann/1:0");
    s.pool.end("h2", "ann/1:1");
    s.pool.close(s.find, 1);
    const Program again = s.pool.begin("ann", "find");
    s.pool.open(again, 1, wire::OpenMode::resume, true);
    CHECK(s.pool.call(again, batch_of({1, 0})) == Lines{"ann: done"});
    CHECK(s.pool.changes.empty());
    CHECK(s.pool.call(again, batch_of({0, 2})).at(0).find("ann: error REPLAY_END: grain 2: session ann/1") == 0);
    CHECK(s.pool.call(again, wire::GwaitMany{1, 0, 9, true}) == Lines{"ann: results of ann/1: 0 sent 1 1 sent 2"});
    CHECK(s.pool.call(again, wire::GwaitMany{1, 2, 9, true}).at(0).find("REPLAY_END") != std::string::npos);
    CHECK(s.pool.changes.empty());
}

TEST_CASE("quotas and shapes count the whole batch") {
    BatchStage s;
    Policy policy;
    policy.grains_per_user = 4;
    s.pool.rules(policy);
    s.pool.gexec(s.find, 1, 0);
    s.refused(batch_of({1, 2, 3, 4}),
              "LIMIT: ann has 1 unfinished grains and submits 4, but the pool's policy allows "
              "4: wait until some finish",
              -1);
    s.refused(batch_of({1, 2, 3, 4, 5}),
              "LIMIT: ann has 1 unfinished grains and submits 5, but the pool's policy allows 4: submit at most 3 now",
              -1);
    CHECK(s.pool.call(s.find, batch_of({1, 2, 3})).at(0) == "ann: done");
    s.pool.rules(Policy{});
    std::vector<SubmitGrain> many;
    for (int i = 0; i <= static_cast<int>(limits::shapes_per_session); ++i)
        many.push_back(Pool::grain(1, 10 + i, static_cast<std::uint32_t>(i + 1)));
    s.refused(batch(many), "LIMIT", -1);
    many.resize(many.size() - 2);  // beside the shape of what waits already
    CHECK(s.pool.call(s.find, batch(many)).at(0) == "ann: done");
    s.refused(batch({Pool::grain(1, 5000, 4000), Pool::grain(1, 5001, 4001)}), "LIMIT", -1);
}

TEST_CASE("many results come in their order, without the killed, up to what is wanted") {
    Pool pool(6);
    const Program find = pool.begin("ann", "find");
    pool.open(find, 1);
    pool.call(find, batch_of({0, 1, 2, 3, 4, 5}));
    for (const int i : {3, 1, 0, 2}) pool.end("h" + std::to_string(i + 1), "ann/1:" + std::to_string(i));
    pool.gkill(find, 1, 1);
    CHECK(pool.call(find, wire::GwaitMany{1, 0, 2, false}) ==
          Lines{"ann: results of ann/1: 3 sent 1 0 sent 3 returned 2"});
    CHECK(pool.session("ann/1").info.sent == 0);
    CHECK(pool.session("ann/1").info.shown == 3);
    CHECK(pool.call(find, wire::GwaitMany{1, 0, 9, false}) ==
          Lines{"ann: results of ann/1: 3 sent 1 0 sent 3 returned 2 2 sent 4 returned 3"});
    pool.gkill(find, 1, 2);  // it was handed out
    CHECK(pool.status("ann/1:2") == "finished");
    CHECK(pool.call(find, wire::GwaitMany{1, 3, 2000000000, false}) ==
          Lines{"ann: results of ann/1: 2 sent 4 returned 3"});
    CHECK(pool.session("ann/1").info.sent == 3);
    CHECK(pool.call(find, wire::GwaitMany{1, 4, 9, false}).at(0).find("NOTHING_YET") != std::string::npos);
    for (const std::int32_t most : {0, -1})
        CHECK(pool.call(find, wire::GwaitMany{1, 4, most, false}).at(0).find("INVALID") != std::string::npos);
    CHECK(pool.call(find, wire::GwaitMany{1, 5, 1, false}).at(0).find("INVALID") != std::string::npos);
}

TEST_CASE("long outputs come in smaller numbers, and always one") {
    Pool pool(3);
    const Program find = pool.begin("ann", "find");
    pool.open(find, 1);
    pool.call(find, batch_of({0, 1, 2}));
    const std::size_t lengths[] = {limits::batch_output_bytes / 2, limits::batch_output_bytes / 2 + 1,
                                   2 * limits::batch_output_bytes};
    for (int i = 0; i < 3; ++i) {
        wire::GrainReport report = pool.end_report("ann/1:" + std::to_string(i));
        report.out.assign(lengths[i], 'o');
        pool.send("h" + std::to_string(i + 1), report);
    }
    CHECK(pool.call(find, wire::GwaitMany{1, 0, 9, false}) == Lines{"ann: results of ann/1: 0 sent 1"});
    CHECK(pool.call(find, wire::GwaitMany{1, 1, 9, false}) == Lines{"ann: results of ann/1: 1 sent 2"});
    CHECK(pool.call(find, wire::GwaitMany{1, 2, 9, false}) == Lines{"ann: results of ann/1: 2 sent 3"});
}

TEST_CASE("a parked wait for many is answered by the first result") {
    BatchStage s;
    s.pool.call(s.find, batch_of({0, 1}));
    CHECK(s.pool.call(s.find, wire::GwaitMany{1, 0, 9, true}).empty());
    CHECK(s.pool.end("h2", "ann/1:1").at(1) == "ann: results of ann/1: 1 sent 1");
    CHECK(s.pool.session("ann/1").waiters.empty());
}

TEST_CASE("a parked wait acknowledges when it is over, and needs no commit before") {
    BatchStage s;
    s.pool.call(s.find, batch_of({0, 1, 2, 3}));
    s.pool.end("h1", "ann/1:0");
    s.pool.call(s.find, wire::GwaitMany{1, 0, 9, true});
    CHECK(s.pool.call(s.find, wire::GwaitMany{1, 1, 9, true}).empty());
    CHECK_FALSE(s.pool.touched_disk());
    CHECK(s.pool.session("ann/1").info.sent == 0);
    wire::Query query;
    query.type = wire::QueryType::sessions;
    CHECK(s.pool.answer<wire::QueryReply>(s.find, query).sessions.at(0).sent == 1);  // for people it counts now
    SECTION("by a result") {
        s.pool.end("h2", "ann/1:1");
        CHECK(s.pool.session("ann/1").info.sent == 1);
    }
    SECTION("by a broken connection") {
        s.pool.feed(ConnectionClosed{s.find.conn});
        CHECK(s.pool.touched_disk());
        CHECK(s.pool.session("ann/1").info.sent == 1);
    }
    SECTION("by another run of the program") {
        const Program again = s.pool.begin("ann", "find");
        CHECK(s.pool.open(again, 1, wire::OpenMode::resume).back() == "ann: opened resumed sent 1 completed 1");
        CHECK(s.pool.session("ann/1").info.sent == 1);
    }
    SECTION("by the close") {
        Program other = s.find;
        other.conn = ConnId{78};
        s.pool.close(other, 1);
        CHECK(s.pool.session("ann/1").info.sent == 1);
    }
    SECTION("by an error") {
        for (const int i : {1, 2, 3}) s.pool.gkill(s.find, 1, i);
        CHECK(s.pool.session("ann/1").waiters.empty());
        CHECK(s.pool.session("ann/1").info.sent == 1);
    }
    SECTION("not any more when its own program began again") {
        s.pool.open(s.find, 1, wire::OpenMode::resume, true);
        s.pool.end("h2", "ann/1:1");
        CHECK(s.pool.session("ann/1").info.sent == 0);
    }
}
