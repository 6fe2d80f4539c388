// The library over the simulated disk, talked to in whole frames: W7, C13, A4.
#include <algorithm>

#include "base/limits.h"
#include "contents.h"

using namespace dcs;
using namespace dcs::test;

namespace {

constexpr Duration day = seconds(24 * 3600);

std::size_t library_problems(Pool &pool, ConnId conn) {
    std::size_t n = 0;
    for (const auto &row : pool.ask<wire::DoctorReply>(conn, wire::Doctor{}).problems) n += row.entity == "library";
    return n;
}

core::HostConfig host_of_binaries(const std::string &name, const std::string &binary_class) {
    core::HostConfig config = host(name, 2);
    config.binary_class = binary_class;
    return config;
}

}  // namespace

TEST_CASE("a content is there when all of it came, and stays through a restart") {
    Pool pool({host("h1", 1)});
    Program program(pool);
    const std::string bytes(3000, 'x');
    const wire::GrainSpec spec = spec_with({content(wire::FileRole::input, bytes)});
    CHECK(program.missing(bytes) == 1);
    const auto refused = pool.call(program.conn, wire::Gexec{1, 1, spec});
    REQUIRE(std::holds_alternative<wire::ErrorReply>(refused));
    CHECK(std::get<wire::ErrorReply>(refused).code == static_cast<int>(Code::not_found));
    const std::string name = wire::digest_text(pki::sha256_text(bytes));
    CHECK(std::get<wire::ErrorReply>(refused).text.find(name) != std::string::npos);
    CHECK(std::holds_alternative<wire::Done>(program.put(bytes)));
    CHECK(program.missing(bytes) == 0);
    pool.ask<wire::Done>(program.conn, wire::Gexec{1, 1, spec});
    pool.verify();
    pool.restart();
    pool.verify();
    Program again(pool);
    CHECK(again.missing(bytes) == 0);
    CHECK(std::get<wire::Piece>(again.fetch(1, wire::Stream::input, "", 2990)).bytes == std::string(10, 'x'));
    CHECK(std::get<wire::Piece>(again.fetch(1, wire::Stream::input)).total == 3000);
    // The same call is the same grain; another content is another one, and is named.
    pool.ask<wire::Done>(again.conn, wire::Gexec{1, 1, spec});
    const std::string other(3000, 'y');
    again.put(other);
    const auto differs = pool.call(again.conn, wire::Gexec{1, 1, spec_with({content(wire::FileRole::input, other)})});
    CHECK(std::get<wire::ErrorReply>(differs).text.find("files[0]") != std::string::npos);
}

TEST_CASE("a large upload is read back while it comes, one job at a time") {
    Pool pool({host("h1", 1)});
    Program program(pool);
    std::string bytes(20u << 20, 'l');
    bytes[1000] = 'm';
    std::size_t reads = 0, most = 0;
    std::uint64_t read_to = 0;
    std::uint64_t request = 0;
    for (std::size_t at = 0; at < bytes.size(); at += limits::content_piece_bytes) {
        request = pool.post(program.conn, piece_of(bytes, at, limits::content_piece_bytes));
        pool.pump();
        if (at + limits::content_piece_bytes == bytes.size()) break;
        CHECK(std::holds_alternative<wire::Done>(pool.reply(program.conn, request)));
        most = std::max(most, pool.outside->library_jobs.size());
        if (at % (4u << 20) != 0) continue;  // the job takes a while
        for (const library::Job &job : pool.outside->library_jobs) {
            CHECK((job.kind == library::Job::Kind::read && job.size > read_to && job.size < bytes.size()));
            read_to = job.size;
            ++reads;
        }
        pool.do_library_jobs();
    }
    pool.do_library_jobs();
    CHECK(reads >= 2);
    CHECK(most == 1);
    CHECK(std::holds_alternative<wire::Done>(pool.reply(program.conn, request)));
    CHECK(program.missing(bytes) == 0);
    pool.verify();
}

TEST_CASE("an empty content is one") {
    Pool pool({host("h1", 1)});
    Program program(pool);
    CHECK(std::holds_alternative<wire::Done>(program.put("", 1)));
    CHECK(program.missing("") == 0);
}

TEST_CASE("what does not fit is refused, and leaves nothing") {
    Pool pool({host("h1", 1)});
    Program program(pool);
    const std::string bytes(1000, 'z');
    // Not the bytes of the digest.
    pool.ask<wire::Done>(program.conn, piece_of(bytes, 0, 600));
    wire::PutContent wrong = piece_of(bytes, 600, 400);
    wrong.bytes[7] = 'Z';
    const auto request = pool.post(program.conn, wrong);
    pool.pump();
    pool.do_library_jobs();
    CHECK(std::get<wire::ErrorReply>(pool.reply(program.conn, request)).code == static_cast<int>(Code::invalid));
    CHECK(program.missing(bytes) == 1);
    // A gap; a piece of another connection; more than was announced; another total.
    pool.ask<wire::Done>(program.conn, piece_of(bytes, 0, 300));
    CHECK(pool.refusal(program.conn, piece_of(bytes, 500, 100)) == Code::not_found);
    const ConnId other = pool.control("ann", "other");
    CHECK(pool.refusal(other, piece_of(bytes, 300, 100)) == Code::not_found);
    wire::PutContent more = piece_of(bytes, 300, 700);
    more.bytes += "!";
    CHECK(pool.refusal(program.conn, more) == Code::invalid);
    more.total = limits::content_bytes + 1;
    CHECK(pool.refusal(program.conn, more) == Code::limit);
    // It goes on where it was all the same, and its connection's end ends it.
    pool.ask<wire::Done>(program.conn, piece_of(bytes, 300, 100));
    CHECK(files_in(pool, "library/incoming") == 1);
    pool.hang_up(program.conn);
    pool.pump();
    CHECK(files_in(pool, "library/incoming") == 0);
    // What a dead process left goes with the next start.
    pool.ask<wire::Done>(other, piece_of(bytes, 0, 300));
    CHECK(files_in(pool, "library/incoming") == 1);
    pool.restart();
    CHECK(files_in(pool, "library/incoming") == 0);
}

TEST_CASE("a full disk refuses a content, and keeps what there is") {
    Pool pool({host("h1", 1)});
    Program program(pool);
    const std::string bytes(100000, 'f');
    pool.disk.set_capacity(pool.disk.used_bytes() + limits::library_leaves_bytes + 1000);
    CHECK(pool.refusal(program.conn, piece_of(bytes, 0, 50000)) == Code::no_space);
    pool.disk.set_capacity(pool.disk.used_bytes() + limits::library_leaves_bytes + 200000);
    pool.ask<wire::Done>(program.conn, piece_of(bytes, 0, 50000));
    pool.disk.set_capacity(pool.disk.used_bytes() + 100);  // another party filled it
    CHECK(pool.refusal(program.conn, piece_of(bytes, 50000, 50000)) == Code::no_space);
    CHECK(files_in(pool, "library/incoming") == 0);
    pool.disk.set_capacity(~0ull);
    CHECK(program.refusal(bytes) == Code::ok);
}

TEST_CASE("pieces that wait until a content is checked are sent some in a turn, to owners in turn") {
    Pool pool({host("h1", 1)});
    const std::string bytes(4000, 'k');
    const auto begin = [&](const std::string &user) {
        const ConnId conn = pool.control(user, "prog");
        pool.ask<wire::OpenReply>(conn, wire::OpenSession{1, wire::OpenMode::resume, true});
        return conn;
    };
    for (const char *user : {"ann", "bob"}) {
        const ConnId conn = begin(user);
        pool.post(conn, piece_of(bytes, 0, bytes.size()));
        pool.pump();
        pool.do_library_jobs();
        pool.ask<wire::Done>(conn, wire::Gexec{1, 1, spec_with({content(wire::FileRole::input, bytes)})});
    }
    pool.restart();
    const ConnId ann = begin("ann"), gone = pool.control("ann", "other"), bob = begin("bob");
    const auto ask = [&](ConnId conn) {
        return pool.post(conn, wire::Fetch{"", 1, 1, wire::Stream::input, 0, 100, ""});
    };
    std::vector<std::uint64_t> of_ann;
    for (int i = 0; i < 300; ++i) of_ann.push_back(ask(ann));  // more than may wait on a connection
    for (int i = 0; i < 100; ++i) ask(gone);
    const auto of_bob = ask(bob);
    pool.pump();
    REQUIRE(pool.outside->library_jobs.size() == 1);
    CHECK(std::get<wire::ErrorReply>(pool.reply(ann, of_ann.back())).code == static_cast<int>(Code::limit));
    pool.hang_up(gone);
    pool.pump();
    pool.outside->sent.clear();
    pool.turn->take_library_job(library::work(pool.disk, pool.outside->library_jobs.front()));
    pool.outside->library_jobs.clear();
    CHECK(pool.outside->sent.empty());
    CHECK(pool.turn->next_wakeup() <= pool.outside->clock);
    pool.turn->run();
    CHECK(pool.outside->sent.size() >= 2);
    CHECK(pool.outside->sent.size() <= 32);
    CHECK(std::holds_alternative<wire::Piece>(pool.reply(bob, of_bob)));
    for (int i = 0; i < 100; ++i) pool.turn->run();
    CHECK(std::holds_alternative<wire::Piece>(pool.reply(ann, of_ann[255])));
    CHECK(pool.turn->next_wakeup() > pool.outside->clock);
}

TEST_CASE("a server gets what its own leases name, and nothing else") {
    Pool pool({host("h1", 1), host("h2", 1)});
    Program program(pool);
    ModelServer h1(pool, "h1"), h2(pool, "h2");
    const std::string bytes(700, 'k'), secret(800, 's');
    program.put(bytes);
    program.put(secret);
    h1.connect();
    h2.connect();
    pool.ask<wire::Done>(program.conn, wire::Gexec{1, 1, spec_with({content(wire::FileRole::data, bytes, "in.txt")})});
    const auto launches = said<wire::Launch>(pool, h1.conn());
    REQUIRE(launches.size() == 1);
    CHECK(launches[0].files.size() == 1);
    const wire::WantContent want{pki::sha256_text(bytes), 600, 4096};
    const auto piece = last_said<wire::ContentPiece>(pool, h1.conn(), want);
    CHECK(piece.bytes == std::string(100, 'k'));
    CHECK(piece.total == 700);
    CHECK(piece.offset == 600);
    CHECK(last_said<wire::ContentPiece>(pool, h2.conn(), want).code == static_cast<int>(Code::refused));
    const wire::WantContent foreign{pki::sha256_text(secret), 0, 4096};
    CHECK(last_said<wire::ContentPiece>(pool, h1.conn(), foreign).code == static_cast<int>(Code::refused));
    // It declared no outputs, so its host has nothing to bring.
    const auto taken = last_said<wire::ContentTaken>(pool, h1.conn(), piece_of("made", 0, 4));
    CHECK(taken.code == static_cast<int>(Code::refused));
    // The lease is over.
    pool.ask<wire::Done>(program.conn, wire::Gkill{"", 1, 1});
    CHECK(last_said<wire::ContentPiece>(pool, h1.conn(), want).code == static_cast<int>(Code::refused));
}

TEST_CASE("outputs are here before the report that names them is taken") {
    Pool pool({host("h1", 1)});
    Program program(pool);
    ModelServer h1(pool, "h1");
    h1.connect();
    pool.ask<wire::Done>(program.conn, wire::Gexec{1, 1, spec_with({output("a/made"), output("not")})});
    h1.read();
    pool.pump();
    const GrainKey key{{"ann", 1}, 1};
    CHECK(pool.refusal(program.conn, wire::Fetch{"", 1, 1, wire::Stream::file, 0, 10, "a/made"}) == Code::not_found);
    const std::string made(5000, 'm');
    wire::GrainReport report;
    report.key = wire::wire_of(key);
    report.incarnation = h1.held.at(key).incarnation;
    report.first_seq = report.last_seq = 1;
    report.ended = true;
    report.files = {output("not"), content(wire::FileRole::output, made, "a/made"), output("never declared")};
    CHECK(last_said<wire::ReportAck>(pool, h1.conn(), report).verdict == wire::Verdict::later);
    CHECK(pool.turn->state().grain(key)->status() == core::GrainStatus::running);
    // It does not know how far it was: it learns it, and goes on there.
    CHECK(last_said<wire::ContentTaken>(pool, h1.conn(), piece_of(made, 4000, 1000)).next == 0);
    CHECK(last_said<wire::ContentTaken>(pool, h1.conn(), piece_of(made, 0, 4000)).next == 4000);
    CHECK(last_said<wire::ContentTaken>(pool, h1.conn(), piece_of(made, 1000, 1000)).next == 4000);
    CHECK(last_said<wire::ContentTaken>(pool, h1.conn(), piece_of(made, 4000, 1000)).next == 5000);
    CHECK(last_said<wire::ReportAck>(pool, h1.conn(), report).verdict == wire::Verdict::taken);
    pool.verify();
    pool.restart();
    pool.verify();
    Program again(pool);
    const wire::Query query{wire::QueryType::grain, "", 1, 1};
    const auto row = pool.ask<wire::QueryReply>(again.conn, query).grains.at(0);
    REQUIRE(row.files.size() == 2);
    CHECK(row.files[0] == content(wire::FileRole::output, made, "a/made"));
    CHECK(row.files[1] == output("not"));
    CHECK(std::get<wire::Piece>(again.fetch(1, wire::Stream::file, "a/made")).bytes == made);
    const auto not_made = again.fetch(1, wire::Stream::file, "not");
    CHECK(std::get<wire::ErrorReply>(not_made).text.find("without making the file not") != std::string::npos);
    const auto unknown = again.fetch(1, wire::Stream::file, "x");
    CHECK(std::get<wire::ErrorReply>(unknown).code == static_cast<int>(Code::not_found));
}

TEST_CASE("programs decide where a grain runs, and each host is told of its own") {
    Pool pool({host_of_binaries("arm", "aarch64"), host_of_binaries("mips", "mips"), host_of_binaries("pc", "x86_64")});
    Program program(pool);
    program.put("for arm");
    program.put("for pc");
    ModelServer arm(pool, "arm"), mips(pool, "mips"), pc(pool, "pc");
    mips.connect();
    pc.connect();
    const auto for_arm = content(wire::FileRole::program, "for arm", "", "aarch64");
    const auto for_pc = content(wire::FileRole::program, "for pc", "", "x86_64");
    pool.ask<wire::Done>(program.conn, wire::Gexec{1, 1, spec_with({for_arm, for_pc})});
    pool.ask<wire::Done>(program.conn, wire::Gexec{1, 2, spec_with({for_arm})});
    CHECK(said<wire::Launch>(pool, mips.conn()).empty());
    const auto launches = said<wire::Launch>(pool, pc.conn());
    REQUIRE(launches.size() == 1);
    CHECK(launches[0].key.grain == 1);
    CHECK(launches[0].files == std::vector<wire::GrainFile>{for_pc});
    const auto why = pool.ask<wire::Explanation>(program.conn, wire::Explain{"", 1, 2});
    CHECK(why.can_run);
    CHECK(why.reasons.at(0).reason == std::string("no_binary"));
    CHECK(why.reasons.at(0).hosts == 2);
    arm.connect();
    CHECK(said<wire::Launch>(pool, arm.conn()).size() == 1);
    pool.verify();
}

TEST_CASE("a restarted grain gets its checkpoint, and where the content goes on") {
    Pool pool({host("h1", 1)});
    Program program(pool);
    ModelServer h1(pool, "h1");
    const std::string bytes = "0123456789";
    program.put(bytes);
    pool.ask<wire::Done>(program.conn, wire::Gexec{1, 1, spec_with({content(wire::FileRole::input, bytes)})});
    h1.connect();
    auto launch = said<wire::Launch>(pool, h1.conn()).at(0);
    CHECK(launch.input.empty());
    wire::GrainReport report;
    report.key = launch.key;
    report.incarnation = launch.incarnation;
    report.first_seq = report.last_seq = 1;
    report.has_checkpoint = true;
    report.checkpoint = "at 4;";
    report.input_position = 4;
    CHECK(last_said<wire::ReportAck>(pool, h1.conn(), report).verdict == wire::Verdict::taken);
    report.has_checkpoint = false;
    report.first_seq = 2, report.last_seq = 1;
    report.ended = report.innocent = true;
    pool.post(h1.conn(), report);
    pool.pump();
    pool.outside->clock = pool.outside->clock + seconds(1000);
    pool.restart();
    h1.connect();
    launch = said<wire::Launch>(pool, h1.conn()).at(0);
    CHECK(launch.input == "at 4;");
    CHECK(launch.checkpoint_length == 5);
    CHECK(launch.input_base == 4);
    CHECK(launch.files.at(0).role == wire::FileRole::input);
}

TEST_CASE("a content goes a day after no party names it any more") {
    Pool pool({host("h1", 1)});
    Program program(pool);
    program.put("named");
    program.put("asked for");
    program.put("idle");
    pool.ask<wire::Done>(program.conn, wire::Gexec{1, 1, spec_with({content(wire::FileRole::data, "named", "n")})});
    const auto idle = [&](Duration time) {
        pool.outside->clock = pool.outside->clock + time;
        for (int i = 0; i < 4; ++i) pool.turn->tidy();
        pool.pump();
    };
    const auto there = [&](const char *bytes) {
        return pool.disk.files("library").count(library::path_of(pki::sha256_text(bytes)));
    };
    idle(seconds(23 * 3600));
    CHECK(there("idle") == 1);
    CHECK(program.missing("asked for") == 0);
    idle(seconds(2 * 3600));
    CHECK(there("idle") == 0);
    CHECK(there("asked for") == 1);
    CHECK(there("named") == 1);
    idle(day);
    CHECK(there("asked for") == 0);
    CHECK(there("named") == 1);
    pool.ask<wire::Done>(program.conn, wire::CloseSession{"", 1, -1});
    idle(day);
    CHECK(there("named") == 1);
    pool.ask<wire::Done>(program.conn, wire::CleanSession{"", 1});
    idle(seconds(700));
    CHECK(there("named") == 0);
    pool.verify();
}

TEST_CASE("a content whose bytes changed is set aside, named, and brought again") {
    Pool pool({host("h1", 1)});
    std::string bytes(900, 'r');
    {
        Program program(pool);
        program.put(bytes);
        pool.ask<wire::Done>(program.conn, wire::Gexec{1, 1, spec_with({content(wire::FileRole::input, bytes)})});
    }
    pool.disk.flip(library::path_of(pki::sha256_text(bytes)), 444, 1);
    pool.restart();
    Program program(pool);
    const auto reply = program.fetch(1, wire::Stream::input);
    REQUIRE(std::holds_alternative<wire::ErrorReply>(reply));
    CHECK(std::get<wire::ErrorReply>(reply).text.find("any longer") != std::string::npos);
    CHECK(program.missing(bytes) == 1);
    CHECK(files_in(pool, "library/damaged") == 1);
    const ConnId root = pool.open(turn::Door::user, "root", true);
    pool.ask<wire::Welcome>(root, wire::Hello{});
    CHECK(library_problems(pool, root) == 1);
    CHECK(program.refusal(bytes) == Code::ok);
    CHECK(std::get<wire::Piece>(program.fetch(1, wire::Stream::input)).bytes == bytes);
    CHECK(library_problems(pool, root) == 0);
}

TEST_CASE("a content whose file is gone is brought again") {
    Pool pool({host("h1", 1)});
    const std::string bytes(900, 'g');
    Program program(pool);
    program.put(bytes);
    pool.ask<wire::Done>(program.conn, wire::Gexec{1, 1, spec_with({content(wire::FileRole::input, bytes)})});
    REQUIRE(pool.disk.remove(library::path_of(pki::sha256_text(bytes))));
    CHECK(program.missing(bytes) == 0);  // until it is looked for
    CHECK(std::holds_alternative<wire::ErrorReply>(program.fetch(1, wire::Stream::input)));
    CHECK(program.missing(bytes) == 1);
    CHECK(program.refusal(bytes) == Code::ok);
    CHECK(std::get<wire::Piece>(program.fetch(1, wire::Stream::input)).bytes == bytes);
}
