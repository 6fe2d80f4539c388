// The letters of docs/GRAIN_PROTOCOL.md, and what happens when writing fails.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server.h"
#include "support/catch.h"

using namespace grain_test;

namespace {

std::vector<std::string> odd(const std::string &what) { return {grain_program("misuse_grain"), what}; }

// Runs an odd grain once under the server; the directory stays for looking at.
struct Once {
    Server server;
    End end;
    std::string err;
    explicit Once(const std::string &what, const std::string &input = "", RunOptions options = {},
                  const std::string &plant = "", const std::string &plant_target = "")
        : server(odd(what), input) {
        if (!plant.empty()) {
            std::string path = server.directory() + "/" + plant;
            if (plant_target.empty()) write_file(path, "old");
            else REQUIRE(symlink(plant_target.c_str(), path.c_str()) == 0);
        }
        server.start(options);
        end = server.wait();
        err = read_file(server.directory() + "/err.1");
    }
    std::string file(const std::string &name) { return read_file(server.directory() + "/" + name); }
    bool has(const std::string &name) { return file_exists(server.directory() + "/" + name); }
};

}  // namespace

TEST_CASE("increments are cut at each checkpoint and old checkpoints go") {
    Once run("three");
    REQUIRE(run.end.number == 0);
    CHECK(run.file("out.1") == "part 1\n");
    CHECK(run.file("out.2") == "part 2\n");
    CHECK(run.file("out.3") == "part 3\n");
    CHECK(run.file("out.4") == "part 4\n");
    CHECK(run.has("err.4"));
    CHECK_FALSE(run.has("checkpoint.1"));
    CHECK(run.has("checkpoint.2"));
    Checkpoint last = parse_checkpoint(run.file("checkpoint.3"));
    CHECK(last.valid);
    CHECK(last.state.empty());
    CHECK(last.message.empty());
}

TEST_CASE("a checkpoint touches the input file") {
    Server server(odd("three"), "abc");
    std::string input = server.directory() + "/input";
    struct timespec old[2] = {{1000000000, 0}, {1000000000, 0}};
    REQUIRE(utimensat(AT_FDCWD, input.c_str(), old, 0) == 0);
    server.start();
    REQUIRE(server.wait().number == 0);
    struct stat status;
    REQUIRE(stat(input.c_str(), &status) == 0);
    CHECK(status.st_mtim.tv_sec > 1000000000);
}

TEST_CASE("a grain that closed its output gets one again at a checkpoint") {
    Once run("closed-streams");
    REQUIRE(run.end.number == 0);
    CHECK(parse_checkpoint(run.file("checkpoint.1")).valid);
    CHECK(run.file("out.2") == "now there is\n");
}

TEST_CASE("a message is bounded") {
    Once run("long-message");
    REQUIRE(run.end.number == 0);
    Checkpoint checkpoint = parse_checkpoint(run.file("checkpoint.1"));
    REQUIRE(checkpoint.valid);
    CHECK(checkpoint.message == std::string(4096, 'm'));
    CHECK(checkpoint.state == "state\n");
}

TEST_CASE("checkpoint and thrash signals are told apart and told once") {
    Server server(odd("signals"), "");
    server.start();
    for (int i = 0; i < 5000 && !server.announced(); i++) sleep_us(1000);
    REQUIRE(server.announced());
    server.send(SIGUSR1);
    sleep_us(20000);
    CHECK_FALSE(server.ended());
    server.send(SIGUSR2);
    REQUIRE(server.wait().number == 0);
    CHECK(read_file(server.directory() + "/out.1") == "checkpoint 0\nthrash 0\n");
}

TEST_CASE("a full disk ends the grain with the innocent status") {
    RunOptions full_out, full_err;
    full_out.out_is = "/dev/full";
    full_err.err_is = "/dev/full";
    SECTION("standard output, at a checkpoint") {
        Once run("write", "", full_out);
        CHECK_FALSE(run.end.signalled);
        CHECK(run.end.number == 74);
        CHECK_FALSE(run.has("checkpoint.1"));
        CHECK(run.err.find("standard output: No space left") != std::string::npos);
    }
    SECTION("standard output, at the end") {
        Once run("write-and-end", "", full_out);
        CHECK(run.end.number == 74);
    }
    SECTION("the checkpoint") {
        Once run("write", "", {}, "checkpoint.1.tmp", "/dev/full");
        CHECK(run.end.number == 74);
        CHECK_FALSE(run.has("checkpoint.1"));
    }
    SECTION("nothing was written to the full one") {
        Once run("write", "", full_err);
        CHECK(run.end.number == 0);
        CHECK(run.has("checkpoint.1"));
    }
    SECTION("an increment of that number is there") {
        Once run("write", "", {}, "out.2");
        CHECK(run.end.number == 74);
        CHECK(run.file("out.2") == "old");
        CHECK_FALSE(run.has("checkpoint.1"));
    }
}

TEST_CASE("a grain beyond its limit on file size is not innocent") {
    RunOptions options;
    options.file_size_limit = 50000;
    Once run("big", "", options);
    CHECK(run.end.signalled);
    CHECK(run.end.number == SIGXFSZ);
    CHECK_FALSE(run.has("checkpoint.1"));
}

TEST_CASE("wrong use of the library is not innocent") {
    std::string what = GENERATE("twice-open", "wrong-stream", "no-stdin", "child");
    CAPTURE(what);
    Once run(what, "input\n");
    CHECK_FALSE(run.end.signalled);
    CHECK(run.end.number == 70);
    CHECK(run.err.rfind("grainlib: ", 0) == 0);
    CHECK_FALSE(run.has("checkpoint.1"));
}

TEST_CASE("what is written to a complete increment is lost, and the grain fails") {
    std::string what = GENERATE("older-next", "older-end", "older-twice", "older-closed", "older-silent");
    CAPTURE(what);
    const bool fails = what != "older-closed" && what != "older-silent";
    Once run(what);
    CHECK_FALSE(run.end.signalled);
    CHECK(run.end.number == (fails ? 70 : 0));
    const std::string said = run.file(what == "older-twice" ? "err.3" : "err.2");
    CHECK((said.find("older than a checkpoint") != std::string::npos) == fails);
    CHECK(run.has("checkpoint.1"));
    CHECK(run.has("checkpoint.2") == (what == "older-twice"));
    CHECK_FALSE(run.has("out.4"));
}

TEST_CASE("a grain's helper program does not touch the grain's files") {
    SECTION("one that the grain runs in a pipe") {
        Once run("helper");
        CHECK(run.end.number == 0);
        CHECK(run.file("out.1") == "Part 1\nPart 2\nPart 3\nPart 4\n");
        CHECK_FALSE(run.has("out.2"));
        CHECK_FALSE(run.has("checkpoint.1"));
    }
    SECTION("one that is not the leader of the grain's session") {
        RunOptions options;
        options.own_session = false;
        Once run("three", "", options);
        CHECK(run.end.number == 0);
        CHECK_FALSE(run.has("announce"));
        CHECK(run.file("out.1") == "part 1\npart 2\npart 3\npart 4\n");
    }
}

TEST_CASE("without a server a grain program is a filter") {
    Filtered run = run_filter(odd("three"), "");
    CHECK(run.end.number == 0);
    CHECK(run.out == "part 1\npart 2\npart 3\npart 4\n");
    CHECK(run.err.empty());
    Filtered transformed = run_filter({grain_program("transform_grain"), "getline"}, "abc\nxyz");
    CHECK(transformed.out == "1:nop\n2:klm\nlines 2 bytes 7 sum 92582\n");
}
