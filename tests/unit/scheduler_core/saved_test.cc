// Processor time that checkpoints save: counted where a grain begins again, not where it might have.
#include "pool.h"

using namespace dcs;
using namespace dcs::core;

namespace {

struct SavedStage {
    Pool pool{2};
    Program find = pool.begin("ann", "find");
    SavedStage() {
        pool.open(find, 1);
        pool.gexec(find, 1, 0);
    }
    wire::GrainReport used(std::int64_t user_us, std::int64_t system_us) const {
        wire::GrainReport r = pool.report("ann/1:0");
        r.usage.user_us = user_us;
        r.usage.system_us = system_us;
        return r;
    }
    // A checkpoint when this incarnation had used so much.
    void checkpoint(const std::string &host, std::int64_t user_us, std::int64_t system_us = 0) {
        wire::GrainReport r = used(user_us, system_us);
        r.last_seq = r.first_seq;
        r.has_checkpoint = true;
        r.checkpoint = "state";
        pool.send(host, r);
    }
    // Its host gives it back after so much, and does not get it again at once; it begins again on the other one.
    void given_back(const std::string &host, std::int64_t user_us) {
        pool.wait(seconds(6));  // what the other one gave back before is forgotten
        pool.call_in("h1");
        pool.call_in("h2");
        wire::GrainReport r = used(user_us, 0);
        r.ended = r.innocent = true;
        pool.send(host, r);
    }
    std::int64_t saved() const { return pool.at("ann/1:0").course->kept->saved; }
    std::int64_t held() const { return pool.at("ann/1:0").course->kept->held; }
    std::string where() const {
        const Host *host = pool.state.host(pool.at("ann/1:0").lessee);
        return host ? host->config->name : "";
    }
    wire::SessionRow row() {
        wire::Query query;
        query.type = wire::QueryType::sessions;
        query.user = "ann";
        const auto reply = pool.answer<wire::QueryReply>(pool.stranger("ann"), query);
        return reply.sessions.at(0);
    }
};

}  // namespace

TEST_CASE("what the newest checkpoint holds is saved at each new beginning") {
    SavedStage s;
    s.checkpoint("h1", 300, 20);
    CHECK(s.held() == 320);
    CHECK(s.saved() == 0);  // it has not begun again
    s.given_back("h1", 500);
    REQUIRE(s.where() == "h2");
    CHECK(s.saved() == 320);
    s.checkpoint("h2", 100);
    CHECK(s.held() == 420);  // without the 180 that were lost
    s.given_back("h2", 150);
    REQUIRE(s.where() == "h1");
    CHECK(s.saved() == 320 + 420);
    CHECK(s.row().saved_cpu_s == 740e-6);
    s.pool.end("h1", "ann/1:0");
    CHECK(s.saved() == 740);
    CHECK(s.row().saved_cpu_s == 740e-6);
}

TEST_CASE("without a checkpoint nothing is saved") {
    SavedStage s;
    s.given_back("h1", 500);
    REQUIRE(s.where() == "h2");
    s.given_back("h2", 500);
    CHECK(s.saved() == 0);
    CHECK(s.row().saved_cpu_s == 0);
}

TEST_CASE("a launch that came to nothing saves nothing a second time") {
    SavedStage s;
    s.checkpoint("h1", 300);
    s.given_back("h1", 300);
    REQUIRE(s.where() == "h2");
    REQUIRE(s.saved() == 300);
    s.pool.launched("h2", "ann/1:0", Code::limit);
    s.pool.wait(seconds(6));
    s.pool.call_in("h1");
    REQUIRE(s.where() == "h1");
    REQUIRE(s.pool.at("ann/1:0").incarnation == 3);
    CHECK(s.saved() == 300);
    s.checkpoint("h1", 50);
    CHECK(s.held() == 350);
}

TEST_CASE("an older lease that counts again takes back what its successor had saved") {
    SavedStage s;
    s.checkpoint("h1", 300);
    s.pool.wait(seconds(40));
    s.pool.call_in("h2");
    s.pool.wait(seconds(21));
    s.pool.call_in("h2");
    REQUIRE(s.where() == "h2");
    REQUIRE(s.saved() == 300);
    s.pool.first_call("h1", {{"ann/1:0", 1, 400}});
    REQUIRE(s.where() == "h1");
    CHECK(s.saved() == 0);
    s.checkpoint("h1", 450);
    CHECK(s.held() == 450);  // counted from its own beginning
}

TEST_CASE("two hosts that are lost by turns get their own lease back each time") {
    SavedStage s;
    s.pool.wait(seconds(40));
    s.pool.call_in("h2");
    s.pool.wait(seconds(21));
    s.pool.call_in("h2");
    REQUIRE(s.where() == "h2");
    s.pool.wait(seconds(100));
    REQUIRE(s.pool.status("ann/1:0") == "ready");
    s.pool.first_call("h1", {{"ann/1:0", 1, 400}});
    REQUIRE(s.where() == "h1");
    s.pool.wait(seconds(100));
    REQUIRE(s.pool.status("ann/1:0") == "ready");
    s.pool.first_call("h2", {{"ann/1:0", 2, 10}});  // the newest lease, which was not the last that counted
    CHECK(s.where() == "h2");
    CHECK(s.pool.at("ann/1:0").lease == 2);
}

TEST_CASE("a grain whose end is forgotten has saved nothing") {
    SavedStage s;
    s.checkpoint("h1", 300);
    s.given_back("h1", 300);
    s.pool.end(s.where(), "ann/1:0");
    REQUIRE(s.saved() == 300);
    s.pool.gwait(s.find, 1, 0);
    s.pool.call(s.pool.stranger("ann"), wire::RestartGrain{"ann", 1, 0, true, 0});
    REQUIRE(s.pool.status("ann/1:0") != "finished");
    CHECK(s.saved() == 0);
    CHECK(s.row().saved_cpu_s == 0);
}
