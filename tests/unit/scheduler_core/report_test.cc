// Reports: sequence numbers, lengths, what goes to which file.
#include "pool.h"

using namespace dcs;
using namespace dcs::core;

namespace {
struct ReportStage {
    Pool pool{2};
    Program find = pool.begin("ann", "find");
    ReportStage() {
        pool.open(find, 1);
        pool.gexec(find, 1, 0);
    }
    wire::GrainReport part(std::uint32_t first, std::uint32_t last) const {
        wire::GrainReport r = pool.report("ann/1:0");
        r.first_seq = first;
        r.last_seq = last;
        r.has_checkpoint = true;
        r.checkpoint = "state";
        r.out = "xyz";
        return r;
    }
    std::vector<std::string> writes() const {
        std::vector<std::string> found;
        for (const Change &c : pool.changes)
            if (std::holds_alternative<WriteFile>(c)) found.push_back(describe(pool.state, c));
        return found;
    }
};
}  // namespace

TEST_CASE("increments follow each other without gap and without repetition") {
    ReportStage s;
    CHECK(s.pool.send("h1", s.part(1, 2)) == Lines{"h1: ack ann/1:0 inc 1 last 2 taken"});
    CHECK(s.pool.at("ann/1:0").course->out_length == 3);
    SECTION("the next one") {
        CHECK(s.pool.send("h1", s.part(3, 3)) == Lines{"h1: ack ann/1:0 inc 1 last 3 taken"});
        CHECK(s.pool.at("ann/1:0").course->out_length == 6);
    }
    SECTION("the same again: had already") {
        CHECK(s.pool.send("h1", s.part(1, 2)) == Lines{"h1: ack ann/1:0 inc 1 last 2 have_it"});
        CHECK(s.pool.send("h1", s.part(2, 2)) == Lines{"h1: ack ann/1:0 inc 1 last 2 have_it"});
        CHECK(s.pool.at("ann/1:0").course->out_length == 3);
        CHECK(s.writes().empty());
    }
    SECTION("an overlap: the server sends the rest") {
        CHECK(s.pool.send("h1", s.part(2, 4)) == Lines{"h1: ack ann/1:0 inc 1 last 2 have_it"});
        CHECK(s.pool.at("ann/1:0").course->sequence == 2);
        CHECK(s.writes().empty());
        CHECK(s.pool.send("h1", s.part(3, 4)) == Lines{"h1: ack ann/1:0 inc 1 last 4 taken"});
    }
    SECTION("an overlap with the end: not ended before the rest came") {
        wire::GrainReport r = s.part(2, 3);
        r.ended = true;
        r.has_checkpoint = false;
        CHECK(s.pool.send("h1", r) == Lines{"h1: ack ann/1:0 inc 1 last 2 have_it"});
        CHECK(s.pool.status("ann/1:0") == "running");
    }
    SECTION("a gap: restart from the checkpoint, innocent") {
        CHECK(s.pool.send("h1", s.part(4, 4)) ==
              Lines{"h1: withdraw ann/1:0 inc 1 discard because increments 3 to 3 are missing",
                    "h1: launch ann/1:0 inc 2 checkpoint 5 next 3"});
        CHECK(s.pool.at("ann/1:0").course->failures == 0);
        CHECK(s.pool.at("ann/1:0").course->out_length == 3);
        CHECK(s.writes().empty());
        wire::GrainReport old = s.part(3, 3);
        old.incarnation = 1;
        CHECK(s.pool.send("h1", old) == Lines{"h1: ack ann/1:0 inc 1 last 3 stale"});
    }
}

TEST_CASE("reports that cannot be true lead to a restart, never to wrong output") {
    ReportStage s;
    wire::GrainReport r = s.part(1, 1);
    std::string why;
    SECTION("input position beyond the input") {
        r.input_position = 101;
        why = "a checkpoint at input position 101";
    }
    SECTION("output without a number") {
        r.last_seq = 0;
        why = "output without a sequence number";
    }
    SECTION("output without its checkpoint") {
        r.has_checkpoint = false;
        why = "output without the checkpoint that it belongs to";
    }
    SECTION("checkpoint without a number") {
        r.last_seq = 0;
        r.out.clear();
        why = "a checkpoint without a sequence number";
    }
    CHECK(s.pool.send("h1", r) ==
          Lines{"h1: withdraw ann/1:0 inc 1 discard because " + why, "h1: launch ann/1:0 inc 2 next 1"});
    CHECK(s.pool.at("ann/1:0").course->out_length == 0);
    CHECK(s.writes().empty());
}

TEST_CASE("an input position never moves back") {
    ReportStage s;
    wire::GrainReport r = s.part(1, 1);
    r.input_position = 60;
    s.pool.send("h1", r);
    r = s.part(2, 2);
    r.input_position = 59;
    CHECK(s.pool.send("h1", r).back() == "h1: launch ann/1:0 inc 2 checkpoint 5 input_from 60 next 2");
}

TEST_CASE("nothing new writes nothing, but usage and contact are known") {
    ReportStage s;
    wire::GrainReport r = s.pool.report("ann/1:0");
    r.usage.user_us = 5000;
    r.usage.system_us = -7;
    CHECK(s.pool.send("h1", r) == Lines{"h1: ack ann/1:0 inc 1 taken"});
    CHECK_FALSE(s.pool.touched_disk());
    CHECK(s.pool.at("ann/1:0").course->current.user_us == 5000);
    CHECK(s.pool.at("ann/1:0").course->current.system_us == 0);
}

TEST_CASE("what the backup has of a forgiven lease is recorded, also where it brings nothing") {
    Pool pool(1);
    const Program find = pool.begin("ann", "find");
    pool.open(find, 1);
    pool.gexec(find, 1, 0);
    const wire::GrainReport alive = pool.report("ann/1:0");
    pool.wait(seconds(100));
    REQUIRE(pool.status("ann/1:0") == "ready");
    REQUIRE(pool.at("ann/1:0").lessee == HostId{0});
    const std::int64_t before = pool.at("ann/1:0").as<Ready>().queue_position;
    pool.feed(BackupCame{ConnId{77}, 5, {}});
    pool.feed(ReportHandedOver{ConnId{77}, "h1", 1, std::make_shared<const wire::GrainReport>(alive)});
    CHECK(pool.status("ann/1:0") == "ready");
    CHECK(pool.at("ann/1:0").as<Ready>().queue_position != before);
    for (const Change &change : pool.changes)
        if (const auto *set = std::get_if<SetGrain>(&change)) CHECK_FALSE(set->volatile_only);
}

TEST_CASE("what the backup has of a removed grain counts for no later one of its number, however late it comes") {
    Pool pool(1);
    const Program find = pool.begin("ann", "find");
    pool.open(find, 1);
    pool.gexec(find, 1, 0);
    pool.launched("h1", "ann/1:0");
    wire::GrainReport old = pool.end_report("ann/1:0");
    old.out = "of the first";
    pool.hang_up("h1");
    pool.close(find, 1);
    pool.call(find, wire::CleanSession{"", 1});
    auto call = std::make_shared<wire::FirstCall>();  // it holds nothing: the backup has the end
    call->host = "h1";
    pool.feed(ServerFirstCall{ConnId{990}, call, {}, {5, 1}, false, wire::newest_form});
    pool.wait(backup_patience + seconds(1));
    pool.call_in("h1");
    const Program again = pool.begin("ann", "find");
    pool.open(again, 1);
    pool.call(again, Pool::grain(1, 0, 0, "another program"));
    REQUIRE(pool.status("ann/1:0") == "running");
    CHECK(pool.at("ann/1:0").course->skipped == 1);
    pool.feed(BackupCame{ConnId{77}, 5, {}});
    pool.feed(ReportHandedOver{ConnId{77}, "h1", 1, std::make_shared<const wire::GrainReport>(old)});
    CHECK(pool.status("ann/1:0") == "running");
}

TEST_CASE("a checkpoint replaces, increments append, at their recorded lengths") {
    ReportStage s;
    wire::GrainReport r = s.part(1, 1);
    r.message = "one";
    s.pool.send("h1", r);
    CHECK(s.writes() == Lines{"write ann/1:0 grain_checkpoint bytes 5", "write ann/1:0 grain_message bytes 3",
                              "write ann/1:0 grain_out bytes 3"});
    r = s.part(2, 2);
    r.err = "oops";
    s.pool.send("h1", r);  // without a message the old one goes
    CHECK(s.writes() == Lines{"write ann/1:0 grain_checkpoint bytes 5", "write ann/1:0 grain_message bytes 0",
                              "write ann/1:0 grain_out at 3 bytes 3", "write ann/1:0 grain_err bytes 4"});
    r = s.part(3, 3);
    r.has_checkpoint = false;
    r.ended = true;
    s.pool.send("h1", r);
    CHECK(s.writes() == Lines{"write ann/1:0 grain_out at 6 bytes 3"});
    CHECK(s.pool.at("ann/1:0").course->out_length == 9);
    CHECK(s.pool.at("ann/1:0").course->err_length == 4);
}

TEST_CASE("a message is cut at its limit") {
    ReportStage s;
    wire::GrainReport r = s.part(1, 1);
    r.message = std::string(limits::message_bytes + 1, 'm');
    s.pool.send("h1", r);
    CHECK(s.pool.at("ann/1:0").course->message_length == limits::message_bytes);
}

TEST_CASE("results of small grains share the session's file, out then err") {
    ReportStage s;
    s.pool.gexec(s.find, 1, 1);
    wire::GrainReport r = s.pool.end_report("ann/1:1");
    r.err = "no";
    s.pool.send("h2", r);
    CHECK(s.writes() == Lines{"write ann/1:1 session_results bytes 6", "write ann/1:1 session_results at 6 bytes 2"});
    r = s.pool.end_report("ann/1:0");
    s.pool.send("h1", r);
    CHECK(s.writes() == Lines{"write ann/1:0 session_results at 8 bytes 6"});
    CHECK(s.pool.at("ann/1:0").course->result_offset == 8);
    CHECK(s.pool.session("ann/1").info.results_length == 14);
    CHECK_FALSE(s.pool.at("ann/1:0").own_tree);
}

TEST_CASE("a big result has files of its own") {
    ReportStage s;
    wire::GrainReport r = s.pool.end_report("ann/1:0");
    r.out = std::string(32 * 1024, 'o');
    r.err = "e";
    s.pool.send("h1", r);
    CHECK(s.writes() == Lines{"write ann/1:0 grain_out bytes 32768", "write ann/1:0 grain_err bytes 1"});
    CHECK(s.pool.at("ann/1:0").own_tree);
}

TEST_CASE("payloads are the report's own bytes") {
    ReportStage s;
    wire::GrainReport r = s.pool.end_report("ann/1:0");
    s.pool.send("h1", r);
    for (const Change &c : s.pool.changes)
        if (const auto *w = std::get_if<WriteFile>(&c)) CHECK(*w->bytes.bytes == "result");
}

TEST_CASE("what an incarnation used never becomes less") {
    ReportStage s;
    wire::GrainReport r = s.part(1, 1);
    r.usage.user_us = 5000;
    s.pool.send("h1", r);
    r = s.part(2, 2);  // its launcher died: it ended, and no party saw what it had used
    r.has_checkpoint = false;
    r.ended = r.innocent = true;
    s.pool.send("h1", r);
    CHECK(s.pool.at("ann/1:0").course->past->user_us == 5000);  // it runs again elsewhere
}

TEST_CASE("usage adds up over incarnations") {
    ReportStage s;
    wire::GrainReport r = s.part(1, 1);
    r.usage = {1000, 10, 700, 1, 2, 3, 4};
    s.pool.send("h1", r);
    s.pool.end("h1", "ann/1:0", 0, 15, true);  // its own usage: 1000 us, goes to h2
    r = s.pool.end_report("ann/1:0");
    r.usage = {500, 5, 600, 1, 1, 1, 1};
    s.pool.send("h2", r);
    s.pool.gwait(s.find, 1, 0);
    const auto *result = std::get_if<ReplyResult>(&s.pool.effects.at(0));
    REQUIRE(result);
    CHECK(result->head.usage.user_us == 1500);
    CHECK(result->head.usage.max_rss_kb == 700);
}

TEST_CASE("a last report may end without any increment") {
    ReportStage s;
    s.pool.send("h1", s.part(1, 1));
    wire::GrainReport r = s.pool.report("ann/1:0");
    r.ended = true;
    CHECK(s.pool.send("h1", r) == Lines{"h1: ack ann/1:0 inc 1 last 1 ended taken"});
    CHECK(s.pool.status("ann/1:0") == "finished");
    CHECK(s.pool.at("ann/1:0").course->out_length == 3);
}

TEST_CASE("a limit that ended a grain is the last line of its standard error") {
    Pool pool(1);
    const Program find = pool.begin("ann", "find");
    pool.open(find, 1);
    const auto err_of = [&](const std::string &grain, wire::GrainReport r) {
        r.limit = true;
        r.reason = "the grain used more than its 64 MB of memory; submit it with more --memory";
        pool.send("h1", r);
        std::string err;
        for (const Change &c : pool.changes)
            if (const auto *w = std::get_if<WriteFile>(&c); w && w->file == File::session_results)
                err += *w->bytes.bytes;
        CHECK(pool.status(grain) == "finished");
        return err;
    };
    const std::string line =
        "dcs: ended on h1: the grain used more than its 64 MB of memory; submit it with more "
        "--memory; it is not tried again, as it would meet the same limit\n";
    pool.gexec(find, 1, 0);
    CHECK(err_of("ann/1:0", pool.end_report("ann/1:0", 0, 9)) == "result" + line);
    CHECK(pool.at("ann/1:0").course->err_length == line.size());
    pool.gexec(find, 1, 1);
    wire::GrainReport r = pool.end_report("ann/1:1", 0, 9);
    r.err = "half a line";
    CHECK(err_of("ann/1:1", r) == "resulthalf a line\n" + line);
    CHECK(pool.at("ann/1:1").course->err_length == r.err.size() + 1 + line.size());
    pool.gexec(find, 1, 2);  // without any increment
    r = pool.end_report("ann/1:2", 0, 9);
    r.last_seq = r.first_seq - 1;
    r.out.clear();
    CHECK(err_of("ann/1:2", r) == line);
}
