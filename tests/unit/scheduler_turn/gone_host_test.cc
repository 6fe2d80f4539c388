// What the disk remembers of hosts and host classes that no party configures any more.
#include "pool.h"
#include "support/catch.h"

using namespace dcs;
using namespace dcs::test;

namespace {

core::HostConfig host_of_class(const std::string &name, std::uint32_t host_class) {
    core::HostConfig config = host(name, 1);
    config.host_class = host_class;
    return config;
}

wire::GrainSpec grain_of_class(std::uint32_t host_class) {
    wire::GrainSpec spec = copying_grain("some input");
    spec.demands.host_class = host_class;
    return spec;
}

GrainKey grain_key(GrainNumber number) { return {{"ann", 1}, number}; }

// Of class 2 is h1, of class 1 h2. Grain 0 finished on h2, grain 1 runs there and wrote a
// checkpoint, grain 2 waits for that class, grain 3 could not be started on h2 and waits for h1.
struct Remembered {
    Pool pool{{host_of_class("h1", 2), host_of_class("h2", 1)}};
    ModelServer h1{pool, "h1"}, h2{pool, "h2"};
    ConnId control{};

    Remembered() {
        control = pool.control("ann", "prog");
        pool.ask<wire::OpenReply>(control, wire::OpenSession{1, wire::OpenMode::resume, false});
        h2.connect();
        wire::GrainSpec another = grain_of_class(0);
        another.argv[0] = "/opt/another";
        pool.ask<wire::Done>(control, wire::Gexec{1, 3, another});
        h2.read(false);
        CHECK(grain(3).course->nogo->size() == 1);
        for (const GrainNumber number : {0, 1, 2})
            pool.ask<wire::Done>(control, wire::Gexec{1, number, grain_of_class(1)});
        h2.read();
        h2.finish(grain_key(0));
        h2.read();
        h2.checkpoint(grain_key(1), 4);
        h2.read();
        CHECK(grain(0).status() == core::GrainStatus::finished);
        CHECK(grain(1).status() == core::GrainStatus::running);
        pool.verify();
    }
    const core::Grain &grain(GrainNumber number) const { return *pool.turn->state().grain(grain_key(number)); }
    void start_with(std::vector<core::HostConfig> hosts) {
        for (ModelServer *server : {&h1, &h2}) server->disconnect();
        pool.hosts = std::move(hosts);
        pool.restart();
        CHECK(pool.reports.empty());
        control = pool.control("ann", "prog");
        pool.ask<wire::OpenReply>(control, wire::OpenSession{1, wire::OpenMode::resume, false});
        pool.verify();
    }
    wire::GrainResult wait(std::int32_t next) {
        return pool.ask<wire::GrainResult>(control, wire::Gwait{1, next, false});
    }
};

}  // namespace

TEST_CASE("state that refers to a host that is not configured loads and runs on") {
    Remembered w;
    w.start_with({host_of_class("h1", 3)});  // h1 took over the class of h2
    // What finished there is handed out, what ran there runs on elsewhere from its checkpoint, what
    // may not run there may still run here.
    CHECK(w.wait(0).out == "some input");
    CHECK(w.grain(1).status() == core::GrainStatus::ready);
    CHECK(w.grain(1).course->sequence == 1);
    w.h1.connect();
    for (int i = 0; i < 3; ++i) {
        w.h1.read();
        REQUIRE(w.h1.held.size() == 1);
        w.h1.finish(w.h1.held.begin()->first);
        w.h1.read();
    }
    for (std::int32_t next = 1; next < 4; ++next) CHECK(w.wait(next).out == "some input");
    CHECK(w.pool.refusal(w.control, wire::Gwait{1, 4, false}) == Code::nothing_left);
    w.pool.verify();
}

TEST_CASE("a server of a host that is not configured is turned away, its grains are not lost") {
    Remembered w;
    w.start_with({host_of_class("h1", 2)});
    w.h2.connect();
    w.h2.read();
    CHECK_FALSE(w.h2.connected());
    CHECK(w.h2.held.count(grain_key(1)) == 1);
    // Into the table again before any other party took it over: the grain goes on where it is.
    const Incarnation before = w.grain(1).incarnation;
    w.pool.turn->take_host_table({host_of_class("h1", 2), host_of_class("h2", 1)});
    w.pool.pump();
    w.h2.connect();
    w.h2.read();
    REQUIRE(w.h2.connected());
    CHECK(w.grain(1).status() == core::GrainStatus::running);
    CHECK(w.grain(1).incarnation == before);
    w.h2.finish(grain_key(1));
    w.h2.read();
    CHECK(w.grain(1).status() == core::GrainStatus::finished);
    w.pool.verify();
}

TEST_CASE("state that asks for a host class that is not configured loads and runs on") {
    Remembered w;
    w.start_with({host_of_class("h1", 2)});
    // The others of the session run.
    w.h1.connect();
    w.h1.read();
    REQUIRE(w.h1.held.count(grain_key(3)) == 1);
    w.h1.finish(grain_key(3));
    w.h1.read();
    CHECK(w.h1.held.empty());
    CHECK(w.wait(0).grain == 0);
    CHECK(w.wait(1).grain == 3);
    // A party that waits for the rest learns that no host of the class is there, and can still kill it.
    const auto reply = w.pool.call(w.control, wire::Gwait{1, 2, true});
    const auto *error = std::get_if<wire::ErrorReply>(&reply);
    REQUIRE(error);
    CHECK(error->code == static_cast<int>(Code::cannot_run));
    CHECK(error->text.find("1 of another class") != std::string::npos);
    w.pool.ask<wire::Done>(w.control, wire::Gkill{"", 1, 2});
    // A host of the class comes into the table and the last one runs.
    w.pool.turn->take_host_table({host_of_class("h1", 2), host_of_class("h9", 1)});
    w.pool.pump();
    ModelServer h9(w.pool, "h9");
    h9.connect();
    h9.read();
    REQUIRE(h9.held.count(grain_key(1)) == 1);
    h9.finish(grain_key(1));
    h9.read();
    CHECK(w.wait(2).out == "some input");
    w.pool.verify();
}

TEST_CASE("without any host everything is remembered") {
    Remembered w;
    const std::string before = Pool::durable_text(w.pool.turn->state());
    w.start_with({});
    CHECK(w.grain(1).status() == core::GrainStatus::ready);
    CHECK(w.grain(3).course->nogo->empty());  // its session was resumed: it is tried everywhere again
    CHECK(w.wait(0).grain == 0);
    CHECK(w.pool.refusal(w.control, wire::Gwait{1, 1, true}) == Code::cannot_run);
    w.start_with({host_of_class("h1", 2), host_of_class("h2", 1)});
    CHECK(w.grain(3).course->nogo->empty());  // its session was resumed: it is tried everywhere again
    w.h2.connect();
    w.h2.read();
    CHECK(w.h2.held.count(grain_key(1)) == 1);
}
