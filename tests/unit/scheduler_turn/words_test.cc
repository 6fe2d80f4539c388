// Frames that make no sense where they come: what their sender gets, or the log of a link that is closed, word for
// word.
#include <algorithm>
#include <limits>

#include "base/bytes.h"
#include "import_stream.h"
#include "pki/digest.h"
#include "pki/key.h"
#include "scheduler/turn/decode.h"
#include "support/about.h"
#include "wire/event_log.h"

using namespace dcs;
using namespace dcs::test;

namespace {

std::string error_of(const wire::AnyMessage &reply) {
    const auto *error = std::get_if<wire::ErrorReply>(&reply);
    return error ? error->text : "";
}

struct Frames {
    Pool pool{{host("h1", 2), host("h2", 1)}};
    std::string said(ConnId conn, const wire::AnyMessage &message) { return error_of(pool.call(conn, message)); }
    // What is logged of a frame of a link, which is closed.
    std::string hung_up(ConnId conn, const wire::AnyMessage &message) {
        pool.outside->lines.clear();
        pool.post(conn, message);
        pool.pump();
        CHECK(pool.outside->closed.back() == conn);
        return logged(conn);
    }
    std::string logged(ConnId conn) const {
        const std::string start = "connection " + to_text(conn) + ": ";
        for (const std::string &line : pool.outside->lines)
            if (line.rfind(start, 0) == 0) return line.substr(start.size());
        return "";
    }
    ConnId server(const std::string &name) {
        const ConnId conn = pool.open(turn::Door::server, "root", true);
        wire::FirstCall call;
        call.host = name;
        pool.post(conn, call);
        pool.pump();
        return conn;
    }
};

const std::string no_number = "the increment's sequence number leaves no room for a next one";

}  // namespace

TEST_CASE("what is wrong with a submission is said before its session is looked at") {
    const auto wrong = [](const std::function<void(wire::GrainSpec &)> &change) {
        wire::GrainSpec spec = copying_grain("");
        change(spec);
        const Status s = turn::check_spec(spec);
        return s ? "" : s.text;
    };
    CHECK(wrong([](auto &) {}).empty());
    CHECK(wrong([](auto &s) { s.argv.clear(); }) == about("argv[0] program missing"));
    CHECK(wrong([](auto &s) { s.argv.resize(limits::argv_items); }) == about("argv environment 4096"));
    CHECK(wrong([](auto &s) { s.env[0] = std::string("A=\0", 3); }) == about("argv environment NUL"));
    CHECK(wrong([](auto &s) { s.env[0] = "A=" + std::string(limits::argv_env_bytes, 'x'); }) ==
          about("argv environment"));
    CHECK(wrong([](auto &s) { s.input = std::string(limits::input_bytes + 1, 'x'); }) ==
          about("fit inline descriptor"));
    CHECK(wrong([](auto &s) { s.directory = std::string("/a\0b", 4); }) == about("working directory path"));
    CHECK(wrong([](auto &s) { s.label = std::string(limits::label_bytes + 1, 'x'); }) == about("label 256 bytes"));
}

TEST_CASE("a connection that begins wrongly is told so") {
    Frames f;
    ConnId conn = f.pool.open(turn::Door::user, "ann");
    CHECK(f.said(conn, wire::Hello{wire::opening_form, "short"}) == about("authorization 32 5"));
    conn = f.pool.open(turn::Door::user, "ann");
    CHECK(f.said(conn, wire::GetAuth{"prog"}) == about("connection not GetAuth"));
    f.server("h1");
    const ConnId link = f.server("h2");
    wire::FirstCall again;
    again.host = "h2";
    CHECK(f.hung_up(link, again) == about("server FirstCall twice"));
    wire::GrainReport endless;
    endless.key = {"ann", 1, 1};
    endless.last_seq = std::numeric_limits<std::uint32_t>::max();
    CHECK(f.hung_up(f.server("h1"), endless) == no_number);
    wire::JoinHost join;
    join.role = 9;
    CHECK(f.said(f.pool.open(turn::Door::join, "a stranger"), join) == about("server control programs"));
    f.pool.outside->lines.clear();
    const ConnId here = f.server("h1");
    f.pool.post(here, wire::RenewCertificate{"request"});
    f.pool.pump();
    CHECK(f.logged(here) == about("gets no TLS"));
}

TEST_CASE("a backup that says what it may not is hung up on, with the reason in the log") {
    Frames f;
    const ConnId backup = f.pool.open(turn::Door::server, "root", true);
    f.pool.post(backup, wire::BackupCall{wire::opening_form, 7});
    f.pool.pump();
    wire::HandOver over{"h1", 1, {}};
    over.report.last_seq = std::numeric_limits<std::uint32_t>::max();
    CHECK(f.hung_up(backup, over) == no_number);
}

TEST_CASE("an authority that does not sign is told to who asked") {
    Frames f;
    const ConnId root = f.pool.open(turn::Door::user, "root", true);
    f.pool.ask<wire::Welcome>(root, wire::Hello{});
    const auto code = f.pool.ask<wire::TokenCreated>(root, wire::CreateToken{"h1", 3600});
    f.pool.outside->authority = false;
    const wire::JoinHost join{wire::opening_form, "", "box", code.token, *pki::make_request(pki::new_key())};
    CHECK(f.said(f.pool.open(turn::Door::join, "a stranger"), join) == "this scheduler has no authority");
}

TEST_CASE("what was removed in the same turn is answered with that") {
    Worked a;
    const ConnId reader = a.pool.control("ann", "reader");
    a.pool.outside->lines.clear();
    wire::Query query;
    query.type = wire::QueryType::grain;
    query.session = 1;
    query.grain = 0;
    const auto detail = a.pool.post(reader, query);
    const auto page = a.pool.post(reader, wire::ExportPage{"", 1, -1, 3});
    const auto gone = a.pool.post(reader, wire::CleanSession{"", 1});
    a.pool.pump();
    CHECK(error_of(a.pool.reply(reader, gone)).empty());
    CHECK(error_of(a.pool.reply(reader, detail)) == "grain ann/1:0: it was removed");
    CHECK(error_of(a.pool.reply(reader, page)) == "session ann/1 was removed");
}

TEST_CASE("results of a session that is removed in the same turn are answered with that") {
    Worked a;
    a.pool.ask<wire::OpenReply>(a.control, wire::OpenSession{1, wire::OpenMode::resume, true});
    const auto results = a.pool.post(a.control, wire::GwaitMany{1, 0, 10, false});
    const auto gone = a.pool.post(a.control, wire::CleanSession{"", 1});
    a.pool.pump();
    CHECK(error_of(a.pool.reply(a.control, gone)).empty());
    CHECK(error_of(a.pool.reply(a.control, results)).find("it was removed") != std::string::npos);
}

TEST_CASE("a stream that ends inside a record, or names contents that are not here, is not imported") {
    Worked a;
    Exported session = export_session(a.pool, a.control, 1);
    const auto refusal = [&](const std::string &stream) {
        upload(a.pool, a.control, stream);
        return error_of(a.pool.call(a.control, wire::ImportSession{2, false, stream.size(), crc32c(stream)}));
    };
    CHECK(refusal(stream_of(session) + "xyz") == about("import refused stream"));
    session.grains[4].spec.files.push_back({wire::FileRole::data, "data", pki::sha256_text("not here"), 8, ""});
    const std::string why = refusal(stream_of(session));
    INFO(why);
    CHECK(why == about("refused 4 not"));
}

TEST_CASE("pieces of contents that do not belong are refused in words") {
    Frames f;
    const ConnId ann = f.pool.control("ann", "prog");
    f.pool.ask<wire::OpenReply>(ann, wire::OpenSession{1, wire::OpenMode::open, false});
    const std::string bytes = "some content", digest = pki::sha256_text(bytes);
    CHECK(f.said(ann, wire::PutContent{"short", 1, 0, "x"}) == about("content digest 32"));
    f.pool.post(ann, wire::PutContent{digest, bytes.size(), 0, bytes});
    f.pool.pump();
    CHECK(f.said(ann, wire::PutContent{digest, bytes.size(), 0, bytes}) == about("complete checked answer"));
    f.pool.do_library_jobs();
    wire::GrainSpec spec = copying_grain("");
    spec.files.push_back({wire::FileRole::input, "", digest, bytes.size() + 1, ""});
    CHECK(f.said(ann, wire::Gexec{1, 0, spec}) == about("content 12 bytes"));
    for (std::size_t i = 0; i < limits::content_uploads_each; ++i)
        f.pool.ask<wire::Done>(ann, wire::PutContent{pki::sha256_text(std::to_string(i)), 100, 0, "x"});
    CHECK(f.said(ann, wire::PutContent{pki::sha256_text("more"), 100, 0, "x"}) == about("64 64 progress"));
}

TEST_CASE("a content that is damaged is none") {
    Frames f;
    const std::string bytes(200'000, 'c'), digest = pki::sha256_text(bytes), path = library::path_of(digest);
    const auto judged = [&](const std::string &content) {
        SimDisk disk;
        REQUIRE(disk.make_dir("d"));
        REQUIRE(disk.create("d/x", content));
        return library::work(disk, {library::Job::Kind::seal, digest, bytes.size(), "d/x"}).status.text;
    };
    CHECK(judged(bytes.substr(1)) == about("199999 not 200000"));
    CHECK(judged(std::string(200'000, 'd')) == about("content not match SHA-256"));
}

TEST_CASE("a content that became shorter after it was checked is set aside, and can be uploaded again") {
    Frames f;
    const ConnId ann = f.pool.control("ann", "prog");
    f.pool.ask<wire::OpenReply>(ann, wire::OpenSession{1, wire::OpenMode::open, false});
    const std::string bytes(200'000, 'c'), digest = pki::sha256_text(bytes), name = wire::digest_text(digest);
    const auto upload = [&] {
        f.pool.post(ann, wire::PutContent{digest, bytes.size(), 0, bytes});
        f.pool.pump();
        f.pool.do_library_jobs();
    };
    const auto input_from = [&](std::uint64_t offset) {
        const auto request = f.pool.post(ann, wire::Fetch{"", 1, 0, wire::Stream::input, offset, 1u << 20, ""});
        f.pool.pump();
        f.pool.do_library_jobs();
        return f.pool.reply(ann, request);
    };
    upload();
    wire::GrainSpec spec = copying_grain("");
    spec.files.push_back({wire::FileRole::input, "", digest, bytes.size(), ""});
    f.pool.ask<wire::Done>(ann, wire::Gexec{1, 0, spec});
    CHECK(std::get<wire::Piece>(input_from(150'000)).bytes.size() == 50'000);
    f.pool.disk.cut(library::path_of(digest), 100'000);
    for (const std::uint64_t offset : {150'000, 0})
        CHECK(error_of(input_from(offset)) == about("library not content " + name + " longer 100000 bytes not 200000"));
    CHECK(f.pool.turn->state().session({"ann", 1})->grains.count(0) == 1);
    upload();
    CHECK(std::get<wire::Piece>(input_from(150'000)).bytes.size() == 50'000);
}

TEST_CASE("nothing is forgotten of a session with a damaged grain") {
    Pool pool({host("h1", 2)});
    ModelServer server(pool, "h1");
    three_grains(pool, server, 1);
    REQUIRE(pool.store->flush().answer == store::Answer::done);
    pool.disk.flip("sessions/ann/1/g/1/status", 20, 0x40);
    pool.restart();
    const ConnId ann = pool.control("ann", "somebody");
    const auto before = Pool::durable_text(pool.turn->state());
    CHECK(error_of(pool.call(ann, wire::RestartGrain{"ann", 1, 0, true, 0})) == about("session ann/1 not"));
    CHECK(Pool::durable_text(pool.turn->state()) == before);
}

TEST_CASE("an event log whose last frame says that it is longer is found by the scrub") {
    Pool pool({host("h1", 2)});
    ModelServer server(pool, "h1");
    three_grains(pool, server, 1);
    const std::string log = "sessions/ann/1/events", bytes = pool.disk.files().at(log);
    std::size_t last = 0;
    for (std::size_t n = 1; n < bytes.size(); ++n) {  // frames are short: the length is one byte
        std::vector<wire::Event> events;
        std::string_view part = std::string_view(bytes).substr(0, n);
        REQUIRE(wire::take_events(part, events));
        last = n - part.size();
    }
    pool.disk.damage(log, last, 1, [](char c) { return static_cast<char>(c + 1); });
    pool.outside->lines.clear();
    for (int i = 0; i < 20; ++i) {
        pool.outside->clock = pool.outside->clock + seconds(24 * 3601);
        pool.turn->tidy();
        pool.pump();
    }
    const std::string words = log + ": it ends inside a frame";
    const auto named = [&](const std::string &line) { return line.find(words) != line.npos; };
    CHECK(std::count_if(pool.outside->lines.begin(), pool.outside->lines.end(), named) == 1);
}

TEST_CASE("more connections than a scheduler takes are refused in words") {
    turn::Connections connections;
    turn::Arrival server;
    server.door = turn::Door::server;
    for (std::uint64_t conn = 1; conn <= limits::connections; ++conn) REQUIRE(connections.add(ConnId{conn}, server));
    CHECK(connections.add(ConnId{limits::connections + 1}, server).text == about("scheduler 16384 connections"));
}
