// d_gexec: arguments, idempotence, where the parameters go.
#include "pool.h"

using namespace dcs;
using namespace dcs::core;

TEST_CASE("arguments are checked before anything else") {
    Pool pool(0);
    const Program find = pool.begin("ann", "find");
    pool.open(find, 1);
    const auto code = [&](SubmitGrain g) {
        const Lines lines = pool.call(find, std::move(g));
        REQUIRE(lines.size() == 1);
        CHECK(pool.changes.empty());
        return lines[0].substr(0, lines[0].find(": ", 5));
    };
    SubmitGrain g = Pool::grain(1, 1);
    g.grain = -1;
    CHECK(code(g) == "ann: error INVALID");
    g = Pool::grain(1, 1);
    g.demands.attempts = 0;
    CHECK(code(g) == "ann: error INVALID");
    g.demands.attempts = 256;
    CHECK(code(g) == "ann: error INVALID");
    g = Pool::grain(1, 1);
    g.demands.thrash = -1;
    CHECK(code(g) == "ann: error INVALID");
    g = Pool::grain(1, 1);
    g.demands.notice = -1;
    CHECK(code(g) == "ann: error INVALID");
    g = Pool::grain(1, 1);
    g.params = {};
    CHECK(code(g) == "ann: error INVALID");
    g = Pool::grain(1, 1);
    g.input_length = limits::content_bytes + 1;
    CHECK(code(g) == "ann: error LIMIT");
    g.input_length = limits::content_bytes;
    g.grain = 2147483647;
    CHECK(pool.call(find, g) == Lines{"ann: done"});
}

TEST_CASE("small specs share the session's inputs, big ones have a file") {
    Pool pool(0);
    const Program find = pool.begin("ann", "find");
    pool.open(find, 1);
    pool.call(find, Pool::grain(1, 0, 0, "12345"));
    pool.call(find, Pool::grain(1, 1, 0, std::string(32 * 1024, 'a')));
    const auto *append = std::get_if<WriteFile>(&pool.changes.back());
    REQUIRE(append);
    CHECK(append->file == File::session_inputs);
    CHECK(append->old_length == 5);
    CHECK(pool.at("ann/1:1").params_offset == 5);
    CHECK(pool.session("ann/1").info.inputs_length == 5 + 32 * 1024);
    pool.call(find, Pool::grain(1, 2, 0, std::string(32 * 1024 + 1, 'a')));
    const auto *own = std::get_if<WriteFile>(&pool.changes.back());
    REQUIRE(own);
    CHECK(own->file == File::grain_params);
    CHECK(own->old_length == 0);
    CHECK(pool.at("ann/1:2").own_tree);
    CHECK(pool.at("ann/1:2").params_own_file);
    CHECK(pool.session("ann/1").info.inputs_length == 5 + 32 * 1024);
}

TEST_CASE("only a resumed session takes the same call twice") {
    Pool pool(0);
    const Program find = pool.begin("ann", "find");
    pool.open(find, 1);
    CHECK(pool.gexec(find, 1, 0) == Lines{"ann: done"});
    // the repeated request is recognised by its id, also in a plainly opened session
    CHECK(pool.repeat(find, Pool::grain(1, 0)) == Lines{"ann: done"});
    CHECK(pool.changes.empty());
    CHECK(pool.gexec(find, 1, 0) == Lines{"ann: error GRAIN_EXISTS: grain ann/1:0 exists already"});
    pool.open(find, 1, wire::OpenMode::resume);
    CHECK(pool.gexec(find, 1, 0) == Lines{"ann: done"});
    CHECK(pool.changes.empty());
    CHECK(pool.gexec(find, 1, 0, 4) == Lines{"ann: difference from ann/1:0"});
    CHECK(pool.changes.empty());
    CHECK(pool.session("ann/1").grains.size() == 1);
}

TEST_CASE("urgent goes to the front, everything else to the end") {
    Pool pool(0);
    pool.add_host("h1");
    pool.table();
    const Program find = pool.begin("ann", "find");
    pool.open(find, 1);
    pool.gexec(find, 1, 0);
    pool.gexec(find, 1, 1);
    SubmitGrain urgent = Pool::grain(1, 2);
    urgent.demands.urgent = true;
    pool.call(find, urgent);
    urgent.grain = 3;
    pool.call(find, urgent);
    pool.gexec(find, 1, 4);
    CHECK(pool.queue("ann/1") == std::vector<GrainNumber>{3, 2, 0, 1, 4});
    CHECK(pool.first_call("h1") == Lines{"h1: configure interval 10000ms slots 1", "h1: launch ann/1:3 inc 1 next 1"});
}

TEST_CASE("a call that changes demands changes those of a ready grain, in its place in the queue") {
    Pool pool(0);
    const Program find = pool.begin("ann", "find");
    pool.open(find, 1, wire::OpenMode::resume);
    for (const int grain : {0, 1, 2}) pool.gexec(find, 1, grain);
    SubmitGrain call = Pool::grain(1, 1, 4, "spec of 4");
    CHECK(pool.call(find, call) == Lines{"ann: difference from ann/1:1"});
    call.as_demanded = Pool::grain(1, 1, 8).fingerprint;  // more than its demands is another one
    CHECK(pool.call(find, call) == Lines{"ann: difference from ann/1:1"});
    CHECK(pool.changes.empty());
    call.as_demanded = pool.at("ann/1:1").fingerprint;
    CHECK(pool.call(find, call) == Lines{"ann: done"});
    CHECK(pool.at("ann/1:1").demands->host_class == 4);
    CHECK(pool.at("ann/1:1").fingerprint == call.fingerprint);
    CHECK(pool.at("ann/1:1").params_offset == 12);
    CHECK(pool.at("ann/1:1").params_length == 9);
    CHECK(pool.session("ann/1").info.inputs_length == 21);
    CHECK(pool.queue("ann/1") == std::vector<GrainNumber>{0, 1, 2});
    CHECK(pool.call(find, call) == Lines{"ann: done"});
    CHECK(pool.changes.empty());
    SubmitGrain urgent = Pool::grain(1, 1, 4, std::string(32 * 1024 + 1, 'u'));
    urgent.demands.urgent = true;
    urgent.as_demanded = call.fingerprint;
    CHECK(pool.call(find, urgent) == Lines{"ann: done"});
    CHECK(pool.queue("ann/1") == std::vector<GrainNumber>{1, 0, 2});
    CHECK(pool.at("ann/1:1").params_own_file);
    SubmitGrain small = Pool::grain(1, 1, 2, "small");  // replaces what the file has
    small.as_demanded = urgent.fingerprint;
    CHECK(pool.call(find, small) == Lines{"ann: done"});
    CHECK(pool.at("ann/1:1").params_own_file);
    CHECK(pool.at("ann/1:1").params_length == 5);
}

TEST_CASE("a grain that no host could take runs as soon as its demands have changed") {
    Pool pool(0);
    pool.add_host("h1");
    pool.table();
    pool.first_call("h1");
    const Program find = pool.begin("ann", "find");
    pool.open(find, 1, wire::OpenMode::resume);
    pool.gexec(find, 1, 0, 1u << 20);
    REQUIRE(pool.status("ann/1:0") == "ready");
    SubmitGrain call = Pool::grain(1, 0);
    call.as_demanded = pool.at("ann/1:0").fingerprint;
    CHECK(pool.call(find, call) == Lines{"ann: done", "h1: launch ann/1:0 inc 1 next 1"});
}

TEST_CASE("a grain that runs or is over keeps its demands, whatever a call changes") {
    Pool pool(0);
    pool.add_host("h1");
    pool.table();
    pool.first_call("h1");
    const Program find = pool.begin("ann", "find");
    pool.open(find, 1, wire::OpenMode::resume);
    for (const int grain : {0, 1}) pool.gexec(find, 1, grain);
    const auto keeps = [&](int grain) {
        SubmitGrain call = Pool::grain(1, grain, 4);
        call.as_demanded = Pool::grain(1, grain).fingerprint;
        return pool.call(find, call).at(0).starts_with("ann: done") && pool.changes.empty() &&
               pool.at("ann/1:" + std::to_string(grain)).demands->host_class == 0;
    };
    REQUIRE(pool.status("ann/1:0") == "running");
    CHECK(keeps(0));
    pool.end("h1", "ann/1:0");
    CHECK(keeps(0));
    pool.gkill(find, 1, 1);
    CHECK(keeps(1));
}

TEST_CASE(
    "a failed grain of a closed session waits there, and runs with the demands that it gets before it is reopened") {
    Pool pool(0);
    pool.add_host("h1");
    pool.table();
    pool.first_call("h1");
    const Program find = pool.begin("ann", "find");
    pool.open(find, 1, wire::OpenMode::resume);
    SubmitGrain call = Pool::grain(1, 0);
    call.demands.attempts = 1;
    pool.call(find, call);
    pool.end("h1", "ann/1:0", 1);
    pool.close(find, 1);
    pool.open(find, 1, wire::OpenMode::resume, true);
    call.again = true;
    call.demands.wall_s = 100;
    call.as_demanded = call.fingerprint;
    call.fingerprint[0] ^= 1;
    CHECK(pool.call(find, call) == Lines{"ann: done"});
    CHECK(pool.status("ann/1:0") == "ready");
    REQUIRE(pool.session("ann/1").info.status == SessionStatus::terminated);
    CHECK(pool.at("ann/1:0").demands->wall_s == 100);
    const Lines reopened = pool.open(find, 1, wire::OpenMode::reopen, true);
    CHECK(reopened.back() == "h1: launch ann/1:0 inc 2 next 1 wall 100");
}

TEST_CASE(
    "what failed, was killed or lacks an output begins again, without a look at other grains, and the rest stays") {
    Pool pool(0);
    pool.add_host("h1", 1, 6);
    pool.table();
    pool.first_call("h1");
    const Program find = pool.begin("ann", "find");
    pool.open(find, 1, wire::OpenMode::resume);
    auto calls = std::make_shared<std::vector<SubmitGrain>>();
    for (const int grain : {0, 1, 2, 3, 4, 5}) {
        SubmitGrain call = Pool::grain(1, grain);
        call.demands.attempts = 1;
        if (grain == 3) call.files.outputs = {{wire::FileRole::output, "made", "", 0, ""}};
        calls->push_back(call);
    }
    const auto submit = [&] { return pool.call(find, SubmitGrains{1, calls}); };
    submit();
    pool.gkill(find, 1, 0);
    for (const int grain : {1, 2, 3, 5}) pool.end("h1", "ann/1:" + std::to_string(grain), grain == 1);
    const auto over = [&] {
        std::vector<int> grains;
        for (const int grain : {0, 1, 2, 3, 4, 5})
            if (pool.at("ann/1:" + std::to_string(grain)).is_over()) grains.push_back(grain);
        return grains;
    };
    REQUIRE(over() == std::vector<int>{0, 1, 2, 3, 5});
    const auto missing = [&](const Program &who) {
        return pool.answer<wire::QueryReply>(who, wire::Query{wire::QueryType::grains, "ann", 1}).grains.at(3).files;
    };
    REQUIRE(missing(find).size() == 1);
    CHECK(missing(find)[0].name == "made");
    REQUIRE(missing(pool.stranger("bob")).size() == 1);
    CHECK(missing(pool.stranger("bob"))[0].name.empty());  // of others not even the name
    submit();
    CHECK(pool.changes.empty());
    for (SubmitGrain &call : *calls) call.again = true;
    (*calls)[5].as_demanded = (*calls)[5].fingerprint;  // succeeded: what it ran with stays
    (*calls)[5].fingerprint[0] ^= 1;
    (*calls)[1].demands.wall_s = 100;
    (*calls)[1].as_demanded = (*calls)[1].fingerprint;
    (*calls)[1].fingerprint[0] ^= 1;
    CHECK(decide(pool.state, pool.now, UserCall{pool.caller(find), SubmitGrains{1, calls}}).looked_at == 0);
    submit();
    CHECK(over() == std::vector<int>{2, 5});
    CHECK(pool.at("ann/1:1").demands->wall_s == 100);
    CHECK(pool.at("ann/1:1").fingerprint == (*calls)[1].fingerprint);
    CHECK(pool.at("ann/1:5").fingerprint == (*calls)[5].as_demanded);
    submit();  // they run
    CHECK(pool.changes.empty());
}

TEST_CASE("a failure on which later submissions may depend does not leave the order of results") {
    Pool pool(0);
    pool.add_host("h1", 1, 6);
    pool.table();
    pool.first_call("h1");
    const Program find = pool.begin("ann", "find");
    pool.open(find, 1, wire::OpenMode::resume);
    const auto of = [](int grain) {
        SubmitGrain call = Pool::grain(1, grain);
        call.demands.attempts = 1;
        return call;
    };
    for (const int grain : {0, 1, 2}) pool.call(find, of(grain));
    pool.end("h1", "ann/1:0", 1);
    pool.gkill(find, 1, 2);
    const auto again = [&](int grain, bool in_order = true) {
        SubmitGrain call = of(grain);
        call.again = call.only_failed = true;
        call.in_order = in_order;
        return pool.call(find, call).at(0).substr(0, 9);
    };
    CHECK(again(2) == "ann: done");
    CHECK(pool.status("ann/1:2") == "killed");
    CHECK(again(0) == "ann: done");
    REQUIRE(pool.status("ann/1:0") == "running");
    pool.end("h1", "ann/1:0", 1);
    pool.gwait(find, 1, 0);
    CHECK(again(0) == "ann: done");  // shown, but nothing was submitted after it
    pool.end("h1", "ann/1:0", 1);
    pool.end("h1", "ann/1:1", 1);
    pool.gwait(find, 1, 1);
    pool.call(find, of(3));
    CHECK(again(0) == "ann: erro");
    CHECK(pool.changes.empty());
    CHECK(again(0, false) == "ann: done");
    REQUIRE(pool.status("ann/1:0") == "running");
    CHECK(again(1) == "ann: done");  // of this one the program knew nothing then
    CHECK(pool.status("ann/1:1") == "running");
}

TEST_CASE("a grain that has failed as often as its new demands permit runs once more") {
    Pool pool(0);
    pool.add_host("h1");
    pool.table();
    pool.first_call("h1");
    const Program find = pool.begin("ann", "find");
    pool.open(find, 1, wire::OpenMode::resume);
    pool.gexec(find, 1, 0);
    pool.end("h1", "ann/1:0", 1);
    wire::SetHost drained;
    drained.host = "h1";
    drained.drained = 1;
    pool.set(pool.stranger("root", true), drained);
    pool.end("h1", "ann/1:0", 1);
    REQUIRE(pool.at("ann/1:0").course->failures == 2);
    REQUIRE(pool.status("ann/1:0") == "ready");
    SubmitGrain call = Pool::grain(1, 0);
    call.demands.attempts = 2;
    call.as_demanded = call.fingerprint;
    call.fingerprint[0] ^= 1;
    CHECK(pool.call(find, call) == Lines{"ann: done"});
    CHECK(pool.at("ann/1:0").course->failures == 1);
}
