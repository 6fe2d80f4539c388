// Contents in the core: fetched before a grain starts, put before its end is reported.
#include "content_bench.h"

using namespace bench;
using wire::FileRole;
using wire::Verdict;

TEST_CASE("files are placed before a grain starts, and only then") {
    ContentBench b;
    b.launch_with(id(), {data('a', 10)});
    REQUIRE(b.one<PlaceFiles>().id == id());
    REQUIRE(b.none<StartGrain>());
    b.in(FilesPlaced{id()});
    REQUIRE(b.one<StartGrain>().id == id());
    REQUIRE(b.none<PlaceFiles>());
}

TEST_CASE("what is missing is fetched piece by piece, one content after the other") {
    ContentBench b;
    b.launch_with(id(), {data('a', 1000), data('b', 2000)});
    b.clear();
    b.in(FilesMissing{id(), {data('a', 1000), data('b', 2000)}});
    b.piece(600, 1000);
    REQUIRE(b.sent<wire::WantContent>().empty());  // not before the disk has it
    b.write();
    b.piece(400, 1000);
    b.write();
    REQUIRE(b.none<PlaceFiles>());
    const auto next = b.sent<wire::WantContent>();
    REQUIRE(next.size() == 1);
    REQUIRE(next[0].digest == digest('b'));
    b.message(wire::ContentPiece{digest('b'), 2000, 0, std::string(2000, 'x'), 0, ""});
    b.write();
    REQUIRE(b.one<PlaceFiles>().id == id());
    REQUIRE(b.state.fetches.empty());
    b.in(FilesPlaced{id()});
    REQUIRE(b.one<StartGrain>().id == id());
}

TEST_CASE("two grains that want the same content cause one fetch") {
    ContentBench b;
    for (const int n : {1, 2}) {
        b.launch_with(id(n), {data('a', 10)});
        b.in(FilesMissing{id(n), {data('a', 10)}});
    }
    b.clear();
    b.message(wire::ContentPiece{digest('a'), 10, 0, "0123456789", 0, ""});
    b.write();
    REQUIRE(b.take<PlaceFiles>().size() == 2);
    REQUIRE(b.sent<wire::WantContent>().empty());
}

TEST_CASE("a fetch goes on where it was when the link comes back") {
    ContentBench b;
    b.launch_with(id(), {data('a', 10)});
    b.in(FilesMissing{id(), {data('a', 10)}});
    b.piece(4, 10);
    b.write();
    b.clear();
    b.in(LinkClosed{"gone"});
    b.pass(seconds(2));
    b.in(LinkOpened{});
    b.message(wire::Configure{9, 2, 1});
    const auto wants = b.sent<wire::WantContent>();
    REQUIRE(wants.size() == 1);
    REQUIRE(wants[0].offset == 4);
    b.message(wire::ContentPiece{digest('a'), 10, 0, "0123", 0, ""});  // of the question before
    REQUIRE(b.none<KeepPiece>());
    b.message(wire::ContentPiece{digest('a'), 10, 4, "456789", 0, ""});
    b.write();
    REQUIRE(b.one<PlaceFiles>().id == id());
}

TEST_CASE("a lost answer is asked for again") {
    ContentBench b;
    b.launch_with(id(), {data('a', 10)});
    b.in(FilesMissing{id(), {data('a', 10)}});
    b.clear();
    b.pass(seconds(300));
    REQUIRE_FALSE(b.sent<wire::WantContent>().empty());
}

TEST_CASE("a content that the scheduler has not is host trouble, told in words") {
    ContentBench b;
    b.launch_with(id(), {data('a', 10)});
    b.in(FilesMissing{id(), {data('a', 10)}});
    b.message(wire::ContentPiece{digest('a'), 0, 0, "", static_cast<int>(Code::not_found), "it rotted"});
    const auto results = b.sent<wire::LaunchResult>();
    REQUIRE(results.size() == 1);
    REQUIRE_FALSE(results[0].ok);
    REQUIRE(results[0].code != static_cast<int>(Code::not_found));  // that would be: no such program here
    REQUIRE(results[0].text.find("it rotted") != std::string::npos);
    REQUIRE(b.one<RemoveDir>().id == id());
    REQUIRE(b.one<DropPieces>().digest == digest('a'));
    REQUIRE(b.state.grains.empty());
}

TEST_CASE("a scheduler that cannot read a content is asked again, but not for ever") {
    ContentBench b;
    b.launch_with(id(), {data('a', 10)});
    b.in(FilesMissing{id(), {data('a', 10)}});
    int asked = 0;
    while (!b.state.grains.empty()) {
        REQUIRE(b.sent<wire::WantContent>().size() == 1);
        REQUIRE(++asked < 20);
        b.message(wire::ContentPiece{digest('a'), 0, 0, "", static_cast<int>(Code::io_error), "a bad block"});
        if (!b.state.grains.empty()) b.pass(seconds(2));
    }
    REQUIRE(asked > 1);
    const auto results = b.sent<wire::LaunchResult>();
    REQUIRE(results.size() == 1);
    REQUIRE(results[0].code == static_cast<int>(Code::io_error));
    REQUIRE(results[0].text ==
            "cannot get content " + wire::digest_text(digest('a')) + ": the scheduler says: a bad block");
}

TEST_CASE("a disk that is full while a content comes gives the grain back at once") {
    ContentBench b;
    b.launch_with(id(), {data('a', 10)});
    b.in(FilesMissing{id(), {data('a', 10)}});
    b.piece(10, 10);
    b.in(PieceUnkept{digest('a'), Code::no_space, "full"});
    const auto results = b.sent<wire::LaunchResult>();
    REQUIRE(results.size() == 1);
    REQUIRE(results[0].code == static_cast<int>(Code::no_space));
}

TEST_CASE("a content that comes damaged is fetched again, but not for ever") {
    ContentBench b;
    b.launch_with(id(), {data('a', 10)});
    b.in(FilesMissing{id(), {data('a', 10)}});
    int fetched = 0;
    while (b.sent<wire::LaunchResult>().empty() && fetched < 20) {
        b.piece(10, 10);
        const auto keep = b.one<KeepPiece>();
        REQUIRE(keep.offset == 0);
        ++fetched;
        b.in(PieceUnkept{digest('a'), Code::io_error, "content does not match its SHA-256"});
        if (!b.state.grains.empty()) b.pass(seconds(2));
    }
    REQUIRE(fetched > 1);
    REQUIRE(fetched < 20);
}

TEST_CASE("a piece that does not fit is not written") {
    ContentBench b;
    b.launch_with(id(), {data('a', 10)});
    b.in(FilesMissing{id(), {data('a', 10)}});
    b.message(wire::ContentPiece{digest('b'), 10, 0, "0123456789", 0, ""});  // not requested
    b.message(wire::ContentPiece{digest('a'), 10, 0, "0123456789x", 0, ""});
    REQUIRE(b.none<KeepPiece>());
}

TEST_CASE("a grain that goes while its files come takes the fetch along") {
    ContentBench b;
    b.launch_with(id(), {data('a', 10)});
    b.in(FilesMissing{id(), {data('a', 10)}});
    b.clear();
    const bool discarded = GENERATE(false, true);
    b.withdraw(id(), discarded, "no more");
    REQUIRE(b.one<RemoveDir>().id == id());
    REQUIRE(b.one<DropPieces>().digest == digest('a'));
    b.in(FilesPlaced{id()});  // too late
    b.message(wire::ContentPiece{digest('a'), 10, 0, "0123456789", 0, ""});
    REQUIRE(b.none<StartGrain>());
    REQUIRE(b.none<KeepPiece>());
}

TEST_CASE("a tentative grain is proved when all its files are there") {
    ContentBench b;
    b.launch_with(id(), {data('a', 10)}, true);
    REQUIRE(b.none<ProveGrain>());
    b.in(FilesPlaced{id()});
    REQUIRE(b.one<ProveGrain>().id == id());
}

TEST_CASE("an adopted grain whose files were on their way goes on with them") {
    ContentBench b;
    Adopted a;
    a.id = id();
    a.files = {data('a', 10)};
    a.to_place = true;
    b.in(a);
    REQUIRE(b.one<PlaceFiles>().id == id());
    REQUIRE(b.none<StartGrain>());
    b.in(FilesPlaced{id()});
    REQUIRE(b.one<StartGrain>().id == id());
}

TEST_CASE("contents that vanish again and again do not keep a host busy") {
    ContentBench b;
    b.launch_with(id(), {data('a', 1)});
    int rounds = 0;
    while (!b.state.grains.empty() && ++rounds < 20) {
        REQUIRE(b.one<PlaceFiles>().id == id());
        b.in(FilesMissing{id(), {data('a', 1)}});
        if (b.state.grains.empty()) break;
        b.piece(1, 1);
        b.write();
    }
    REQUIRE(rounds > 1);
    REQUIRE(rounds < 20);
    REQUIRE(b.sent<wire::LaunchResult>().size() == 1);
}

TEST_CASE("outputs are kept, then put, then reported") {
    ContentBench b;
    b.run_with_outputs(id(), {output("o"), output("p")});
    b.end(id());
    REQUIRE(b.one<KeepOutputs>().id == id());
    REQUIRE(b.none<SendReport>());
    b.in(OutputsKept{id(), {made_file("o", 'o', 600), output("p")}, "p is a symbolic link"});
    REQUIRE(b.one<SendPiece>().offset == 0);
    b.taken('o', 400);
    REQUIRE(b.one<SendPiece>().offset == 400);
    REQUIRE(b.none<SendReport>());
    b.taken('o', 600);
    const auto report = b.one<SendReport>();
    REQUIRE(report.ended);
    REQUIRE_FALSE(report.innocent);
    REQUIRE(report.files == std::vector<wire::GrainFile>{made_file("o", 'o', 600), output("p")});
    REQUIRE(report.reason == "p is a symbolic link");
}

TEST_CASE("a failure brings back what there is, an innocent end nothing") {
    ContentBench b;
    b.run_with_outputs(id(), {output("o")});
    SECTION("failure") {
        b.end(id(), 3);
        REQUIRE(b.one<KeepOutputs>().id == id());
        b.in(OutputsKept{id(), {made_file("o", 'o', 0)}, ""});
        REQUIRE(b.one<SendPiece>().total == 0);
        b.taken('o', 0);
        REQUIRE(b.one<SendReport>().files.size() == 1);
    }
    SECTION("disk full on this host") {
        b.end(id(), 74);
        REQUIRE(b.none<KeepOutputs>());
        const auto report = b.one<SendReport>();
        REQUIRE(report.innocent);
        REQUIRE(report.files.empty());
    }
}

TEST_CASE("a put begins again on another connection") {
    ContentBench b;
    b.run_with_outputs(id(), {output("o")});
    b.end(id());
    b.in(OutputsKept{id(), {made_file("o", 'o', 600)}, ""});
    b.taken('o', 400);
    b.clear();
    b.in(LinkClosed{"gone"});
    b.pass(seconds(2));
    b.in(LinkOpened{});
    b.message(wire::Configure{9, 2, 1});
    REQUIRE(b.one<SendPiece>().offset == 0);
    b.taken('o', 600);  // it has it
    REQUIRE(b.one<SendReport>().ended);
}

TEST_CASE("a report that is to wait puts its contents again") {
    ContentBench b;
    b.run_with_outputs(id(), {output("o")});
    b.end(id());
    b.in(OutputsKept{id(), {made_file("o", 'o', 600)}, ""});
    b.taken('o', 600);
    b.clear();
    b.ack(id(), 0, false, Verdict::later);
    REQUIRE(b.one<SendPiece>().offset == 0);
    b.taken('o', 600);
    REQUIRE(b.none<SendReport>());
    b.pass(seconds(20));
    REQUIRE(b.one<SendReport>().ended);
}

TEST_CASE("a scheduler without room for an output is asked again later") {
    ContentBench b;
    b.run_with_outputs(id(), {output("o")});
    b.end(id());
    b.in(OutputsKept{id(), {made_file("o", 'o', 600)}, ""});
    b.clear();
    b.taken('o', 0, Code::no_space);
    REQUIRE(b.none<SendPiece>());
    b.pass(seconds(30));
    REQUIRE_FALSE(b.none<SendPiece>());
}

TEST_CASE("outputs that cannot be kept end innocently, in the end") {
    ContentBench b;
    b.run_with_outputs(id(), {output("o")});
    b.end(id());
    int tries = 0;
    while (!b.state.grains.empty() && ++tries < 20) {
        REQUIRE(b.one<KeepOutputs>().id == id());
        b.in(OutputsUnkept{id(), Code::no_space, "full"});
        if (!b.state.grains.empty()) b.pass(seconds(10));
    }
    REQUIRE(tries > 1);
    REQUIRE(tries < 20);
    REQUIRE(b.one<RemoveDir>().id == id());  // not held any more: the scheduler starts it elsewhere
}

TEST_CASE("outputs that were kept and cannot be read are kept again, but not for ever") {
    ContentBench b;
    b.run_with_outputs(id(), {output("o")});
    b.end(id());
    int tries = 0;
    std::string log;
    while (!b.state.grains.empty()) {
        REQUIRE(++tries < 20);
        REQUIRE(b.one<KeepOutputs>().id == id());
        b.in(OutputsKept{id(), {made_file("o", 'o', 600)}, ""});
        REQUIRE(b.one<SendPiece>().offset == 0);
        b.in(PieceUnreadable{digest('o'), "a bad block"});
        for (const Log &line : b.take<Log>()) log += line.text + "\n";
        if (!b.state.grains.empty()) b.pass(seconds(10));
    }
    REQUIRE(tries > 1);
    REQUIRE(log.find("output files cannot be kept: a bad block") != std::string::npos);
    REQUIRE(b.one<RemoveDir>().id == id());  // the scheduler starts it elsewhere
    REQUIRE(b.state.puts.empty());
    REQUIRE(b.none<SendReport>());
}

TEST_CASE("outputs that an earlier server kept go as they were kept") {
    ContentBench b;
    Adopted a;
    a.id = id();
    a.started = true;
    a.files = {output("o")};
    a.exit = ExitFacts{true, 0, 0, false, "", {}};
    const bool damaged = GENERATE(false, true);
    a.outputs = std::vector<wire::GrainFile>{made_file("o", 'o', 600)};
    b.in(a);
    b.look(id(), dir({{1, 5}}));
    REQUIRE(b.none<KeepOutputs>());
    REQUIRE(b.one<SendPiece>().digest == digest('o'));
    if (damaged) {
        b.in(PieceUnreadable{digest('o'), "gone"});
        b.pass(seconds(10));
        REQUIRE(b.one<KeepOutputs>().id == id());
        return;
    }
    b.taken('o', 600);
    REQUIRE(b.one<SendReport>().files.size() == 1);
}

TEST_CASE("users take turns with what is fetched, and the smallest of a user goes first") {
    ContentBench b;
    const auto grain_of = [](const std::string &user, int number) {
        GrainId g = id(number);
        g.key.session.user = user;
        return g;
    };
    const GrainId eve = grain_of("eve", 1), ann = grain_of("ann", 2);
    const std::vector<wire::GrainFile> hers = {data('a', 900), data('b', 700), data('c', 800)};
    b.launch_with(eve, hers);
    b.clear();
    b.in(FilesMissing{eve, hers});
    b.launch_with(ann, {data('d', 5000)});
    b.in(FilesMissing{ann, {data('d', 5000)}});
    std::string order;
    for (int i = 0; i < 4; ++i) {
        const auto wants = b.sent<wire::WantContent>();
        REQUIRE(wants.size() == 1);
        order += wants[0].digest[0];
        const std::uint64_t size = b.state.fetches.at(wants[0].digest).total;
        b.message(wire::ContentPiece{wants[0].digest, size, 0, std::string(size, 'x'), 0, ""});
        b.write();
    }
    REQUIRE(order == "bdca");
    REQUIRE(b.state.begun_for.size() <= 1);
}
