// What others send costs them, and not those who wait beside them.
#include "base/load_limits.h"
#include "import_stream.h"
#include "scheduler/record/read_blob.h"
#include "scheduler/turn/line_budget.h"
#include "scheduler/turn/weight.h"
#include "support/about.h"

using namespace dcs;
using namespace dcs::test;

TEST_CASE("a sender's lines are some at once and one a second, the rest is counted") {
    turn::LineBudget lines;
    Instant now{seconds(5000).ns};
    CHECK(lines.left_out(now).empty());
    std::size_t written = 0;
    for (int i = 0; i < 1000; ++i) written += lines.allow("user ann", now);
    CHECK(written == limits::log_lines_at_once);
    CHECK(lines.allow("user bob", now));
    CHECK(lines.allow("", now));
    now = now + seconds(3);
    for (int i = 0; i < 10; ++i) written += lines.allow("user ann", now);
    CHECK(written == limits::log_lines_at_once + 3);
    CHECK(lines.left_out(now).empty());  // once a minute
    now = now + seconds(60);
    const auto told = lines.left_out(now);
    REQUIRE(told.size() == 1);
    CHECK(told[0] == std::pair<std::string, std::size_t>("user ann", 1010 - written));
    CHECK(lines.left_out(now + seconds(60)).empty());
}

TEST_CASE("refused orders fill no log") {
    Pool pool({host("h1", 1)});
    const ConnId ann = pool.control("ann", "prog");
    for (int i = 0; i < 3000; ++i) pool.post(ann, wire::Gkill{"bob", 1, 1});
    pool.pump();
    const auto count = [&](const char *words) {
        const auto &lines = pool.outside->lines;
        return std::count_if(lines.begin(), lines.end(),
                             [&](const std::string &line) { return line.find(words) != std::string::npos; });
    };
    const auto others = count("ann begins control program");
    CHECK(count("ann asked to kill a grain") == static_cast<long>(limits::log_lines_at_once) - others);
    pool.outside->clock = pool.outside->clock + seconds(61);
    pool.call(ann, wire::Gkill{"bob", 1, 1});
    const std::string left = std::to_string(2900 + others);
    CHECK(count((left + " more lines about user ann were suppressed").c_str()) == 1);
}

TEST_CASE("repeated reads of another user's session fill no log") {
    Pool pool({host("h1", 1)});
    const ConnId ann = pool.control("ann", "prog"), root = pool.open(turn::Door::user, "root", true);
    pool.ask<wire::OpenReply>(ann, wire::OpenSession{1, wire::OpenMode::open, false});
    pool.ask<wire::Welcome>(root, wire::Hello{});
    wire::Fetch read;
    read.user = "ann", read.session = 1, read.grain = -1;
    const auto lines_after = [&](int reads) {
        for (int i = 0; i < reads; ++i) (void)pool.call(root, read);
        return std::count_if(pool.outside->lines.begin(), pool.outside->lines.end(), [](const std::string &line) {
            return line == about("audit: root asked to read what a grain has, ann/1");
        });
    };
    CHECK(lines_after(1) == 1);
    CHECK(lines_after(30) == 10);
    pool.outside->clock = pool.outside->clock + seconds(3600);
    CHECK(lines_after(30) == 11);
    CHECK(pool.outside->lines.back() == about("and 21 times since"));
}

TEST_CASE("programs that begin without end fill no log, and an operator's acts have their lines") {
    Pool pool({host("h1", 1)});
    const auto begun = [&](const char *user) {
        return std::count_if(pool.outside->lines.begin(), pool.outside->lines.end(), [&](const std::string &line) {
            return line.find(std::string(user) + " begins control program") != std::string::npos;
        });
    };
    for (const bool privileged : {false, true}) {
        const ConnId conn = pool.open(turn::Door::user, privileged ? "root" : "ann", privileged);
        pool.ask<wire::Welcome>(conn, wire::Hello{});
        for (int i = 0; i < 300; ++i) pool.post(conn, wire::GetAuth{"prog"});
        pool.pump();
    }
    CHECK(begun("ann") == static_cast<long>(limits::log_lines_at_once));
    CHECK(begun("root") == 300);
}

TEST_CASE("a host that says it holds thousands is told to give up some of them, and calls again") {
    Pool pool({host("h1", 2)});
    const ConnId server = pool.open(turn::Door::server, "dcs");
    wire::FirstCall call;
    call.protocol = wire::opening_form;
    call.host = "h1";
    for (int i = 0; i < 5000; ++i) call.held.push_back({{"ann", 1, i}, i == 0 ? 1u << 30 : 3u << 30, 0});
    pool.post(server, call);
    pool.pump();
    std::size_t withdrawn = 0;
    for (const Sent &sent : pool.outside->sent) withdrawn += std::holds_alternative<wire::Withdraw>(sent.message);
    CHECK(withdrawn == 1026);
    CHECK(pool.outside->closed == std::vector<ConnId>{server});
    CHECK(pool.turn->state().hosts[0].fence == 1u << 30);  // no lease of ours has the higher number
    call.held.assign(limits::held_grains + 1, {{"ann", 1, 1}, 1, 0});
    const ConnId again = pool.open(turn::Door::server, "dcs");
    pool.post(again, call);
    pool.pump();
    CHECK(pool.outside->closed.back() == again);
}

TEST_CASE("reading a long output through is charged once, and done once") {
    core::Grain grain;
    grain.course.edit().out_length = 64u << 20;
    grain.own_tree = true;
    core::State state;
    state.sessions[{"ann", 1}].grains[1] = grain;
    const GrainKey key{{"ann", 1}, 1};
    record::Verified verified;
    wire::Fetch first;
    first.stream = wire::Stream::out;
    first.max = 1;
    const core::Effect piece = core::ReplyPiece{ConnId{1}, core::RequestId{1}, key, first};
    CHECK(turn::weight_of(state, piece, verified) == 1024);
    first.offset = 1;
    CHECK(turn::weight_of(state, core::ReplyPiece{ConnId{1}, core::RequestId{1}, key, first}, verified) == 0);
    verified.add(record::place_of(key, grain, record::Part::out));
    CHECK(turn::weight_of(state, piece, verified) == 0);
    grain.course.edit().out_sum = 7;  // it was written again
    CHECK_FALSE(verified.has(record::place_of(key, grain, record::Part::out)));
}

TEST_CASE("a call that looks through lists counts as many small ones") {
    core::UserCall call;
    call.request = wire::Gwait{1, 0, false};
    const std::size_t small = turn::weight_of(call);
    call.request = wire::Query{};
    CHECK(turn::weight_of(call) >= 50 * small);
    call.request = wire::Doctor{};
    CHECK(turn::weight_of(call) >= 50 * small);
    call.request = wire::Explain{"", 1, 1};
    CHECK(turn::weight_of(call) >= 50 * small);
}

TEST_CASE("a call that makes many grains look for a host counts as many") {
    Pool pool({host("h1", 1)});
    ModelServer server{pool, "h1"};
    server.connect();
    const ConnId ann = pool.control("ann", "prog");
    pool.ask<wire::OpenReply>(ann, wire::OpenSession{1, wire::OpenMode::open, false});
    for (int g = 0; g < 300; ++g) {
        wire::GrainSpec spec = copying_grain("");
        spec.demands.memory_mb = 1 + g;
        pool.ask<wire::Done>(ann, wire::Gexec{1, g, spec});
    }
    REQUIRE(pool.turn->state().session({"ann", 1})->ready.size() >= 5);  // kinds of them
    const std::size_t before = pool.commits;
    for (int i = 0; i < 2000; ++i) pool.post(ann, wire::SetSession{"", 1, i % 2 == 0 ? 19 : 0});
    pool.pump();
    CHECK(pool.commits - before >= 5);
}

TEST_CASE("a call that looks through many grains counts as many") {
    core::HostConfig small = host("h1", 1), large = host("h2", 1);
    small.memory_mb = 100;
    large.memory_mb = 1000;
    Pool pool({small, large});
    const ConnId ann = pool.control("ann", "prog");
    pool.ask<wire::OpenReply>(ann, wire::OpenSession{1, wire::OpenMode::open, false});
    wire::GrainSpec spec = copying_grain("");
    spec.demands.memory_mb = 200;
    for (int g = 0; g < 640; ++g) pool.ask<wire::Done>(ann, wire::Gexec{1, g, spec});
    spec.demands = {};
    spec.demands.thrash = 2'000'000'000;  // h1 may have that much one day
    pool.ask<wire::Done>(ann, wire::Gexec{1, 640, spec});
    pool.turn->take_host_table({small});
    for (int i = 0; i < 2; ++i) pool.post(ann, wire::Gwait{1, 0, true});
    pool.pump();
    const std::size_t before = pool.commits;
    for (int g = 0; g < 500; ++g) pool.post(ann, wire::Gkill{"", 1, g});
    pool.pump();
    CHECK(pool.commits - before >= 2);
}

TEST_CASE("an import is read in slices: others are answered before it is, and what ends meanwhile is forgotten") {
    Pool pool({host("h1", 1)});
    const ConnId ann = pool.control("ann", "prog"), bob = pool.control("bob", "prog");
    Exported session;
    session.head.ident = "prog";
    session.head.state = "terminated";
    session.head.grains = 3000;
    for (int i = 0; i < 3000; ++i) {
        wire::ExportedGrain g;
        g.grain = i;
        g.spec = copying_grain("");
        g.spec.label = std::string(200, 'l');
        g.state = "ready";
        for (wire::ExportedStream *s : {&g.input, &g.out, &g.err, &g.checkpoint, &g.message}) s->whole = true;
        session.grains.push_back(g);
    }
    const std::string stream = stream_of(session);
    REQUIRE(stream.size() > 4 * 256 * 1024);
    upload(pool, ann, stream);
    const auto import = pool.post(ann, wire::ImportSession{1, false, stream.size(), crc32c(stream)});
    const auto query = pool.post(bob, wire::Query{});
    pool.pump();
    const auto place = [&](ConnId conn, std::uint64_t request) {
        const auto &sent = pool.outside->sent;
        const auto at = std::find_if(sent.begin(), sent.end(),
                                     [&](const Sent &s) { return s.conn == conn && s.request == request; });
        REQUIRE(at != sent.end());
        return at - sent.begin();
    };
    CHECK(place(bob, query) < place(ann, import));
    CHECK(std::holds_alternative<wire::Done>(pool.reply(ann, import)));
    pool.verify();
    // One that may not be made is refused before it is read; one whose connection ended is none.
    upload(pool, ann, stream);
    CHECK(pool.refusal(ann, wire::ImportSession{1, false, stream.size(), crc32c(stream)}) == Code::session_closed);
    upload(pool, ann, stream);
    pool.post(ann, wire::ImportSession{2, false, stream.size(), crc32c(stream)});
    pool.hang_up(ann);
    pool.pump();
    CHECK(pool.turn->state().session({"ann", 2}) == nullptr);
}

TEST_CASE("imports are decoded elsewhere: one of each user at a time, and what becomes of it concerns no other party") {
    Pool pool({host("h1", 1)});
    pool.outside->decodes_later = true;
    auto &away = pool.outside->to_decode;
    const ConnId ann = pool.control("ann", "prog"), bob = pool.control("bob", "prog");
    Exported session;
    session.head.ident = "prog", session.head.state = "terminated";
    const std::string stream = stream_of(session);
    const auto order = [&](ConnId conn, std::int32_t number) {
        upload(pool, conn, stream);
        const auto request = pool.post(conn, wire::ImportSession{number, false, stream.size(), crc32c(stream)});
        pool.pump();
        return request;
    };
    const auto first = order(ann, 1), second = order(ann, 2);
    REQUIRE(away.size() == 1);
    const auto of_ann = away.begin()->first;
    const auto third = order(bob, 1);
    REQUIRE(away.size() == 2);
    const auto of_bob = away.rbegin()->first;
    CHECK(pool.turn->next_wakeup() > pool.outside->clock);  // no party turns round in a circle meanwhile
    pool.turn->take_import(of_bob, wire::rows_of_import(away.at(of_bob)));
    pool.pump();
    CHECK(std::holds_alternative<wire::Done>(pool.reply(bob, third)));
    pool.turn->take_import(of_ann, fail(Code::invalid, "the process that decoded it was killed"));
    pool.turn->take_import(of_ann, fail(Code::invalid, "said twice"));
    pool.pump();
    CHECK(std::get<wire::ErrorReply>(pool.reply(ann, first)).text == about("process decoded killed"));
    REQUIRE(away.size() == 3);
    pool.turn->take_import(away.rbegin()->first, Result<std::string>(std::string("no rows")));
    pool.pump();
    CHECK(std::holds_alternative<wire::ErrorReply>(pool.reply(ann, second)));
    // Who leaves is forgotten, but what is away counts until it is back.
    order(ann, 3);
    const auto left = away.rbegin()->first;
    pool.hang_up(ann);
    pool.pump();
    const ConnId again = pool.open(turn::Door::user, "ann");
    pool.ask<wire::Welcome>(again, wire::Hello{wire::opening_form, ""});
    const std::size_t before = away.size();
    const auto fourth = order(again, 4);
    CHECK(away.size() == before);
    pool.turn->take_import(left, wire::rows_of_import(stream));
    pool.pump();
    REQUIRE(away.size() == before + 1);
    // And there are not so many that wait.
    for (std::size_t i = 1; i < limits::imports_waiting; ++i) order(again, static_cast<std::int32_t>(i) + 4);
    CHECK(std::get<wire::ErrorReply>(pool.reply(again, order(again, 99))).code ==
          static_cast<std::int32_t>(Code::limit));
    pool.turn->take_import(away.rbegin()->first, wire::rows_of_import(stream));
    pool.pump();
    CHECK(std::holds_alternative<wire::Done>(pool.reply(again, fourth)));
    pool.verify();
}

TEST_CASE("a line that comes again and again is written ten times, then once an hour with its number") {
    turn::RepeatedLines lines;
    Instant now{seconds(5000).ns};
    std::vector<std::string> written;
    const auto say = [&](const std::string &line) {
        if (const auto text = lines.to_write(line, now)) written.push_back(*text);
    };
    for (int i = 0; i < 300; ++i, now = now + seconds(12)) say("h9 is refused");  // an hour
    CHECK(written == std::vector<std::string>(10, "h9 is refused"));
    say("h8 is refused");
    for (int i = 0; i < 300; ++i, now = now + seconds(12)) say("h9 is refused");
    REQUIRE(written.size() == 12);
    CHECK(written[10] == "h8 is refused");
    CHECK(written[11] == "h9 is refused (and 290 times since the last such line)");
    now = now + seconds(3 * 3600);  // it is forgotten
    say("h8 is refused");
    say("h8 is refused");
    CHECK(written[13] == "h8 is refused");
}

TEST_CASE("a grain server that is refused and tries again fills no log") {
    Pool pool({host("h1", 1)});
    wire::FirstCall call;
    call.protocol = wire::opening_form;
    call.host = "h9";
    for (int i = 0; i < 50; ++i) {
        pool.post(pool.open(turn::Door::server, "dcs"), call);
        pool.pump();
        pool.outside->clock = pool.outside->clock + seconds(12);
    }
    const auto &lines = pool.outside->lines;
    const auto about_it = [](const std::string &line) {
        return line == about("grain server refused host h9 not host table");
    };
    CHECK(std::count_if(lines.begin(), lines.end(), about_it) == 10);
}
