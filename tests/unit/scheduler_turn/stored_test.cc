// What users have stored, as the scheduler counts it and as the disk has it; and what is refused for it.
#include "base/load_limits.h"
#include "pki/digest.h"
#include "pool.h"
#include "scheduler/library/library.h"
#include "scheduler/record/paths.h"
#include "support/about.h"
#include "support/catch.h"

using namespace dcs;
using namespace dcs::test;

namespace {

std::uint64_t on_disk_of(Pool &pool, const std::string &user) {
    std::uint64_t bytes = 0;
    const std::string top = std::string(record::sessions_directory) + "/" + record::encode_login(user);
    for (const auto &[name, content] : pool.disk.files(top)) bytes += core::on_disk(content.size());
    return bytes;
}

void compare(Pool &pool) {
    CHECK(pool.store->flush().answer == store::Answer::done);  // until then large files have a second name
    for (const std::string user : {"ann", "ben"}) {
        CAPTURE(user);
        CHECK(pool.turn->state().stored.of(user).sessions == on_disk_of(pool, user));
    }
    CHECK(core::check(pool.turn->state()).empty());
}

Status put(Pool &pool, ConnId conn, const std::string &bytes) {
    const auto request = pool.post(conn, wire::PutContent{pki::sha256_text(bytes), bytes.size(), 0, bytes});
    pool.pump();
    pool.do_library_jobs();
    const auto reply = pool.reply(conn, request);
    const auto *error = std::get_if<wire::ErrorReply>(&reply);
    return error ? fail(static_cast<Code>(error->code), error->text) : Status::ok();
}

wire::GrainSpec naming(const std::string &bytes) {
    wire::GrainSpec spec = copying_grain("");
    spec.files = {{wire::FileRole::data, "data", pki::sha256_text(bytes), bytes.size(), ""}};
    return spec;
}

}  // namespace

TEST_CASE("what is counted is what lies on the disk, also after a start") {
    Pool pool({host("h1", 2)});
    ModelServer server(pool, "h1");
    server.connect();
    const ConnId ann = three_grains(pool, server, 1);
    compare(pool);
    const ConnId ben = pool.control("ben", "prog");
    pool.ask<wire::OpenReply>(ben, wire::OpenSession{7, wire::OpenMode::open, false});
    for (int i = 0; i < 30; ++i)
        pool.ask<wire::Done>(ben, wire::Gexec{7, i, copying_grain(std::string(i % 3 == 0 ? 50'000 : 900, 'b'))});
    compare(pool);
    const auto before = pool.turn->state().stored.users();
    CHECK(before.at("ben").sessions > 500'000);
    pool.restart();
    compare(pool);
    CHECK(pool.turn->state().stored.users() == before);
    (void)ann;
    const ConnId again = pool.control("ben", "prog");
    pool.ask<wire::OpenReply>(again, wire::OpenSession{7, wire::OpenMode::resume, false});
    pool.ask<wire::Done>(again, wire::CloseSession{"", 7, -1});
    pool.ask<wire::Done>(again, wire::CleanSession{"", 7});
    compare(pool);
    CHECK(pool.turn->state().stored.users().count("ben") == 0);
}

TEST_CASE("both files in which a grain's checkpoints take turns count") {
    Pool pool({host("h1", 1)});
    ModelServer server(pool, "h1");
    const GrainKey key{{"ann", 1}, 1};
    const ConnId ann = pool.control("ann", "prog");
    pool.ask<wire::OpenReply>(ann, wire::OpenSession{1, wire::OpenMode::resume, true});
    pool.ask<wire::Done>(ann, wire::Gexec{1, 1, copying_grain(std::string(100, 'x'))});
    server.connect();
    server.read();
    for (const std::size_t length : {600'000, 5, 90'000, 40, 0, 70'000, 6}) {
        wire::GrainReport report;
        report.key = wire::wire_of(key);
        report.incarnation = server.held.at(key).incarnation;
        report.first_seq = report.last_seq = pool.turn->state().grain(key)->course->sequence + 1;
        report.has_checkpoint = true;
        report.checkpoint.assign(length, 'c');
        pool.post(server.conn(), report);
        pool.pump();
        CAPTURE(length);
        compare(pool);
    }
    CHECK(pool.turn->state().stored.of("ann").sessions > 70'000);
    pool.restart();
    compare(pool);
}

TEST_CASE("a user who fills the disk is refused while there is room, and another goes on") {
    Pool pool({host("h1", 1)});
    pool.turn->take_policy(core::Policy());
    pool.pump();
    const ConnId ann = pool.control("ann", "prog"), ben = pool.control("ben", "prog");
    for (const ConnId conn : {ann, ben})
        pool.ask<wire::OpenReply>(conn, wire::OpenSession{1, wire::OpenMode::resume, false});
    pool.disk.set_capacity(pool.disk.used_bytes() + (8u << 20));
    int taken = 0;
    std::string why;
    for (;; ++taken) {
        REQUIRE(taken < 200);
        const auto reply = pool.call(ann, wire::Gexec{1, taken, copying_grain(std::string(100'000, 'a'))});
        const auto *error = std::get_if<wire::ErrorReply>(&reply);
        if (!error) continue;
        CHECK(error->code == static_cast<int>(Code::limit));
        why = error->text;
        break;
    }
    CHECK(taken > 20);
    CHECK(why.find("ann has ") == 0);
    CHECK(why == about("50 % together"));
    CHECK(pool.disk.capacity() - pool.disk.used_bytes() > (3u << 20));
    for (int i = 0; i < 10; ++i) pool.ask<wire::Done>(ben, wire::Gexec{1, i, copying_grain(std::string(100'000, 'b'))});
    CHECK(pool.refusal(ann, wire::Gexec{1, 1000, copying_grain(std::string(100'000, 'a'))}) == Code::limit);
    // What makes room is never refused, and then there is some.
    pool.ask<wire::Done>(ann, wire::CloseSession{"", 1, -1});
    pool.ask<wire::Done>(ann, wire::CleanSession{"", 1});
    pool.ask<wire::OpenReply>(ann, wire::OpenSession{2, wire::OpenMode::open, false});
    pool.ask<wire::Done>(ann, wire::Gexec{2, 0, copying_grain(std::string(100'000, 'a'))});
    compare(pool);
}

TEST_CASE("contents count for who brought them, from their first piece on") {
    Pool pool({host("h1", 1)});
    const ConnId ann = pool.control("ann", "prog"), ben = pool.control("ben", "prog");
    core::Policy rules;
    rules.stored_mb_per_user = 1;
    pool.turn->take_policy(rules);
    pool.pump();
    const std::string first(200'000, '1'), second(200'000, '2');
    CHECK(put(pool, ann, first));
    CHECK(pool.turn->state().stored.of("ann").contents == core::on_disk(first.size()));
    // One on its way holds its room.
    const auto request = pool.post(ann, wire::PutContent{std::string(32, 'x'), 700'000, 0, std::string(1000, 'x')});
    pool.pump();
    CHECK(std::holds_alternative<wire::Done>(pool.reply(ann, request)));
    const Status refused = put(pool, ann, second);
    CHECK(refused.code == Code::limit);
    CHECK(refused.text.find("ann has 0.2 MB on the scheduler's disk (sessions 0.0 MB, contents 0.2 MB)") !=
          std::string::npos);
    CHECK(put(pool, ben, second));
    // Who brings another's content has it too; and after a start what grains name is known.
    CHECK(put(pool, ben, first));
    pool.ask<wire::OpenReply>(ben, wire::OpenSession{1, wire::OpenMode::open, false});
    pool.ask<wire::Done>(ben, wire::Gexec{1, 0, naming(first)});
    CHECK(pool.turn->state().stored.of("ben").contents == 2 * core::on_disk(first.size()));
    CHECK(core::check(pool.turn->state()).empty());
    pool.restart();
    CHECK(pool.turn->state().stored.of("ben").contents == core::on_disk(first.size()));
    CHECK(pool.turn->state().stored.of("ann").contents == 0);
}

TEST_CASE("a grain that has ended without room for its result is named, to its user and to operators") {
    Pool pool({host("h1", 2)});
    pool.turn->take_policy(core::Policy());
    ModelServer server(pool, "h1");
    server.connect();
    const ConnId ann = pool.control("ann", "prog"), ben = pool.control("ben", "prog");
    for (const ConnId conn : {ann, ben})
        pool.ask<wire::OpenReply>(conn, wire::OpenSession{1, wire::OpenMode::resume, false});
    pool.ask<wire::Done>(ann, wire::Gexec{1, 0, copying_grain(std::string(200'000, 'a'))});
    pool.ask<wire::Done>(ben, wire::Gexec{1, 0, copying_grain("b")});
    server.read();
    const GrainKey key{{"ann", 1}, 0};
    REQUIRE(server.held.count(key) == 1);
    const auto why = [&] { return pool.ask<wire::Explanation>(ann, wire::Explain{"", 1, 0}); };
    CHECK(why().reasons.at(0).reason == "running");
    CHECK(pool.store->flush().answer == store::Answer::done);
    pool.disk.set_capacity(pool.disk.used_bytes() + 200'000);
    server.finish(key);
    server.read();
    REQUIRE(server.held[key].unacknowledged);
    CHECK(why().state == "running");
    CHECK(why().reasons.at(0).reason == "unrecorded");
    CHECK(why().summary == about("has ended waits share"));
    wire::Query grains;
    grains.type = wire::QueryType::grains;
    grains.session = 1;
    CHECK(pool.ask<wire::QueryReply>(ann, grains).grains.at(0).note == why().summary);
    const auto named = [&](ConnId conn) {
        std::string text;
        for (const auto &row : pool.ask<wire::DoctorReply>(conn, wire::Doctor{}).problems)
            if (row.entity == "user ann") text += row.problem + ". " + row.affects + ". " + row.advice;
        return text;
    };
    CHECK(named(ann) == about("1 grain has ended share 1 slot clean"));
    CHECK(named(ben).empty());
    const ConnId root = pool.open(turn::Door::user, "root", true);
    pool.ask<wire::Welcome>(root, wire::Hello{});
    CHECK(named(root) == named(ann));

    pool.disk.set_capacity(~0ull);
    server.repeat();
    server.read();
    CHECK_FALSE(server.held.count(key));
    CHECK(why().reasons.at(0).reason == "finished");
    CHECK(pool.ask<wire::QueryReply>(ann, grains).grains.at(0).note.empty());
    CHECK(named(root).empty());
}

TEST_CASE("what the backup has acknowledged is taken in although its user exceeds the share of a full disk") {
    Pool pool({host("h1", 2)});
    pool.turn->take_policy(core::Policy());
    ModelServer server(pool, "h1");
    server.connect();
    const ConnId ann = pool.control("ann", "prog"), ben = pool.control("ben", "prog");
    for (const ConnId conn : {ann, ben})
        pool.ask<wire::OpenReply>(conn, wire::OpenSession{1, wire::OpenMode::resume, false});
    pool.ask<wire::Done>(ann, wire::Gexec{1, 0, copying_grain(std::string(200'000, 'a'))});
    pool.ask<wire::Done>(ben, wire::Gexec{1, 0, copying_grain("b")});
    server.read();
    const GrainKey key{{"ann", 1}, 0};
    REQUIRE(server.held.count(key) == 1);
    const ConnId backup = pool.open(turn::Door::server, "root", true);
    pool.post(backup, wire::BackupCall{wire::opening_form, 7});
    pool.pump();
    wire::GrainReport report;
    report.key = wire::wire_of(key);
    report.incarnation = server.held.at(key).incarnation;
    report.first_seq = report.last_seq = 1;
    report.out = std::string(200'000, 'a');
    report.ended = true;
    CHECK(pool.store->flush().answer == store::Answer::done);
    pool.disk.set_capacity(pool.disk.used_bytes() + 400'000);
    pool.post(backup, wire::HandOver{"h1", 1, report});
    pool.pump();
    CHECK(pool.turn->state().grain(key)->status() == core::GrainStatus::finished);
}
