// A digest is no content: what users and hosts have to show before one is theirs.
#include "base/limits.h"
#include "base/load_limits.h"
#include "contents.h"
#include "scheduler/library/library.h"

using namespace dcs;
using namespace dcs::test;

TEST_CASE("two who bring the same content at once both have it, or the one whose bytes are right") {
    Pool pool({host("h1", 1)});
    const std::string bytes(500, 'p');
    const ConnId one = pool.control("ann", "one"), two = pool.control("bob", "two");
    wire::PutContent bad[2] = {piece_of(bytes, 0, 500), piece_of(bytes, 0, 500)};
    const int liar = GENERATE(-1, 0, 1);  // whose bytes are others; the other one's must not count for it
    if (liar >= 0) bad[liar].bytes[0] = 'q';
    const auto first = pool.post(one, bad[0]), second = pool.post(two, bad[1]);
    pool.pump();
    for (int i = 0; i < 3; ++i) pool.do_library_jobs();
    CHECK(std::holds_alternative<wire::Done>(pool.reply(one, first)) == (liar != 0));
    CHECK(std::holds_alternative<wire::Done>(pool.reply(two, second)) == (liar != 1));
    CHECK(pool.turn->state().stored.has("ann", pki::sha256_text(bytes)) == (liar != 0));
    CHECK(pool.turn->state().stored.has("bob", pki::sha256_text(bytes)) == (liar != 1));
    CHECK(files_in(pool, "library/incoming") == 0);
}

TEST_CASE("who hangs up before the answer has brought the content all the same, and no more of them than who waits") {
    Pool pool({host("h1", 1)});
    const auto text_of = [](std::size_t i) { return "content " + std::to_string(i); };
    const auto bring = [&](std::size_t from, std::size_t count) {
        const ConnId conn = pool.control("ann", "prog");
        for (std::size_t i = from; i < from + count; ++i) pool.post(conn, piece_of(text_of(i), 0, text_of(i).size()));
        pool.pump();
        pool.hang_up(conn);
        pool.pump();
    };
    for (std::size_t i = 0; i < 4; ++i) bring(20 * i, 20);
    CHECK(pool.outside->library_jobs.size() == limits::content_uploads_each);
    const ConnId bob = pool.control("bob", "prog");  // is not refused for it
    const std::string his = "another content";
    const auto request = pool.post(bob, piece_of(his, 0, his.size()));
    pool.pump();
    pool.do_library_jobs();
    CHECK(std::holds_alternative<wire::Done>(pool.reply(bob, request)));
    std::uint64_t expected = 0;
    for (std::size_t i = 0; i < limits::content_uploads_each; ++i) {
        CHECK(pool.turn->state().stored.has("ann", pki::sha256_text(text_of(i))));
        expected += core::on_disk(text_of(i).size());
    }
    CHECK(pool.turn->state().stored.of("ann").contents == expected);
    CHECK(files_in(pool, "library/incoming") == 0);
    bring(100, 1);  // all have been answered: there is room for more
    CHECK(pool.outside->library_jobs.size() == 1);
}

TEST_CASE("who sends wrong bytes again and again does not keep another from bringing the right ones") {
    Pool pool({host("h1", 1)});
    const std::string bytes(500, 'p');
    wire::PutContent wrong = piece_of(bytes, 0, 500);
    wrong.bytes[0] = 'q';
    const auto lie = [&] { pool.post(pool.control("eve", "prog"), wrong); };
    for (int i = 0; i < 10; ++i) lie();
    const ConnId ann = pool.control("ann", "prog");
    const auto request = pool.post(ann, piece_of(bytes, 0, 500));
    for (int i = 0; i < 10; ++i) lie();
    pool.pump();
    int jobs = 0;
    for (; !pool.turn->state().stored.has("ann", pki::sha256_text(bytes)) && jobs < 20; ++jobs) {
        REQUIRE(pool.outside->library_jobs.size() == 1);
        library::Job job = std::move(pool.outside->library_jobs.front());
        pool.outside->library_jobs.pop_front();
        pool.turn->take_library_job(library::work(pool.disk, std::move(job)));
    }
    CHECK(jobs == 2);
    CHECK(std::holds_alternative<wire::Done>(pool.reply(ann, request)));
    pool.do_library_jobs();
    CHECK_FALSE(pool.turn->state().stored.has("eve", pki::sha256_text(bytes)));
}

TEST_CASE("the log has few lines about wrong contents of one user") {
    Pool pool({host("h1", 1)});
    const ConnId eve = pool.control("eve", "prog");
    pool.outside->lines.clear();
    for (int i = 0; i < 300; ++i) {
        wire::PutContent wrong = piece_of("content " + std::to_string(i), 0, 9);
        wrong.total = 9;
        wrong.bytes.assign(9, 'q');
        pool.post(eve, wrong);
        pool.pump();
        pool.do_library_jobs();
    }
    CHECK(pool.outside->lines.size() >= 10);
    CHECK(pool.outside->lines.size() <= limits::log_lines_at_once + 10);
}

TEST_CASE("a digest is no content: others have to bring the bytes, users and hosts") {
    Pool pool({host("h2", 2)});
    Program ann(pool);
    const std::string secret = "my PIN is 482913", digest = pki::sha256_text(secret);
    ann.put(secret, 1);
    pool.ask<wire::Done>(ann.conn, wire::Gexec{1, 1, spec_with({content(wire::FileRole::data, secret, "pin")})});
    const ConnId bob = pool.control("bob", "guess");
    pool.ask<wire::OpenReply>(bob, wire::OpenSession{1, wire::OpenMode::resume, false});
    const auto missing = [&] {
        return pool.ask<wire::MissingContents>(bob, wire::AskContents{{digest}}).digests.size();
    };
    const wire::GrainSpec guess = spec_with({content(wire::FileRole::input, secret)});
    const auto refused = pool.call(bob, wire::Gexec{1, 1, guess});
    REQUIRE(std::holds_alternative<wire::ErrorReply>(refused));
    CHECK(std::get<wire::ErrorReply>(refused).code == static_cast<int>(Code::not_found));
    wire::GrainSpec other_size = guess;
    other_size.files[0].size += 1;  // no answer tells how long it is
    const auto same = pool.call(bob, wire::Gexec{1, 1, other_size});
    CHECK(std::get<wire::ErrorReply>(same).text.find("has 16 bytes") == std::string::npos);
    CHECK(missing() == 1);
    // A beginning is not enough, and other bytes are not either.
    pool.ask<wire::Done>(bob, piece_of(secret, 0, 6));
    CHECK(missing() == 1);
    wire::PutContent wrong = piece_of(secret, 0, secret.size());
    wrong.bytes[10] = '0';
    const auto request = pool.post(bob, wrong);
    pool.pump();
    pool.do_library_jobs();
    CHECK(std::holds_alternative<wire::ErrorReply>(pool.reply(bob, request)));
    CHECK(missing() == 1);
    // A host that runs a grain of his claims that it made that.
    ModelServer h2(pool, "h2");
    pool.ask<wire::Done>(bob, wire::Gexec{1, 2, spec_with({output("made")})});
    h2.connect();
    h2.read();
    pool.pump();
    const GrainKey key{{"bob", 1}, 2};
    REQUIRE(h2.held.count(key) == 1);
    wire::GrainReport report;
    report.key = wire::wire_of(key);
    report.incarnation = h2.held.at(key).incarnation;
    report.first_seq = report.last_seq = 1;
    report.ended = true;
    report.files = {content(wire::FileRole::output, secret, "made")};
    CHECK(last_said<wire::ReportAck>(pool, h2.conn(), report).verdict == wire::Verdict::later);
    CHECK(last_said<wire::ContentTaken>(pool, h2.conn(), piece_of(secret, 0, 6)).next == 6);
    CHECK(last_said<wire::ReportAck>(pool, h2.conn(), report).verdict == wire::Verdict::later);
    CHECK(last_said<wire::ContentTaken>(pool, h2.conn(), piece_of(secret, 6, 10)).next == secret.size());
    CHECK(last_said<wire::ReportAck>(pool, h2.conn(), report).verdict == wire::Verdict::taken);
    CHECK(missing() == 0);  // his grain names it now
    pool.verify();
    // Who is privileged may read it anyway.
    const ConnId root = pool.open(turn::Door::user, "root", true);
    pool.ask<wire::Welcome>(root, wire::Hello{});
    CHECK(pool.ask<wire::MissingContents>(root, wire::AskContents{{digest}}).digests.empty());
}

TEST_CASE("a digest is no content either in a report that the backup hands over") {
    Pool pool({host("h2", 2)});
    Program ann(pool);
    const std::string secret = "my PIN is 482913";
    ann.put(secret, 1);
    pool.ask<wire::Done>(ann.conn, wire::Gexec{1, 1, spec_with({content(wire::FileRole::data, secret, "pin")})});
    const ConnId bob = pool.control("bob", "guess");
    pool.ask<wire::OpenReply>(bob, wire::OpenSession{1, wire::OpenMode::resume, false});
    ModelServer h2(pool, "h2");
    pool.ask<wire::Done>(bob, wire::Gexec{1, 2, spec_with({output("made")})});
    h2.connect();
    h2.read();
    pool.pump();
    const GrainKey key{{"bob", 1}, 2};
    REQUIRE(h2.held.count(key) == 1);
    const ConnId backup = pool.open(turn::Door::server, "root", true);
    pool.post(backup, wire::BackupCall{wire::opening_form, 7});
    pool.pump();
    wire::GrainReport report;
    report.key = wire::wire_of(key);
    report.incarnation = h2.held.at(key).incarnation;
    report.first_seq = report.last_seq = 1;
    report.ended = true;
    report.files = {content(wire::FileRole::output, secret, "made")};
    const auto finished = [&](std::uint64_t number) {
        CHECK(last_said<wire::HandOverTaken>(pool, backup, wire::HandOver{"h2", number, report}).number == number);
        return pool.turn->state().grain(key)->status() == core::GrainStatus::finished;
    };
    CHECK_FALSE(finished(1));
    CHECK_FALSE(pool.turn->state().stored.has("bob", pki::sha256_text(secret)));
    // The host that has the bytes is believed.
    CHECK(last_said<wire::ContentTaken>(pool, h2.conn(), piece_of(secret, 0, 16)).next == secret.size());
    CHECK(finished(2));
    CHECK(pool.turn->state().stored.has("bob", pki::sha256_text(secret)));
    pool.verify();
}

TEST_CASE("a restart forgets who showed a content, and what the backup has of it counts all the same") {
    Pool pool({host("h2", 1)});
    const std::string made = "made by the grain";
    const ConnId bob = pool.control("bob", "prog");
    pool.ask<wire::OpenReply>(bob, wire::OpenSession{1, wire::OpenMode::resume, false});
    ModelServer h2(pool, "h2");
    pool.ask<wire::Done>(bob, wire::Gexec{1, 1, spec_with({output("made")})});
    h2.connect();
    h2.read();
    pool.pump();
    const GrainKey key{{"bob", 1}, 1};
    REQUIRE(h2.held.count(key) == 1);
    CHECK(last_said<wire::ContentTaken>(pool, h2.conn(), piece_of(made, 0, made.size())).next == made.size());
    pool.restart();
    const ConnId backup = pool.open(turn::Door::server, "root", true);
    pool.post(backup, wire::BackupCall{wire::opening_form, 7});
    pool.pump();
    wire::GrainReport report;
    report.key = wire::wire_of(key);
    report.incarnation = h2.held.at(key).incarnation;
    report.first_seq = report.last_seq = 1;
    report.ended = true;
    report.files = {content(wire::FileRole::output, made, "made")};
    CHECK(last_said<wire::HandOverTaken>(pool, backup, wire::HandOver{"h2", 1, report}).number == 1);
    CHECK(pool.turn->state().grain(key)->status() == core::GrainStatus::finished);
}

TEST_CASE(
    "of what a host brings and no report names, the latest are kept, and nothing of a host without such a grain") {
    Pool pool({host("h1", 1), host("h2", 1)});
    Program ann(pool);
    ModelServer h1(pool, "h1"), h2(pool, "h2");
    h1.connect(), h2.connect();
    pool.ask<wire::Done>(ann.conn, wire::Gexec{1, 1, spec_with({output("made")})});
    h1.read(), h2.read();
    pool.pump();
    ModelServer &runs = h1.held.empty() ? h2 : h1, &idle = h1.held.empty() ? h1 : h2;
    CHECK(last_said<wire::ContentTaken>(pool, idle.conn(), piece_of("junk", 0, 4)).code != 0);
    const std::size_t most = limits::content_uploads_each + 1;  // and one for its output
    for (std::size_t i = 0; i < most + 20; ++i) {
        const std::string bytes = "junk " + std::to_string(i);
        CHECK(last_said<wire::ContentTaken>(pool, runs.conn(), piece_of(bytes, 0, bytes.size())).next == bytes.size());
    }
    const ConnId root = pool.open(turn::Door::user, "root", true);
    pool.ask<wire::Welcome>(root, wire::Hello{});
    const auto there = [&](std::size_t i) {
        const std::string digest = pki::sha256_text("junk " + std::to_string(i));
        return pool.ask<wire::MissingContents>(root, wire::AskContents{{digest}}).digests.empty();
    };
    CHECK_FALSE(there(0));
    CHECK_FALSE(there(19));
    CHECK(there(20));
    CHECK(there(most + 19));
}

TEST_CASE("a content that no party names stays when it is just brought again") {
    Pool pool({host("h1", 1)});
    const std::string bytes(3000, 'x');
    const std::string path = library::path_of(pki::sha256_text(bytes));
    Program first(pool);
    REQUIRE(std::holds_alternative<wire::Done>(first.put(bytes)));
    pool.restart();
    pool.outside->clock = pool.outside->clock + seconds(24 * 3600 + 1);
    const ConnId other = pool.control("bob", "other");
    const std::uint64_t check = pool.post(other, piece_of(bytes, 0, bytes.size()));
    pool.pump();
    REQUIRE(pool.outside->library_jobs.size() == 1);
    const library::JobDone sealed = library::work(pool.disk, std::exchange(pool.outside->library_jobs, {}).front());
    SECTION("as it is old") {
        for (int i = 0; i < 4; ++i) {
            pool.outside->clock = pool.outside->clock + seconds(601);
            pool.turn->tidy();
        }
    }
    SECTION("as what was there is damaged") {
        library::JobDone wrong = sealed;
        wrong.job.kind = library::Job::Kind::check;
        wrong.status = fail(Code::invalid, "other bytes");
        pool.turn->take_library_job(wrong);
    }
    pool.turn->take_library_job(sealed);
    pool.pump();
    CHECK(std::holds_alternative<wire::Done>(pool.reply(other, check)));
    CHECK(pool.disk.files("library").count(path) == 1);
}
