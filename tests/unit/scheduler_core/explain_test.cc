// `dcs grain explain`: each reason is produced, has words, and never disagrees with placement.
#include <fstream>
#include <functional>

#include "base/confinement.h"
#include "exceed_limit.h"
#include "places.h"
#include "pool.h"
#include "scheduler/core/explain.h"
#include "support/about.h"

using namespace dcs;
using namespace dcs::core;

namespace {

// Host h1 of one slot, and a session ann/1 with a grain 0 that runs there or waits for it.
struct ExplainStage {
    Pool pool{1};
    Program ann = pool.begin("ann", "find"), root = pool.stranger("root", true);
    ExplainStage() { pool.open(ann, 1, wire::OpenMode::resume); }

    SubmitGrain grain(int number) { return Pool::grain(1, number); }
    void submit(SubmitGrain g) { pool.call(ann, std::move(g)); }
    void submit(int number) { submit(grain(number)); }
    void occupy() { submit(99); }  // h1's slot
    HostConfig &h1() { return pool.hosts[0]; }
    void settle() { pool.table(); }
    void offer(const char *resources) { h1().slots = 3, h1().resources = *offers_of(resources), settle(); }
    void demand_mb(int memory_mb) {
        SubmitGrain g = grain(0);
        g.demands.memory_mb = memory_mb;
        submit(g);
    }
    void demand(int number, const char *resources) { submit(Pool::wants(1, number, resources)); }
};

using Scene = std::function<void(ExplainStage &)>;
// Brings ann/1:0 into the situation that the reason names.
const std::map<Why, Scene> &scenes() {
    // clang-format off
    static const std::map<Why, Scene> all = {
        {Why::finished, [](ExplainStage &s) { s.submit(0); s.pool.end("h1", "ann/1:0"); }},
        {Why::failed, [](ExplainStage &s) { s.submit(0); for (int i = 0; i < 3; ++i) s.pool.end("h1", "ann/1:0", 3); }},
        {Why::killed, [](ExplainStage &s) { s.submit(0); s.pool.gkill(s.ann, 1, 0); }},
        {Why::running, [](ExplainStage &s) { s.submit(0); s.pool.launched("h1", "ann/1:0"); }},
        {Why::starting, [](ExplainStage &s) { s.submit(0); }},
        {Why::staged,
         [](ExplainStage &s) {
             const Program bob = s.pool.begin("bob", "b");
             s.pool.open(bob, 1);
             s.pool.gexec(bob, 1, 0);
             s.submit(0);
             s.pool.boundary("h1");
             s.pool.staged("h1", "ann/1:0");
         }},
        {Why::displaced,
         [](ExplainStage &s) {
             const Program eve = s.pool.begin("eve", "e");
             s.pool.open(eve, 1);
             s.pool.close(s.ann, 1);
             s.pool.call(s.ann, wire::CleanSession{"", 1});
             s.pool.open(s.ann, 1);
             s.submit(0);
             s.pool.gexec(eve, 1, 0);
             s.pool.boundary("h1");
         }},
        {Why::starved, [](ExplainStage &s) { s.submit(0); s.pool.used("h1", "ann/1:0", 1.5, 7); }},
        {Why::unrecorded, [](ExplainStage &s) { s.submit(0); s.pool.unrecorded("ann/1:0", NoRoom::of_user); }},
        {Why::session_closed, [](ExplainStage &s) { s.occupy(); s.submit(0); s.pool.close(s.ann, 1); }},
        {Why::damaged,
         [](ExplainStage &s) {
             SessionInfo info = s.pool.session("ann/1").info;
             info.seniority += 1;
             load_session(s.pool.state, {"ann", 2}, {info, {}, {{0, "grains/0: its checksum differs"}}});
         }},
        {Why::no_hosts, [](ExplainStage &s) { s.pool.hosts.clear(); s.settle(); s.submit(0); }},
        {Why::user_quota,
         [](ExplainStage &s) {
             Policy p; p.running_per_user = 1; s.pool.rules(p);
             s.pool.add_host("h2"); s.settle();
             s.pool.first_call("h2");
             s.occupy(); s.submit(0);
         }},
        {Why::user_denied,
         [](ExplainStage &s) { s.occupy(); s.submit(0); Policy p; p.denied = {"ann"}; s.pool.rules(p); }},
        {Why::older_first,
         [](ExplainStage &s) {
             s.occupy();
             s.submit(98);
             const Program bob = s.pool.begin("bob", "b");
             s.pool.open(bob, 1);
             s.pool.gexec(bob, 1, 0);
         }},
        {Why::fewer_first,
         [](ExplainStage &s) {
             Policy p;
             p.fair_share = true;
             s.pool.rules(p);
             s.occupy();
             s.submit(0);
             const Program bob = s.pool.begin("bob", "b");
             s.pool.open(bob, 1);
             s.pool.gexec(bob, 1, 0);
         }},
        {Why::earlier_first, [](ExplainStage &s) { s.occupy(); s.submit(98); s.submit(0); }},
        {Why::other_class, [](ExplainStage &s) { s.pool.gexec(s.ann, 1, 0, 2); }},
        {Why::no_binary,
         [](ExplainStage &s) {
             s.h1().binary_class = "x";
             s.settle();
             SubmitGrain g = s.grain(0);
             g.files.binary_classes = {"none-such"};
             s.submit(g);
         }},
        {Why::too_old, [](ExplainStage &s) { s.pool.forms["h1"] = 7; s.pool.first_call("h1"); s.submit(0); }},
        {Why::not_permitted, [](ExplainStage &s) { s.h1().users = {"bob"}; s.settle(); s.submit(0); }},
        {Why::no_slots, [](ExplainStage &s) { s.h1().slots = 0; s.settle(); s.submit(0); }},
        {Why::no_program, [](ExplainStage &s) { s.submit(0); s.pool.launched("h1", "ann/1:0", Code::not_found); }},
        {Why::cannot_start,
         [](ExplainStage &s) {
             s.submit(0);
             s.pool.add_host("h2");  // that it waits for
             s.settle();
             s.pool.launched("h1", "ann/1:0", Code::invalid);
         }},
        {Why::resting,
         [](ExplainStage &s) {
             s.submit(0);
             for (int i = 0; i < 3; ++i) {
                 s.pool.launched("h1", "ann/1:0", Code::io_error);
                 s.pool.now = s.pool.now + seconds(6);
                 if (i < 2) s.pool.call_in("h1");
             }
         }},
        {Why::failed_there,
         [](ExplainStage &s) {
             s.submit(0);
             s.pool.add_host("h2");
             s.settle();
             s.pool.end("h1", "ann/1:0", 1);
             s.pool.end("h1", "ann/1:0", 1);
         }},
        {Why::host_limit, [](ExplainStage &s) { s.submit(0); exceed_limit(s.pool, s.ann); }},
        {Why::nogo,
         [](ExplainStage &s) {  // as an import brings it: without what happened there
             s.occupy();
             s.submit(0);
             Grain g = s.pool.at("ann/1:0");
             g.course.edit().nogo = std::vector<HostId>{HostId{0}};
             Undo undo;
             apply(s.pool.state, SetGrain{Pool::key("ann/1:0"), g}, undo);
         }},
        {Why::too_few_cores, [](ExplainStage &s) { SubmitGrain g = s.grain(0); g.demands.cores = 2; s.submit(g); }},
        {Why::too_little_memory, [](ExplainStage &s) { s.h1().memory_mb = 100; s.settle(); s.demand_mb(101); }},
        {Why::memory_limited, [](ExplainStage &s) { s.pool.limits("h1", {100}); s.demand_mb(101); }},
        {Why::drained,
         [](ExplainStage &s) {
             wire::SetHost drain;
             drain.host = "h1";
             drain.drained = 1;
             s.pool.set(s.root, drain);
             s.submit(0);
         }},
        {Why::never_called, [](ExplainStage &s) { s.occupy(); s.pool.add_host("h2"); s.settle(); s.submit(0); }},
        {Why::not_connected, [](ExplainStage &s) { s.pool.hang_up("h1"); s.submit(0); }},
        {Why::delinquent, [](ExplainStage &s) { s.occupy(); s.submit(0); s.pool.wait(seconds(31)); }},
        {Why::being_checked,
         [](ExplainStage &s) {
             s.h1().check = {"h1"};
             s.settle();
             s.occupy();
             s.submit(0);
             s.pool.wait(seconds(61));
             s.pool.probed("h1", true);
         }},
        {Why::no_job,
         [](ExplainStage &s) { s.h1().pilot = true; s.settle(); s.pool.hang_up("h1"); s.submit(0); }},
        {Why::dead, [](ExplainStage &s) { s.submit(0); s.pool.wait(seconds(61)); }},
        {Why::too_open,
         [](ExplainStage &s) { s.h1().require_confinement = rung_filter; s.settle(); s.submit(0); }},
        {Why::host_shut,
         [](ExplainStage &s) {
             s.pool.feed(ServerCallIn{s.pool.conn("h1"), HostId{0},
                                      wire::CallIn{9.0, 1000, false, "the owner is back"}});
             s.submit(0);
         }},
        {Why::program_missing,
         [](ExplainStage &s) {
             SubmitGrain g = s.grain(98);
             g.program = 77;
             s.pool.add_host("h2");  // which may have it
             s.settle();
             s.submit(g);
             g.grain = 0;
             s.submit(g);
             s.pool.launched("h1", "ann/1:98", Code::not_found);
         }},
        {Why::held_back, [](ExplainStage &s) { s.submit(0); s.pool.launched("h1", "ann/1:0", Code::limit); }},
        {Why::busy, [](ExplainStage &s) { s.occupy(); s.submit(0); }},
        {Why::usurps,
         [](ExplainStage &s) {
             const Program bob = s.pool.begin("bob", "b");
             s.pool.open(bob, 1);
             s.pool.gexec(bob, 1, 0);
             s.submit(0);
         }},
        {Why::trouble,
         [](ExplainStage &s) {
             for (int i = 1; i <= 17; ++i) s.submit(i);
             for (int i = 1; i <= 16; ++i) s.pool.launched("h1", "ann/1:" + std::to_string(i), Code::io_error);
             s.submit(0);
         }},
        {Why::probation,
         [](ExplainStage &s) {
             Policy p;
             p.probation = 1;
             s.pool.rules(p);
             s.h1().slots = 2;
             s.settle();
             s.submit(98);
             s.submit(99);
             s.pool.end("h1", "ann/1:98", 1);
             s.pool.end("h1", "ann/1:98", 1);  // there again, for want of an elsewhere
             s.pool.gkill(s.ann, 1, 98);
             Host blamed = *s.pool.state.host(HostId{0});
             blamed.blamed_lately = 1;
             Undo undo;
             apply(s.pool.state, SetHost{HostId{0}, blamed}, undo);
             s.submit(0);
         }},
        {Why::cores_in_use,
         [](ExplainStage &s) {
             s.h1().slots = s.h1().cores = 2, s.settle();
             s.submit(99);
             SubmitGrain g = s.grain(0);
             g.demands.cores = 2;
             s.submit(g);
         }},
        {Why::thrash,
         [](ExplainStage &s) {
             s.pool.call_in("h1", 1000);
             SubmitGrain g = s.grain(0);
             g.demands.thrash = 2;
             s.submit(g);
         }},
        {Why::no_resource, [](ExplainStage &s) { s.offer("gpu=1"); s.demand(0, "gpu=2"); }},
        {Why::resource_in_use, [](ExplainStage &s) { s.offer("gpu=1"); s.demand(99, "gpu=1"); s.demand(0, "gpu=1"); }},
        {Why::kept_for_earlier,
         [](ExplainStage &s) { s.offer("gpu=2"); s.demand(99, "gpu=1"); s.demand(98, "gpu=2"); s.demand(0, "gpu=1"); }},
        {Why::memory_in_use,
         [](ExplainStage &s) {
             s.h1().slots = 2, s.h1().memory_mb = 100, s.settle();
             SubmitGrain g = s.grain(99);
             g.demands.memory_mb = 60;
             s.submit(g);
             g.grain = 0;
             s.submit(g);
         }},
        {Why::others_first,
         [](ExplainStage &s) {
             s.submit(98);
             s.pool.launched("h1", "ann/1:98", Code::limit);  // held back, then not any more
             SubmitGrain g = s.grain(0);
             g.demands.thrash = 2;
             s.submit(g);
             s.pool.now = s.pool.now + seconds(6);
             Host host = *s.pool.state.host(HostId{0});
             host.free_memory_kb = 1 << 20;
             Undo undo;
             apply(s.pool.state, SetHost{HostId{0}, host}, undo);
         }},
        {Why::takes_it,
         [](ExplainStage &s) {
             s.submit(0);
             s.pool.launched("h1", "ann/1:0", Code::limit);
             s.pool.now = s.pool.now + seconds(6);
         }},
    };
    // clang-format on
    return all;
}

// The grain that the scene is about.
std::string subject(Why why) {
    if (why == Why::damaged) return "ann/2:0";
    return why == Why::older_first ? "bob/1:0" : "ann/1:0";
}

const wire::WhyRow *row_of(const wire::Explanation &e, Why why) {
    for (const wire::WhyRow &row : e.reasons)
        if (row.reason == reason_of(why).word) return &row;
    return nullptr;
}

std::string file_text(const std::string &path) {
    std::ifstream in(std::string(DCS_SOURCE_DIR) + path);
    return {(std::istreambuf_iterator<char>(in)), {}};
}

}  // namespace

TEST_CASE("every reason has words of its own and is produced") {
    std::set<std::string> words;
    for (int w = 0; w < whys; ++w) {
        const Why why = static_cast<Why>(w);
        const Reason &reason = reason_of(why);
        CAPTURE(reason.word);
        CHECK(words.insert(reason.word).second);
        CHECK(std::string(reason.sentence).size() > 10);
        REQUIRE(scenes().count(why) == 1);
        ExplainStage stage;
        scenes().at(why)(stage);
        const wire::Explanation e = stage.pool.explain(subject(why), true);
        const wire::WhyRow *row = row_of(e, why);
        CAPTURE(e.summary);
        REQUIRE(row);
        CHECK(row->text == reason.sentence + std::string(why == Why::host_shut ? ": the owner is back" : ""));
        CHECK((row->hint == reason.hint) == (row->hosts != 1 || std::string(reason.hint).find("NAME") + 1 == 0));
        CHECK(e.summary.size() > 10);
        if (row->hosts > 0) CHECK(row->names.size() == std::min<std::size_t>(8, static_cast<std::size_t>(row->hosts)));
    }
}

TEST_CASE("the page lists every reason and every move with the words of the code") {
    const std::string page = file_text("/docs/SCHEDULING.md");
    std::size_t rows = 0;
    for (int w = 0; w < whys; ++w) {
        const Reason &r = reason_of(static_cast<Why>(w));
        const std::string row = "\n| `" + std::string(r.word) + "` | " + r.sentence + " | " + r.hint + " |\n";
        CAPTURE(row);
        CHECK(page.find(row) != std::string::npos);
    }
    for (int m = 0; m < move_reasons; ++m) {
        const std::string row = "\n| " + std::string(name_of(static_cast<MoveReason>(m))) + " | ";
        CAPTURE(row);
        CHECK(page.find(row) != std::string::npos);
    }
    for (std::size_t at = page.find("\n| `"); at != std::string::npos; at = page.find("\n| `", at + 1)) ++rows;
    CHECK(rows == static_cast<std::size_t>(whys));
}

TEST_CASE("hosts are counted by reason, and what cannot run at all is said with the counts") {
    Pool pool;
    pool.add_host("a", 2);
    pool.add_host("b", 1).users = {"bob"};
    pool.add_host("c", 1, 0);
    pool.add_host("d", 2);
    pool.table();
    const Program ann = pool.begin("ann", "find");
    pool.open(ann, 1);
    pool.gexec(ann, 1, 0, 1);
    wire::Explanation e = pool.explain("ann/1:0");
    CHECK_FALSE(e.can_run);
    CHECK(e.summary == about("other_class not_permitted no_slots"));
    REQUIRE(row_of(e, Why::other_class));
    CHECK(row_of(e, Why::other_class)->hosts == 2);
    CHECK(row_of(e, Why::other_class)->names == std::vector<std::string>{"a", "d"});
    pool.hosts[2].slots = 1;
    pool.table();
    e = pool.explain("ann/1:0");
    CHECK(e.can_run);  // though it has not called in yet
    CHECK(row_of(e, Why::never_called)->names == std::vector<std::string>{"c"});
}

TEST_CASE("names are few, counts are whole, and what is ahead is counted") {
    Pool pool(20);
    const Program ann = pool.begin("ann", "find");
    pool.open(ann, 1);
    for (int i = 0; i < 30; ++i) pool.gexec(ann, 1, i, 1);
    wire::Explanation e = pool.explain("ann/1:29");
    CHECK(e.ahead == 9);
    CHECK(row_of(e, Why::busy)->hosts == 20);
    CHECK(row_of(e, Why::busy)->names.size() == 8);
    CHECK(pool.explain("ann/1:20").ahead == 0);
    CHECK(row_of(pool.explain("ann/1:20"), Why::earlier_first) == nullptr);
    CHECK(pool.explain("ann/1:0").ahead == -1);  // it runs
    const Program bob = pool.begin("bob", "b");
    pool.open(bob, 1), pool.gexec(bob, 1, 0, 1);
    CHECK(pool.explain("bob/1:0").summary == about("20 sessions ann/1"));
    pool.add_host("other", 2);
    pool.table();
    pool.gexec(ann, 1, 30, 2);
    CHECK(pool.explain("ann/1:30").ahead == 0);  // those that need another kind of host are not in its way
    pool.gexec(bob, 1, 1, 2);                    // nor is an older session, where the host is away
    CHECK(row_of(pool.explain("bob/1:1"), Why::older_first) == nullptr);
}

TEST_CASE("who may ask: the owner and those with privilege, and what there is to ask about") {
    ExplainStage s;
    s.submit(0);
    const auto ask = [&](const Program &p, int session, int grain) {
        return s.pool.call(p, wire::Explain{"ann", session, grain}).at(0);
    };
    CHECK(ask(s.pool.stranger("eve"), 1, 0) == about("eve REFUSED not"));
    CHECK(ask(s.root, 2, 0).find("SESSION_UNKNOWN") != std::string::npos);
    CHECK(ask(s.root, 1, 7).find("GRAIN_UNKNOWN") != std::string::npos);
    CHECK(ask(s.root, 1, 0).find("error") == std::string::npos);
    CHECK(s.pool.changes.empty());
}
