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
