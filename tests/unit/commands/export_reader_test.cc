// Exports that a hand or an accident has broken: each is refused with file, line and reason.
#include "commands/dcs/session/export_reader.h"

#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "commands/dcs/session/export_writer.h"
#include "support/about.h"
#include "support/scratch.h"
#include "wire/message.h"

using namespace dcs;
using namespace dcs::commands;

namespace {

using test::Folder;

wire::ExportedGrain grain(int number, const std::string &state) {
    wire::ExportedGrain g;
    g.grain = number;
    g.spec.argv = {"/usr/bin/wc", "-l", "\xff\xfe"};
    g.spec.env = {"A=1"};
    g.state = state;
    g.usage.user_us = 5;
    g.host = "h1";
    g.nogo = {"h2"};
    return g;
}

// Four grains: 1 finished with a binary output, 2 ready with a checkpoint, 5 killed, 6 ready.
void write_export(const std::string &directory, ExportStyle style = {}) {
    auto writer = ExportWriter::create(directory, style);
    INFO((writer ? "" : writer.status().text));
    REQUIRE(writer);
    const auto add = [&](wire::ExportedGrain g, const std::string &input, const std::string &out,
                         const std::string &checkpoint) {
        wire::GrainLine line;
        const std::string n = std::to_string(g.grain);
        line.input = *(*writer)->keep(n + ".input", input);
        line.out = *(*writer)->keep(n + ".out", out);
        line.checkpoint = *(*writer)->keep(n + ".checkpoint", checkpoint);
        line.grain = std::move(g);
        REQUIRE((*writer)->add(line));
    };
    wire::ExportedGrain one = grain(1, "finished"), two = grain(2, "ready"), six = grain(6, "ready");
    one.result_index = 0;
    two.queued = six.queued = true;
    two.queue = 7, six.queue = -3;
    two.input_position = 4;
    add(one, "first\n", std::string("\0\1\2binary", 9), "");
    add(two, "one two", "so far", std::string(5000, 'c'));
    add(grain(5, "killed"), "", "", "");
    add(six, "\ttext\n", "", "");
    REQUIRE((*writer)->finish({"ann", 3, "prog", "terminated", 1, 0, 1, 4}));
}

std::string wrong_with(const std::string &directory, std::uint64_t most = limits::import_bytes) {
    auto session = read_export(directory, most);
    return session ? "nothing" : session.status().text;
}

struct Broken {
    const char *expected;
    std::function<void(const Folder &)> damage;
};

// Replaces a text in one of the files.
std::function<void(const Folder &)> edit(const char *file, const char *from, const char *to) {
    return [=](const Folder &f) { f.edit("e/" + std::string(file), from, to); };
}
std::function<void(const Folder &)> line(const char *from, const char *to) { return edit("grains", from, to); }
std::function<void(const Folder &)> head(const char *from, const char *to) { return edit("session", from, to); }

const std::vector<Broken> broken_exports = {
    {"session such file", [](const Folder &f) { ::unlink(f.at("e/session").c_str()); }},
    {"grains: No such file or directory", [](const Folder &f) { ::unlink(f.at("e/grains").c_str()); }},
    {"session:1 \"dcs 1\"", head("export 1", "export 2")},
    {"session:2: unknown key \"owner\"", head("user:", "owner:")},
    {"session:9 \"number\" missing", head("number: 3\n", "\n")},
    {"session:3 \"number\" 2147483647", head("number: 3", "number: -3")},
    {"session:3: \"number\" must be a number", head("number: 3", "number: 3x")},
    {"session:4 \"key value\"", head("ident: prog", "prog")},
    {"session:5 \"ident\" twice", head("ident: prog\n", "ident: prog\nident: prog\n")},
    {"session:5 \"state\" terminated", head("terminated", "closed")},
    {"session:7 results acknowledged", head("acknowledged: 0", "acknowledged: 2")},
    {"session:8 results handed", head("handed out: 1", "handed out: 5")},
    {"session \"ident\" not", head("prog", "pr og")},
    {"session \"grains\" missing", head("grains: 4", "grains: 5")},
    {"session \"results\" exceeds", head("results: 1", "results: 65601")},
    {"grains:1 \"result\" 0",
     [](const Folder &f) {
         f.edit("e/session", "results: 1", "results: 0");
         f.edit("e/session", "out: 1", "out: 0");
     }},
    {"grains:1 JSON 8", line("{\"grain\":1", "\"grain\":1}")},
    {"grains:2: bad JSON at byte ", line("\"state\":\"ready\",", "\"state\":\"ready\"")},
    {"grains:4: bad JSON at byte ",
     [](const Folder &f) {
         const std::string text = f.read("e/grains");
         f.write("e/grains", text.substr(0, text.size() - 9));
     }},
    {"grains:1 line object", line("{\"grain\":1,\"state", "[]\n{\"grain\":1,\"state")},
    {"grains:2: unknown key \"colour\"", line("\"grain\":2,", "\"grain\":2,\"colour\":\"red\",")},
    {"grains:2 \"state\" missing", line("\"grain\":2,\"state\":\"ready\",", "\"grain\":2,")},
    {"grains:2 \"grain\" string", line("\"grain\":2", "\"grain\":\"2\"")},
    {"grains:2 \"grain\" number number", line("\"grain\":2", "\"grain\":2.5")},
    {"grains:2 \"grain\" 2147483647", line("\"grain\":2", "\"grain\":2147483648")},
    {"grains:2 \"state\" finished", line("\"ready\"", "\"waiting\"")},
    {"grains:1 \"argv\" strings", line("[\"/usr/bin/wc\",\"-l\",{\"hex\":\"fffe\"}]", "\"wc -l\"")},
    {"grains:1 \"argv\" {\"hex\"", line("\"-l\"", "7")},
    {"grains:1 \"argv\" not", line("fffe", "fff")},
    {"grains:1 \"argv\" no", line("[\"/usr/bin/wc\",\"-l\",{\"hex\":\"fffe\"}]", "[]")},
    {"grains:1 \"env\" NAME=value", line("A=1", "A")},
    {"grains:1 \"urgent\" number", line("\"urgent\":false", "\"urgent\":0")},
    {"grains:1 0 255", line("\"attempts\":3", "\"attempts\":0")},
    {"grains:1 \"class\" 4294967295", line("\"class\":0", "\"class\":-1")},
    {"grains:2 \"failures\" no",
     [](const Folder &f) {
         std::string text = f.read("e/grains");
         text.replace(text.find("\"failures\":0", text.find("\"grain\":2")), 12, "\"failures\":3");
         f.write("e/grains", text);
     }},
    {"grains:1 \"usage\" \"user_us\"", line("\"user_us\":5", "\"user_us\":-5")},
    {"grains:1 \"usage\" \"system_us\"", line("\"system_us\":0,", "")},
    {"grains:1 \"result\" missing", line("\"result\":0", "\"result\":null")},
    {"grains:2 \"result\" grain", line("\"queue\":7,\"result\":null", "\"queue\":7,\"result\":1")},
    {"grains:3 \"queue\" killed",
     [](const Folder &f) {
         std::string text = f.read("e/grains");
         text.replace(text.find("\"queue\":null", text.find("\"grain\":5")), 12, "\"queue\":4");
         f.write("e/grains", text);
     }},
    {"grains:2 1 twice", line("\"grain\":2", "\"grain\":1")},
    {"grains:3 0 ascending", line("\"grain\":5", "\"grain\":0")},
    {"grains:4 \"queue\" 7", line("\"queue\":-3", "\"queue\":7")},
    {"grains:3 \"result\" 0",
     [](const Folder &f) {
         std::string text = f.read("e/grains");
         const std::size_t at = text.find("\"grain\":5");
         text.replace(text.find("killed", at), 6, "finished");
         text.replace(text.find("\"result\":null", at), 13, "\"result\":0");
         f.write("e/grains", text);
     }},
    {"grains:2 \"input_position\" 7", line("\"input_position\":4", "\"input_position\":8")},
    {"grains:2 \"nogo\" strings",
     [](const Folder &f) {
         std::string text = f.read("e/grains");
         text.replace(text.find("[\"h2\"]", text.find("\"grain\":2")), 6, "\"h2\"");
         f.write("e/grains", text);
     }},
    {"grains:1 \"nogo\" twice", line("[\"h2\"]", "[\"h2\",\"h2\"]")},
    {"grains:1 \"host\" not", line("\"host\":\"h1\"", "\"host\":\"a/b\"")},
    {"grains:2 \"input\" {\"file\":...}", line("\"input\":\"one two\"", "\"input\":null")},
    {"grains:1 files/1.out such file", [](const Folder &f) { ::unlink(f.at("e/files/1.out").c_str()); }},
    {"grains:1 files/1.out 8", [](const Folder &f) { f.write("e/files/1.out", "12345678"); }},
    {"grains:1 files/1.out \"crc32c\"", [](const Folder &f) { f.write("e/files/1.out", "123456789"); }},
    {"grains:1 \"/etc/passwd\" files/", line("files/1.out", "/etc/passwd")},
    {"grains:1 \"files/../grains\" files/", line("files/1.out", "files/../grains")},
    {"grains:1 \"files/.\" files/", line("files/1.out", "files/.")},
    {"grains:1 files/1.out symbolic",
     [](const Folder &f) {
         ::unlink(f.at("e/files/1.out").c_str());
         REQUIRE(::symlink("/etc/passwd", f.at("e/files/1.out").c_str()) == 0);
     }},
    {"grains:1 files/1.out not ordinary",
     [](const Folder &f) {
         ::unlink(f.at("e/files/1.out").c_str());
         REQUIRE(::mkfifo(f.at("e/files/1.out").c_str(), 0600) == 0);
     }},
    {"files not directory",
     [](const Folder &f) {
         REQUIRE(::rename(f.at("e/files").c_str(), f.at("x").c_str()) == 0);
         REQUIRE(::symlink("../x", f.at("e/files").c_str()) == 0);
     }},
    {"session `dcs export`", [](const Folder &f) { f.write("e/session", std::string(70'000, 'x')); }},
    {"log:2: ",
     [](const Folder &f) {
         f.write("e/log", "{\"time_s\":1.5,\"event\":\"closed\"}\n{\"time_s\":1.5,\"event\":\"danced\"}\n");
     }},
    {"grains:5 longer 12582912",
     [](const Folder &f) { f.write("e/grains", f.read("e/grains") + std::string(13'000'000, 'x')); }},
    {"grains:1 files/1.out 9 9", line("\"length\":9", "\"length\":9,\"offset\":1")},
    {"grains:1: unknown key \"out\", \"size\"", line("\"length\":9", "\"length\":9,\"size\":9")},
    {"grains:1 \"crc32c\" 8", line("\"crc32c\":\"", "\"crc32c\":\"00")},
    {"grains:1 \"out\" \"length\"", line("\"length\":9", "\"length\":\"9\"")},
};

}  // namespace

TEST_CASE("every broken export is refused with file, line and reason") {
    for (const Broken &broken : broken_exports) {
        Folder f;
        write_export(f.at("e"));
        REQUIRE(wrong_with(f.at("e")) == "nothing");
        broken.damage(f);
        const std::string wrong = wrong_with(f.at("e"));
        CAPTURE(broken.expected, wrong);
        CHECK(wrong == about(broken.expected));
    }
    CHECK(broken_exports.size() >= 40);
}

TEST_CASE("an export that is larger than an import may be is not even read to its end") {
    Folder f;
    write_export(f.at("e"));
    const auto whole = read_export(f.at("e"));
    REQUIRE(whole);
    CHECK(wrong_with(f.at("e"), whole->length) == "nothing");
    CHECK(wrong_with(f.at("e"), whole->length - 1) ==
          about("grains:4 session packs " + std::to_string(whole->length - 1) + " bytes limit import"));
    CHECK(wrong_with(f.at("e"), 1) == about("session 1 import"));
    // All streams of a grain are in memory before it is packed.
    const std::string too_long = "makes the session longer than the 5300 bytes that an import accepts";
    CHECK(wrong_with(f.at("e"), 5300) == "grains:2: \"checkpoint\": files/2.checkpoint " + too_long);
    f.edit("e/grains", "\"input\":\"one two\"", "\"input\":{\"file\":\"files/2.checkpoint\"}");
    const std::uint64_t twice = 5300 + 4000;
    CHECK(wrong_with(f.at("e"), twice) == about("grains:2 \"checkpoint\" files/2.checkpoint 9300"));
    // No party has to read what is too long by its length already.
    REQUIRE(::truncate(f.at("e/files/2.checkpoint").c_str(), off_t{2} << 30) == 0);
    f.edit("e/grains", "{\"file\":\"files/2.checkpoint\"}", "\"one two\"");
    const std::string text = f.read("e/grains");
    const std::size_t at = text.find(",\"length\":5000");
    f.write("e/grains", std::string(text).erase(at, text.find('}', at) - at));
    CHECK(wrong_with(f.at("e")) == about("grains:2 files/2.checkpoint 1073741824"));
}

TEST_CASE("what is written is read back byte for byte, in every style") {
    std::string first;
    for (const ExportStyle style :
         {ExportStyle{}, ExportStyle{true, false}, ExportStyle{false, true}, ExportStyle{true, true}}) {
        Folder f;
        write_export(f.at("e"), style);
        auto session = read_export(f.at("e"));
        INFO((session ? "" : session.status().text));
        REQUIRE(session);
        std::string stream(session->length, '\0');
        REQUIRE(std::fread(stream.data(), 1, stream.size(), session->stream.get()) == stream.size());
        CHECK(std::fgetc(session->stream.get()) == EOF);
        CHECK(crc32c(stream) == session->crc);
        if (first.empty()) first = stream;
        CHECK(stream == first);
        CHECK((::access(f.at("e/files/packed").c_str(), F_OK) == 0) == (style.pack && !style.files));
        CHECK((::access(f.at("e/files/6.input").c_str(), F_OK) == 0) == style.files);
    }
    ByteReader in(first);
    REQUIRE(wire::unpack_exported_session(in.text()));
    const auto one = wire::unpack_exported_grain(in.text()), two = wire::unpack_exported_grain(in.text());
    REQUIRE(two);
    CHECK(one->out.content == std::string("\0\1\2binary", 9));
    CHECK(one->spec.argv[2] == "\xff\xfe");
    CHECK(two->checkpoint.content == std::string(5000, 'c'));
    CHECK((two->queued && two->queue == 7));
}

TEST_CASE("an edited file is taken when its checksum is removed") {
    Folder f;
    write_export(f.at("e"));
    f.write("e/files/2.checkpoint", "a new state");
    std::string text = f.read("e/grains");
    const std::size_t at = text.find(",\"length\":5000"), end = text.find('}', at);
    f.write("e/grains", text.erase(at, end - at));
    CHECK(wrong_with(f.at("e")) == "nothing");
    f.edit("e/grains", "{\"file\":\"files/2.checkpoint\"}", "\"in the line\\u0001\"");
    CHECK(wrong_with(f.at("e")) == "nothing");
}

TEST_CASE("an export appears whole or not at all, and never over something else") {
    Folder f;
    {
        auto writer = ExportWriter::create(f.at("e"), {});
        REQUIRE(writer);
        CHECK((*writer)->keep("1.out", std::string("\0", 1)));
    }
    CHECK(::rmdir(f.path.c_str()) == 0);  // nothing is left
    REQUIRE(::mkdir(f.path.c_str(), 0700) == 0);
    f.write("file", "x");
    CHECK(ExportWriter::create(f.at("file"), {}).status().code == Code::refused);
    write_export(f.at("e/"));
    CHECK(ExportWriter::create(f.at("e"), {}).status().code == Code::refused);
    REQUIRE(::mkdir(f.at("empty").c_str(), 0700) == 0);
    write_export(f.at("empty"));
    CHECK(wrong_with(f.at("empty")) == "nothing");
    // Another party was quicker.
    auto late = ExportWriter::create(f.at("late"), {});
    REQUIRE(late);
    REQUIRE(::mkdir(f.at("late").c_str(), 0700) == 0);
    f.write("late/x", "x");
    CHECK((*late)->finish({}).code == Code::refused);
    CHECK(f.read("late/x") == "x");
}
