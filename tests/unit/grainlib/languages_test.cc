// One grain in four languages (process/client/ledger.*): each is stopped and goes on without a byte lost or twice,
// also in another language than before.
#include <cstdlib>
#include <random>

#include "places.h"
#include "server.h"
#include "support/catch.h"

using namespace grain_test;

namespace {

using Words = std::vector<std::string>;

std::string source(const std::string &name) { return std::string(DCS_SOURCE_DIR) + "/tests/process/client/" + name; }

struct Language {
    const char *name;
    Words command;
    std::string how;
};

std::vector<Language> languages() {
    return {{"C", {grain_program("ledger_c")}, ""},
            {"C++", {grain_program("ledger_cc")}, ""},
            {"C++ with buffers of its own", {grain_program("ledger_cc")}, "own"},
            {"Python, text", {"/usr/bin/python3", "-B", source("ledger.py")}, "text"},
            {"Python, bytes", {"/usr/bin/python3", "-B", source("ledger.py")}, "bytes"},
            {"Python, sys.stdin", {"/usr/bin/python3", "-B", source("ledger.py")}, "sys"},
            {"dash", {"/bin/dash", source("ledger.sh")}, ""},
            {"bash", {"/bin/bash", source("ledger.sh")}, ""}};
}

Words words(const Language &language, const std::string &every, const std::string &how = "") {
    Words all = language.command;
    all.insert(all.end(), {"0", every, how.empty() ? language.how : how});
    return all;
}

// Shell grains find dcs_grain.sh and dcs_checkpoint there.
void set_path() {
    const std::string path = std::string(DCS_BINARY_DIR) + "/bin:/usr/bin:/bin";
    REQUIRE(setenv("PATH", path.c_str(), 1) == 0);
}

std::string some_lines(unsigned seed, int count) {
    std::minstd_rand random(seed);
    std::string text;
    for (int i = 0; i < count; i++) {
        unsigned length = random() % 5 == 0 ? 0 : random() % (random() % 20 == 0 ? 5000 : 50);
        for (unsigned k = 0; k < length; k++) text += static_cast<char>(k == 0 ? 'a' : ' ' + random() % 95);
        text += '\n';
    }
    return text + "  a \\last line without its end";
}

void next_run(Server &server, const Words &command) {
    if (server.runs > 0) server.prepare();
    server.set_program(command);
    server.start();
}

}  // namespace

TEST_CASE("the ledger is the same in every language, without a server") {
    set_path();
    for (const std::string &input : {std::string(), std::string("x"), std::string("\n"), some_lines(3, 300)}) {
        const Filtered first = run_filter(words(languages()[0], "10"), input);
        REQUIRE(first.end.number == 0);
        REQUIRE(first.out.find("end ") != std::string::npos);
        for (const Language &language : languages()) {
            INFO(language.name);
            const Filtered run = run_filter(words(language, "10"), input);
            CHECK(run.end.number == 0);
            CHECK(run.out == first.out);
            CHECK(run.err == first.err);
        }
    }
}

TEST_CASE("killed after each checkpoint, a grain goes on in its language") {
    set_path();
    const std::string input = some_lines(5, 120);
    const Filtered quiet = run_filter(words(languages()[0], "0"), input);
    for (const Language &language : languages()) {
        INFO(language.name);
        std::minstd_rand random(11);
        Server server(words(language, "17"), input);
        while (!server.finished && server.runs < 40) {
            next_run(server, words(language, "17"));
            const std::string next = server.directory() + "/checkpoint." + std::to_string(server.sequence + 1);
            while (!server.ended() && !file_exists(next)) sleep_us(100);
            sleep_us(random() % 600);
            if (server.ended()) server.collect();
            else server.kill_and_collect();
        }
        REQUIRE(server.finished);
        CHECK(server.checkpoints >= 7);
        CHECK(server.out == quiet.out);
        CHECK(server.err == quiet.err);
        CHECK(server.message.rfind("line 1", 0) == 0);
    }
}

TEST_CASE("a grain asks for its next run by status 85 and goes on in another language") {
    set_path();
    const std::string input = some_lines(7, 200);
    const Filtered quiet = run_filter(words(languages()[0], "0"), input);
    std::minstd_rand random(2);
    // With "again" all of them read in their usual way.
    std::vector<Language> all = languages();
    Server server(words(all[0], "3", "again"), input);
    std::vector<bool> used(all.size(), false);
    while (!server.finished && server.runs < 100) {
        const std::size_t i = server.runs < all.size() ? server.runs : random() % all.size();
        INFO(all[i].name);
        used[i] = true;
        const unsigned before = server.checkpoints;
        next_run(server, words(all[i], "3", "again"));
        server.collect();
        REQUIRE_FALSE(server.end.signalled);
        if (!server.finished) {
            REQUIRE(server.end.number == 85);
            REQUIRE(server.checkpoints == before + 1);
        }
    }
    REQUIRE(server.finished);
    CHECK(server.checkpoints == 67);
    CHECK(std::vector<bool>(all.size(), true) == used);
    CHECK(server.out == quiet.out);
    CHECK(server.err == quiet.err);
}

TEST_CASE("asked by a signal, every language takes a checkpoint") {
    set_path();
    for (const Language &language : languages()) {
        INFO(language.name);
        Words command = words(language, "0");
        command[language.command.size()] = "1";  // rests after each line
        Server server(command, some_lines(9, 3000));
        server.start();
        while (!server.announced() && !server.ended()) sleep_us(200);
        for (int i = 0; i < 3000 && !file_exists(server.directory() + "/checkpoint.1"); i++) {
            if (i % 50 == 0) server.send(10);
            sleep_us(2000);
        }
        server.send(12);  // the host pages: a grain that cannot shrink goes on
        sleep_us(30000);
        CHECK_FALSE(server.ended());
        server.kill_and_collect();
        CHECK(server.checkpoints >= 1);
        CHECK(server.message.rfind("line ", 0) == 0);
    }
}

TEST_CASE("output that cannot be written is told by status 74 in every language") {
    set_path();
    for (const Language &language : languages()) {
        for (const char *every : {"0", "5"}) {
            INFO(language.name << " every " << every);
            RunOptions options;
            Server server(words(language, every), some_lines(9, 30));
            options.out_is = "/dev/full";
            server.start(options);
            const End end = server.wait();
            CHECK_FALSE(end.signalled);
            CHECK(end.number == 74);
            CHECK_FALSE(file_exists(server.directory() + "/checkpoint.5"));
        }
    }
}

TEST_CASE("the offset in a checkpoint is what was consumed, however it was read") {
    std::string input;
    std::minstd_rand random(4);
    for (int i = 0; i < 3000; i++) {
        const unsigned r = random() % 20;
        input += r == 0   ? "\n"
                 : r < 4  ? " "
                 : r < 6  ? "\xC3\xA9"
                 : r == 6 ? "\xE2\x82\xAC"
                 : r == 7 ? "\xF0\x9F\x8C\xBE"
                          : "x";
    }
    for (const std::string how :
         {"character", "look-ahead", "block", "line", "word", "wide", "unbuffered", "seeking", "read", "child"}) {
        for (const std::string pieces : {"0", "1", "2", "29", "5000"}) {
            if (how == "child" && pieces == "5000") continue;
            CAPTURE(how, pieces);
            Server server({grain_program("reader_grain"), how, pieces}, input);
            server.start();
            REQUIRE(server.wait().number == 0);
            const Checkpoint found = parse_checkpoint(read_file(server.directory() + "/checkpoint.1"));
            REQUIRE(found.valid);
            CHECK(std::to_string(found.input_offset) == found.state);
            if (pieces == "5000") CHECK(found.input_offset + 1 >= input.find_last_not_of(" \n"));
        }
    }
}

namespace {

// A short Python program with the module, as a grain or as something else.
Words python(const std::string &text) {
    return {"/usr/bin/python3", "-B", "-c",
            "import os, sys\nsys.path.insert(0, '" + std::string(DCS_SOURCE_DIR) +
                "/libdcs/python')\nimport dcs_grain as g\n" + text};
}

struct Ran {
    Server server;
    End end;
    std::string err;
    Ran(const Words &command, const std::string &input) : server(command, input) {
        server.start();
        end = server.wait();
        err = read_file(server.directory() + "/err.1");
    }
    Checkpoint checkpoint() { return parse_checkpoint(read_file(server.directory() + "/checkpoint.1")); }
};

}  // namespace

TEST_CASE("C++: a state has all digits, and is read in the locale in which it is written") {
    Server server({grain_program("locale_grain")}, "0 0 0\n");
    server.start();
    CHECK(server.wait().number == SIGABRT);
    server.collect();
    server.prepare();
    server.start();
    const End end = server.wait();
    CHECK((!end.signalled && end.number == 0));
    server.collect();
    char right[100];
    std::snprintf(right, sizeof right, "1234567 %La %a\n", 1 / 3.0L, 0.1 + 1e9);
    CHECK(server.out == right);
}

TEST_CASE("Python: the offset is exact for every way of reading") {
    const std::string input = "eins zwei\n\xC3\xA4 drei \xE2\x82\xAC\nvier\r\nf\xFFnf\nsechs";
    const std::string taken = "with g.checkpoint('m') as f: f.write(str(n))\n";
    const std::pair<const char *, const char *> ways[] = {
        {"n = len(g.stdin.read(5)) + len(g.stdin.readline()) + len(g.stdin.readline())\n", "22"},
        {"n = len((g.text.readline() + g.text.read(4)).encode())\n", "15"},
        {"n = len(g.stdin.read())\n", "38"},
        {"n = sum(map(len, g.stdin))\n", "38"},
        {"n = len(''.join(g.text).encode('utf-8', 'surrogateescape'))\n", "38"},
        {"n = len(sys.stdin.buffer.readline())\n", "10"},
        {"n = len((sys.stdin.readline() + sys.stdin.readline()).encode())\n", "22"},
        {"n = len(input()) + 1\n", "10"},
        {"n = len(os.read(0, 7))\n", "7"},
        {"n = 0\n", "0"},
    };
    for (const auto &[read, expected] : ways) {
        INFO(read);
        Ran run(python(read + taken), input);
        CHECK(run.err.empty());
        REQUIRE(run.end.number == 0);
        const Checkpoint found = run.checkpoint();
        REQUIRE(found.valid);
        CHECK(found.state == expected);
        CHECK(std::to_string(found.input_offset) == expected);
    }
}

TEST_CASE("Python: wrong use is told, and an exception leaves no checkpoint") {
    SECTION("a way of reading that hides the offset") {
        Ran run(python("for line in sys.stdin:\n  with g.checkpoint() as f: pass\n"), "a\nb\n");
        CHECK(run.end.number == 70);
        CHECK(run.err.find("for line in sys.stdin") != std::string::npos);
    }
    SECTION("two at once") {
        Ran run(python("with g.checkpoint() as f:\n  with g.checkpoint() as h: pass\n"), "");
        CHECK(run.end.number == 70);
    }
    SECTION("in a child process") {
        Ran run(python("g.handler()\nif os.fork() == 0:\n  with g.checkpoint() as f: pass\n"
                       "sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))\n"),
                "");
        CHECK(run.end.number == 70);
        CHECK(run.err.find("child process") != std::string::npos);
    }
    SECTION("an exception in the block") {
        Ran run(python("try:\n  with g.checkpoint() as f: f.write('half'); 1 / 0\nexcept ZeroDivisionError: pass\n"
                       "with g.checkpoint('whole') as f: f.write(b'\\x00\\xFF')\nprint('later')\n"),
                "");
        REQUIRE(run.end.number == 0);
        const Checkpoint found = run.checkpoint();
        CHECK(found.valid);
        CHECK(found.message == "whole");
        CHECK(found.state == std::string("\0\xFF", 2));
        CHECK(read_file(run.server.directory() + "/out.2") == "later\n");
    }
    SECTION("output by a copy of the descriptor that is older than a checkpoint") {
        for (const std::string more : {"", "with g.checkpoint() as f: f.write('x')\n"}) {
            const std::string twice = "with g.checkpoint() as f: f.write('x')\n" + more;
            Ran run(python("g.handler()\nd = os.dup(1)\nos.write(d, b'a')\n" + twice + "os.write(d, b'b')\n"), "");
            CHECK(run.end.number == 70);
            Ran silent(python("g.handler()\nd = os.dup(1)\nos.write(d, b'a')\n" + twice), "");
            CHECK(silent.end.number == 0);
        }
        Ran run(python("g.handler()\nd = os.dup(1)\nwith g.checkpoint() as f: f.write('x')\n"
                       "os.write(d, b'b')\nwith g.checkpoint() as f: f.write('x')\n"),
                "");
        CHECK((run.end.number == 70 && run.checkpoint().message.empty()));
    }
    SECTION("a program that closed its output gets one again") {
        Ran run(python("os.close(1)\nos.close(2)\n"
                       "with g.checkpoint() as f: f.write('x')\nos.write(1, b'there')\n"),
                "");
        CHECK(run.end.number == 0);
        CHECK(run.checkpoint().valid);
        CHECK(read_file(run.server.directory() + "/out.2") == "there");
    }
    SECTION("a signal while the interpreter ends") {
        Ran run(python("import signal\nclass Late:\n  def __del__(self, kill=os.kill, pid=os.getpid(),\n"
                       "              signals=(signal.SIGUSR1, signal.SIGUSR2)):\n"
                       "    for s in signals: kill(pid, s)\ng.handler()\nlate = Late()\n"),
                "");
        CHECK(run.end.number == 0);
    }
    SECTION("a full disk somewhere else in the program") {
        Ran run(python("g.handler()\nopen('/dev/full', 'w').write('x' * 100000)\n"), "");
        CHECK(run.end.number == 74);
    }
}

TEST_CASE("dcs_checkpoint serves the grain itself only") {
    set_path();
    const std::string before = "test \"$(cat /proc/$$/stat | cut -d' ' -f6)\" = $$ || exit 9\n";
    const auto shell = [&](const std::string &script) { return Words{"/bin/sh", "-c", before + script}; };
    SECTION("any bytes as state, the offset as said") {
        Ran run(shell("printf 'a\\000b' | dcs_checkpoint -m 'two words' -o 3 || exit 1\n"
                      "exec >>$DCS_GRAIN_DIR/out.2 2>>$DCS_GRAIN_DIR/err.2\necho later"),
                "12345");
        REQUIRE(run.end.number == 0);
        const Checkpoint found = run.checkpoint();
        REQUIRE(found.valid);
        CHECK(found.input_offset == 3);
        CHECK(found.message == "two words");
        CHECK(found.state == std::string("a\0b", 3));
        CHECK(read_file(run.server.directory() + "/out.2") == "later\n");
    }
    SECTION("a helper of the grain is refused") {
        Ran run(shell("(dcs_checkpoint --is-grain; exit $?); a=$?\n(dcs_checkpoint -o 0 </dev/null; exit $?); b=$?\n"
                      "dcs_checkpoint --is-grain; echo $a $b $?"),
                "");
        CHECK(read_file(run.server.directory() + "/out.1") == "1 70 0\n");
        CHECK(run.err.find("first process of a grain") != std::string::npos);
    }
    SECTION("how much was consumed must be said") {
        Ran run(shell("for how in '' '-o -1' '-o x' '-i 77' '-q' '-o 1 more'; do\n"
                      "dcs_checkpoint $how </dev/null; echo $?\ndone"),
                "");
        CHECK(read_file(run.server.directory() + "/out.1") == "70\n70\n70\n70\n70\n70\n");
        CHECK_FALSE(file_exists(run.server.directory() + "/checkpoint.1"));
    }
    const std::string library =
        ". '" + std::string(DCS_SOURCE_DIR) + "/libdcs/shell/dcs_grain.sh'\ndcs_grain_handler\n";
    SECTION("in a loop that reads another file the grain's input is counted") {
        Ran run(shell(library + "read -r first\nprintf 'a longer line\\n' >other\n"
                                "while read -r line; do dcs_grain_checkpoint 'a message' \"$line\"; done <other"),
                "12\n345");
        REQUIRE(run.end.number == 0);
        CHECK(run.checkpoint().input_offset == 3);
        CHECK(run.checkpoint().state == "a longer line\n");
    }
    SECTION("an empty state adds nothing to the input") {
        Ran run(shell(library + "read -r first\ndcs_grain_checkpoint 'a message' ''"), "12\n345");
        REQUIRE(run.end.number == 0);
        CHECK(run.checkpoint().input_offset == 3);
        CHECK(run.checkpoint().state.empty());
    }
    SECTION("another file than the input, or no file, is refused as one") {
        Ran run(
            shell("for fd in '3</etc/passwd' '3<&-'; do eval \"dcs_checkpoint -i 3 $fd </dev/null\"; echo $?; done"),
            "");
        CHECK(read_file(run.server.directory() + "/out.1") == "70\n70\n");
        CHECK(run.err.find("not the grain's standard input") != std::string::npos);
        CHECK_FALSE(file_exists(run.server.directory() + "/checkpoint.1"));
    }
    SECTION("a message without a state is refused, also without a server") {
        Ran run(shell(library + "dcs_grain_checkpoint 'only a state'"), "");
        CHECK(run.end.number == 70);
        CHECK(run.err.find("takes a MESSAGE and a STATE") != std::string::npos);
    }
    SECTION("a script without it does not run as if nothing were amiss") {
        Ran run(shell("PATH=/usr/bin:/bin\n. '" + std::string(DCS_SOURCE_DIR) +
                      "/libdcs/shell/dcs_grain.sh'\ndcs_grain_handler\necho on"),
                "");
        CHECK(run.end.number == 70);
        CHECK(run.err.find("not in PATH") != std::string::npos);
    }
}
