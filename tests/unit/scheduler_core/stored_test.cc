// What users have on the scheduler's disk: counted as sessions, grains and contents come and go, and limited.
#include "base/load_limits.h"
#include "pool.h"
#include "support/about.h"

using namespace dcs;
using namespace dcs::core;

namespace {

constexpr std::uint64_t block = 4096, mb = 1u << 20;

// A gexec whose parameters have so many bytes.
Lines submit(Pool &pool, const Program &who, int session, int number, std::size_t bytes) {
    return pool.call(who, Pool::grain(session, number, 0, std::string(bytes, 's')));
}
std::string refusal(const Lines &lines) {
    REQUIRE(lines.size() == 1);
    const auto at = lines[0].find("error LIMIT: ");
    return at == std::string::npos ? "" : lines[0].substr(at + 13);
}
std::uint64_t bytes_of(const Pool &pool, const std::string &user) { return pool.state.stored.of(user).all(); }

}  // namespace

TEST_CASE("a session counts by the blocks of its files, a large grain by its own, and cleaning frees both") {
    Pool pool(0);
    const Program ann = pool.begin("ann", "find"), ben = pool.begin("ben", "find");
    CHECK(bytes_of(pool, "ann") == 0);
    pool.open(ann, 1);
    CHECK(bytes_of(pool, "ann") == block);
    submit(pool, ann, 1, 0, 100);
    submit(pool, ann, 1, 1, 200);
    CHECK(bytes_of(pool, "ann") == 2 * block);
    submit(pool, ann, 1, 2, 50'000);
    CHECK(bytes_of(pool, "ann") == 2 * block + block + 13 * block);
    CHECK(bytes_of(pool, "ben") == 0);
    pool.open(ben, 1);
    const auto all = pool.answer<wire::QueryReply>(ben, wire::Query{wire::QueryType::sessions});
    REQUIRE((all.sessions.size() == 2 && all.stored.size() == 2));
    CHECK((all.sessions[0].stored_bytes == 16 * block && all.sessions[1].stored_bytes == block));
    CHECK((all.stored[0].user == "ann" && all.stored[0].sessions_bytes == 16 * block &&
           all.stored[0].contents_bytes == 0));
    const auto own = pool.answer<wire::QueryReply>(ann, wire::Query{wire::QueryType::sessions, "ben"});
    CHECK((own.stored.size() == 1 && own.stored[0].user == "ben"));
    wire::Query next{wire::QueryType::sessions};  // a later page does not repeat it
    next.after_user = "ann", next.after = 1;
    CHECK(pool.answer<wire::QueryReply>(ann, next).stored.empty());
    pool.close(ann, 1);
    CHECK(bytes_of(pool, "ann") == 16 * block);
    pool.call(ann, wire::CleanSession{"", 1});
    CHECK(bytes_of(pool, "ann") == 0);
    CHECK(pool.state.stored.users().size() == 1);
}

TEST_CASE("what grains report counts, and a turn that is taken back counts no more") {
    Pool pool(1);
    const Program ann = pool.begin("ann", "find");
    pool.open(ann, 1);
    pool.gexec(ann, 1, 0);
    pool.checkpoint("h1", "ann/1:0", std::string(9000, 'o'), std::string(5000, 'c'));
    const std::uint64_t before = bytes_of(pool, "ann");
    CHECK(before == 2 * block + block + 3 * block + 2 * block + block);  // and its message
    Undo undo;
    wire::GrainReport r = pool.report("ann/1:0");
    r.last_seq = r.first_seq;
    r.out = std::string(100'000, 'o');
    r.has_checkpoint = true;
    pool.feed(ServerReport{pool.conn("h1"), pool.id("h1"), std::make_shared<const wire::GrainReport>(r)}, &undo);
    CHECK(bytes_of(pool, "ann") > before + 80'000);
    roll_back(pool.state, undo);
    CHECK(bytes_of(pool, "ann") == before);
    CHECK(check(pool.state).empty());
}

TEST_CASE("the pool's rules say how much a user may have stored, and the refusal says what he has") {
    Pool pool(0);
    Policy p;
    p.stored_mb_per_user = 1;
    pool.rules(p);
    const Program ann = pool.begin("ann", "find"), ben = pool.begin("ben", "find");
    Program root = pool.begin("root", "find");
    root.privileged = true;
    for (const Program &who : {ann, ben, root}) pool.open(who, 1, wire::OpenMode::resume);
    CHECK(submit(pool, ann, 1, 0, 600'000) == Lines{"ann: done"});
    const std::string why = refusal(submit(pool, ann, 1, 1, 600'000));
    CHECK(why == about("0.6 0.6 0.0 0.6 1.0"));
    CHECK(pool.changes.empty());
    CHECK(submit(pool, ann, 1, 0, 600'000) == Lines{"ann: done"});  // the same again: nothing new
    CHECK(submit(pool, ben, 1, 0, 600'000) == Lines{"ben: done"});
    CHECK(submit(pool, root, 1, 0, 600'000) == Lines{"root: done"});
    CHECK_FALSE(refusal(submit(pool, root, 1, 1, 600'000)).empty());  // these rules hold for each party
    // A batch counts as a whole.
    auto batch = std::make_shared<std::vector<SubmitGrain>>();
    for (int i = 1; i < 6; ++i) batch->push_back(Pool::grain(1, i, 0, std::string(90'000, 'b')));
    CHECK_FALSE(refusal(pool.call(ben, SubmitGrains{1, batch})).empty());
    batch->resize(2);
    CHECK(pool.call(ben, SubmitGrains{1, batch}) == Lines{"ben: done"});
    pool.close(ann, 1);
    pool.call(ann, wire::CleanSession{"", 1});
    pool.open(ann, 2);
    CHECK(submit(pool, ann, 2, 0, 600'000) == Lines{"ann: done"});
}

TEST_CASE("a user has at most as much as he leaves, others go on, and new sessions are refused like grains") {
    Pool pool(0);
    const Program ann = pool.begin("ann", "find"), ben = pool.begin("ben", "find");
    Program root = pool.begin("root", "find");
    root.privileged = true;
    for (const Program &who : {ann, ben, root}) pool.open(who, 1);
    CHECK(submit(pool, ann, 1, 0, 100 * mb / 8) == Lines{"ann: done"});  // no party has measured: no such limit
    pool.state.stored.measured(20 * mb);
    CHECK_FALSE(refusal(submit(pool, ann, 1, 1, 4 * mb)).empty());
    CHECK(submit(pool, ann, 1, 1, 3 * mb) == Lines{"ann: done"});
    // What arrived since the disk was measured is not free any more: 17 MB are, and she has 15.5.
    CHECK_FALSE(refusal(submit(pool, ann, 1, 2, mb)).empty());
    CHECK(submit(pool, ben, 1, 0, 8 * mb) == Lines{"ben: done"});
    CHECK(submit(pool, root, 1, 0, 8 * mb) == Lines{"root: done"});
    const std::string why = refusal(pool.open(ann, 2));
    CHECK(why == about("MB 50 %"));
    CHECK(pool.changes.empty());
    Policy p;
    p.stored_share = 0;
    pool.rules(p);
    CHECK(pool.open(ann, 2) == Lines{"ann: opened fresh"});
}

TEST_CASE("reports wait only when the disk is nearly full, others have something, and it is not their user's share") {
    Pool pool(0);
    const Program ann = pool.begin("ann", "find");
    pool.open(ann, 1);
    submit(pool, ann, 1, 0, 60 * mb / 8);
    CHECK(may_report(pool.state, "ann", mb));
    pool.state.stored.measured(5 * mb);
    CHECK(may_report(pool.state, "ann", mb));  // no other party is there
    const Program ben = pool.begin("ben", "find");
    pool.open(ben, 1);
    CHECK_FALSE(may_report(pool.state, "ann", mb));
    CHECK(may_report(pool.state, "ann", 0));  // an end without a word
    CHECK(may_report(pool.state, "ben", mb));
    CHECK_FALSE(may_report(pool.state, "ben", 3 * mb));
    pool.state.stored.measured(limits::reports_leave_bytes + 2 * mb);
    CHECK(may_report(pool.state, "ann", mb));
}

TEST_CASE("a content counts once for each who names or brought it, from when it is there until it is gone") {
    Stored stored;
    stored.use("ann", "d1", true);  // of before the start; the library tells later what it has
    CHECK(stored.of("ann").contents == 0);
    stored.came("d1", 5000);
    stored.came("d1", 5000);
    CHECK(stored.of("ann").contents == 2 * block);
    stored.use("ann", "d1", true);
    stored.use("ben", "d1", true);
    CHECK(stored.of("ann").contents == 2 * block);
    CHECK(stored.of("ben").contents == 2 * block);
    stored.use("ann", "d1", false);
    CHECK(stored.of("ann").contents == 2 * block);
    stored.use("ann", "d1", false);
    CHECK(stored.of("ann") == UserStored());
    stored.came("d2", 1);
    stored.brought("d2", "ann");
    stored.brought("d2", "ann");
    stored.use("ann", "d2", true);
    stored.use("ann", "d2", false);
    CHECK(stored.of("ann").contents == block);  // it is still there, and she brought it
    stored.gone("d2");
    stored.gone("d1");  // damaged, though ben's grain names it
    stored.gone("d3");
    CHECK(stored.users().empty());
    stored.came("d1", 5000);
    CHECK(stored.of("ben").contents == 2 * block);
}

TEST_CASE("calls that wait are limited for a user over all sessions, beside those of one session") {
    Pool pool(0);
    pool.add_host("h1", 1, 1);
    pool.table();
    const Program ann = pool.begin("ann", "find"), ben = pool.begin("ben", "find");
    const auto wait = [&](const Program &who, int session) { return pool.gwait(who, session, 0, true); };
    int session = 0;
    for (std::size_t i = 0; i < limits::parked_waits_per_user; ++i) {
        if (i % limits::parked_waits == 0) {
            pool.open(ann, ++session);
            pool.gexec(ann, session, 0);
        }
        REQUIRE(wait(ann, session).empty());
    }
    CHECK(refusal(wait(ann, session)).find("session ann/4 has 1024 calls") == 0);
    pool.open(ann, ++session);
    pool.gexec(ann, session, 0);
    CHECK(refusal(wait(ann, session)) == about("ann 4096 waiting"));
    pool.open(ben, 1);
    pool.gexec(ben, 1, 0);
    CHECK(wait(ben, 1).empty());
    pool.close(ann, 1);  // dismisses its calls
    CHECK(wait(ann, session).empty());
}
