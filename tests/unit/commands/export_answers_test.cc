// Exports and imports against a scheduler that does not keep to the order of things.
#include <atomic>
#include <cstdlib>
#include <fstream>

#include <sys/stat.h>
#include <unistd.h>

#include "command_bench.h"
#include "commands/dcs/session/export_writer.h"
#include "pki/digest.h"
#include "support/scratch.h"

using namespace dcs;
using namespace dcs::test;
using Reply = CommandBench::Reply;

namespace {

using test::Folder;

// Grain 1 runs: its output has to be fetched, and it may have gone on meanwhile.
wire::ExportReply page(std::uint32_t sequence) {
    wire::ExportReply reply;
    reply.head.state = "active";
    reply.head.session = 1;
    reply.head.grains = 1;
    wire::ExportedGrain grain;
    grain.grain = 1;
    grain.state = "running";
    grain.sequence = sequence;
    grain.out.length = 3;
    reply.grains.push_back(grain);
    return reply;
}

// Answers the pages of an export in turn.
template <class Page> void pages(CommandBench &bench, Page next) {
    bench.answer([next](const wire::AnyMessage &m) {
        if (const auto *fetch = std::get_if<wire::Fetch>(&m))
            return Reply(wire::Piece{3, fetch->offset == 0 ? "abc" : ""});
        const auto *ask = std::get_if<wire::ExportPage>(&m);
        return ask != nullptr ? Reply(next(*ask)) : Reply();
    });
}

// A ready grain that needs a file of the library.
wire::GrainFile write_one_file(const std::string &directory, const std::string &content) {
    wire::ExportedGrain grain;
    grain.grain = 1;
    grain.state = "ready";
    grain.queued = true;
    grain.spec.argv = {"/bin/cat", "table"};
    const wire::GrainFile file{wire::FileRole::data, "table", pki::sha256_text(content), content.size(), ""};
    grain.spec.files = {file};
    auto writer = commands::ExportWriter::create(directory, {});
    REQUIRE(writer);
    wire::GrainLine line;
    line.grain = grain;
    REQUIRE((*writer)->add(line));
    REQUIRE((*writer)->finish({own_name(), 3, "prog", "terminated", 0, 0, 0, 1}));
    return file;
}

}  // namespace

TEST_CASE("grains that do not hold still for an export") {
    CommandBench bench;
    Folder f;
    const std::vector<std::string> words = {"session", "export", "1", f.at("e")};
    pages(bench, [](const wire::ExportPage &ask) {
        wire::ExportReply reply = page(1);
        if (ask.most == 1) reply.grains.clear();
        return reply;
    });
    check(bench.dcs(words), 3, "dcs: session 1 was not exported: grain 1 was removed while it was exported\n");
    std::atomic<std::uint32_t> sequence{0};
    pages(bench, [&](const wire::ExportPage &) { return page(++sequence); });
    check(bench.dcs(words), 1, "dcs: session 1 was not exported: grain 1 changes faster than it can be exported\n");
    CHECK(sequence == 21);
    pages(bench, [](const wire::ExportPage &) {
        wire::ExportReply reply = page(1);
        reply.grains.clear();
        reply.more = true;
        return reply;
    });
    check(bench.dcs(words), 1, "dcs: session 1 was not exported: the scheduler repeats a page of grains\n");
    CHECK(::access(f.at("e").c_str(), F_OK) != 0);
    // One change, and then the same twice, is well.
    sequence = 0;
    pages(bench, [&](const wire::ExportPage &) { return page(std::min(2u, ++sequence)); });
    CHECK(bench.dcs(words).exit == 0);
    CHECK(sequence == 3);
}

TEST_CASE("contents that an import would need") {
    CommandBench bench;
    Folder f;
    const wire::GrainFile file = write_one_file(f.at("e"), "a table");
    const auto misses = [&](const std::string &digest) {
        bench.answer([=](const wire::AnyMessage &m) {
            return std::holds_alternative<wire::AskContents>(m) ? Reply(wire::MissingContents{{digest}}) : Reply();
        });
    };
    const std::vector<std::string> words = {"session", "import", f.at("e")};
    const std::string what = "dcs: " + f.at("e") + " was not imported: ", name = commands::content_file(file.digest);
    misses(pki::sha256_text("another one"));
    check(bench.dcs(words), 1, what + "the scheduler requests a content that was not offered\n");
    misses(file.digest);
    check(bench.dcs(words), 1,
          what + "the scheduler does not have " + to_text(file) + ", and there is no files/" + name +
              ": add that file, or submit a grain with it first\n");
    CHECK(bench.fake.all<wire::ImportPiece>().empty());
    REQUIRE(std::system(("mkdir -p " + f.at("e/files")).c_str()) == 0);
    REQUIRE(::mkfifo(f.at("e/files/" + name).c_str(), 0600) == 0);  // no party waits for what comes out of it
    check(bench.dcs(words), 1, what + "files/" + name + " is not an ordinary file\n");
    REQUIRE(::rename(f.at("e/files/" + name).c_str(), f.at("e/files/other").c_str()) == 0);
    REQUIRE(::symlink("other", f.at("e/files/" + name).c_str()) == 0);
    check(bench.dcs(words), 1, what + "files/" + name + " is a symbolic link: replace it by the file itself\n");
    CHECK(bench.fake.all<wire::PutContent>().empty());
    REQUIRE(::unlink(f.at("e/files/" + name).c_str()) == 0);
    std::ofstream(f.at("e/files/" + name)) << "a table";
    check(bench.dcs(words), 0, "session 3 imported, 1 grain; its control program prog can reopen it\n");
    const auto put = bench.fake.all<wire::PutContent>();
    REQUIRE(put.size() == 1);
    CHECK(put[0].second.bytes == "a table");
}
