// A checkpoint is written in place before the turn that brings it is committed: never over the one that counts until
// then, whatever a turn brings.
#include <algorithm>

#include "scheduler/record/read_blob.h"
#include "support/catch.h"
#include "unit/scheduler_turn/pool.h"

namespace dcs::test::checkpoint_files {
namespace {

const GrainKey key{{"ann", 1}, 1};

struct World {
    Pool pool{{host("h1", 1)}};
    ModelServer server{pool, "h1"};
    World() {
        const ConnId control = pool.control("ann", "prog");
        pool.ask<wire::OpenReply>(control, wire::OpenSession{1, wire::OpenMode::resume, true});
        pool.ask<wire::Done>(control, wire::Gexec{1, 1, copying_grain(std::string(100, 'x'))});
        server.connect();
        server.read();
    }
    std::string kept() const {
        const auto text = record::read_checkpoint(*pool.store, key, *pool.turn->state().grain(key));
        REQUIRE(text);
        return *text;
    }
    std::string file(const std::string &name) const {
        const auto text = pool.store->read("sessions/ann/1/g/1/" + name, 0, 100);
        return text ? *text : "none";
    }
    wire::GrainReport report(std::uint32_t sequence, std::string checkpoint) const {
        wire::GrainReport r;
        r.key = wire::wire_of(key);
        r.incarnation = server.held.at(key).incarnation;
        r.first_seq = r.last_seq = sequence;
        r.has_checkpoint = true;
        r.checkpoint = std::move(checkpoint);
        return r;
    }
};

}  // namespace

TEST_CASE("checkpoints take turns between two files, and the record names the last one") {
    World w;
    w.pool.verify_each_turn = true;
    for (const char *text : {"first", "second", "third", "fourth"}) {
        const std::uint32_t sequence = w.pool.turn->state().grain(key)->course->sequence + 1;
        w.pool.post(w.server.conn(), w.report(sequence, text));
        w.pool.pump();
        CHECK(w.kept() == text);
    }
    CHECK(w.file("checkpoint") == "third");
    CHECK(w.file("checkpoint2") == "fourth");
    w.server.disconnect();
    w.pool.restart();
    CHECK(w.kept() == "fourth");
}

TEST_CASE("two checkpoints of one turn spare the file of the one before") {
    World w;
    w.pool.post(w.server.conn(), w.report(1, "before"));
    w.pool.pump();
    w.pool.post(w.server.conn(), w.report(2, "passed over"));
    w.pool.post(w.server.conn(), w.report(3, "the last"));
    w.pool.turn->run();
    REQUIRE(w.pool.outside->job);
    std::vector<std::string> written;
    for (const store::TreeUpdate &update : *w.pool.outside->job)
        for (const store::NodeUpdate &node : update.nodes)
            written.push_back(node.file + " " + std::string(node.content()));
    CHECK(std::count(written.begin(), written.end(), "checkpoint2 the last") == 1);
    CHECK(std::none_of(written.begin(), written.end(), [](const auto &w) { return w.starts_with("checkpoint "); }));
    w.pool.pump();
    CHECK(w.kept() == "the last");
    CHECK(w.file("checkpoint") == "before");
}

TEST_CASE("a turn that could not be saved leaves the checkpoint before it, and the next one goes where it went") {
    World w;
    w.pool.post(w.server.conn(), w.report(1, "before"));
    w.pool.pump();
    w.pool.post(w.server.conn(), w.report(2, "not saved"));
    w.pool.turn->run();
    REQUIRE(w.pool.outside->job);
    w.pool.outside->job.reset();
    w.pool.turn->committed({store::Answer::nothing, fail(Code::io_error, "planted")});
    CHECK(w.kept() == "before");
    w.pool.post(w.server.conn(), w.report(2, "saved"));
    w.pool.pump();
    CHECK(w.kept() == "saved");
    CHECK(w.file("checkpoint") == "before");
    w.pool.verify();
}

TEST_CASE("what failed after a checkpoint goes on from it, and what it wrote behind it is written again") {
    World w;
    w.pool.verify_each_turn = true;
    const GrainKey second{{"ann", 1}, 2};
    wire::GrainSpec spec = copying_grain("0123456789");
    spec.demands.attempts = 1;
    const ConnId control = w.pool.control("ann", "prog");
    const auto resume = [&] {
        w.pool.ask<wire::OpenReply>(control, wire::OpenSession{1, wire::OpenMode::resume, true});
    };
    const auto course = [&] { return w.pool.turn->state().grain(second)->course.get(); };
    const auto text_of = [&](const char *stream) {
        return *w.pool.store->read(std::string("sessions/ann/1/g/2/") + stream, 0, 100);
    };
    const auto fails = [&] {
        w.server.read();
        w.server.finish(second, 3);
        w.server.read();
        CHECK(w.pool.turn->state().grain(second)->has_failed());
        CHECK(text_of("out") == "0123456789");
    };
    resume();
    w.server.checkpoint(key, 10);
    w.server.read();
    w.server.finish(key);
    w.pool.ask<wire::Done>(control, wire::Gexec{1, 2, spec});
    w.server.read();
    REQUIRE(w.file("out") != "none");
    w.server.checkpoint(second, 4);
    fails();
    w.pool.ask<wire::Done>(control, wire::CloseSession{"", 1, 2});
    for (int i = 0; i < 20; ++i) w.pool.turn->tidy(), w.pool.pump();
    CHECK(w.file("out") == "none");  // packed, as it succeeded
    w.server.disconnect();
    w.pool.restart();
    REQUIRE(course().checkpoint_length > 0);
    const auto again = [&] { return wire::Gexec{1, 2, spec, true, true, true}; };
    const ConnId later = w.pool.control("ann", "prog");
    w.pool.ask<wire::OpenReply>(later, wire::OpenSession{1, wire::OpenMode::reopen, true});
    w.server.connect();
    spec.env.push_back("TERM=of another terminal");
    spec.demands.wall_s = 60;
    CHECK(w.pool.refusal(later, again()) == Code::ok);
    w.server.read();  // with that checkpoint, as the model server requires
    CHECK(w.server.held.at(second).base == 4);
    CHECK(text_of("out") == "0123");
    fails();
    CHECK(w.pool.refusal(later, again()) == Code::ok);
    w.server.read();
    CHECK(w.server.held.at(second).base == 4);
    w.server.checkpoint(second, 2);
    fails();
    CHECK(w.pool.refusal(later, again()) == Code::ok);
    w.server.read();
    CHECK(w.server.held.at(second).base == 6);
    fails();
    spec.env.push_back("WELL=1");  // is not the same work
    CHECK(w.pool.refusal(later, again()) == Code::ok);
    w.server.read();
    CHECK(w.server.held.at(second).base == 0);
    w.server.checkpoint(second, 2);
    fails();
    spec.argv[1] = "other";
    CHECK(w.pool.refusal(later, again()) == Code::ok);
    w.server.read();
    CHECK(w.server.held.at(second).base == 0);
    CHECK(course().checkpoint_length == 0);
    CHECK(text_of("out").empty());
    w.server.finish(second);
    w.server.read();
    CHECK(text_of("out") == "0123456789");
    w.pool.verify();
}

}  // namespace dcs::test::checkpoint_files
