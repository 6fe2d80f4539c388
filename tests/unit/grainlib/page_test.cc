// The examples of docs/GRAIN_PROTOCOL.md, byte by byte and step by step, from every implementation.
#include <fcntl.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <cstdlib>

#include "places.h"
#include "server.h"
#include "support/catch.h"

using namespace grain_test;

namespace {

using Words = std::vector<std::string>;

// The content of the block that begins with ```name.
std::string block(const std::string &name) {
    const std::string page = read_file(std::string(DCS_SOURCE_DIR) + "/docs/GRAIN_PROTOCOL.md");
    const std::string fence = "\n```" + name + "\n";
    const std::size_t begin = page.find(fence);
    REQUIRE(begin != std::string::npos);
    const std::size_t end = page.find("\n```\n", begin + fence.size());
    REQUIRE(end != std::string::npos);
    return page.substr(begin + fence.size(), end + 1 - begin - fence.size());
}

Words python_of_page(const std::string &text) {
    return {"/usr/bin/python3", "-B", "-c",
            "import sys\nsys.path.insert(0, '" + std::string(DCS_SOURCE_DIR) +
                "/libdcs/python')\nimport dcs_grain as g\ng.handler()\n" + text};
}

Words shell(const std::string &text) {
    return {"/bin/sh", "-c",
            "PATH=" + std::string(DCS_BINARY_DIR) + "/bin:/usr/bin:/bin\n. dcs_grain.sh\ndcs_grain_handler\n" + text};
}

// CPU time is the only thing in a checkpoint that differs from run to run.
std::string without_usage(std::string text) {
    const std::size_t begin = text.find("\nusage_us ");
    REQUIRE(begin != std::string::npos);
    return text.erase(begin, text.find('\n', begin + 1) - begin);
}

// What happens to the names in a directory, as the page words it; only those of checkpoint 3.
std::string operations(int watch) {
    std::string told, moved;
    alignas(struct inotify_event) char room[65536];
    ssize_t got;
    while ((got = read(watch, room, sizeof room)) > 0) {
        for (char *at = room; at < room + got;) {
            const auto *event = reinterpret_cast<const struct inotify_event *>(at);
            at += sizeof *event + event->len;
            const std::string name = event->len > 0 ? event->name : "";
            if (event->mask & IN_CREATE) {
                if (name == "checkpoint.3.tmp") told = told.find("delete") == 0 ? told : "";
                told += "create " + name + "\n";
            } else if (event->mask & IN_DELETE) {
                told = "delete " + name + "\n";  // the last deletion begins the last checkpoint
            } else if (event->mask & IN_MOVED_FROM) {
                moved = name;
            } else if (event->mask & IN_MOVED_TO) {
                told += "rename " + moved + " " + name + "\n";
            }
        }
    }
    return told;
}

}  // namespace

TEST_CASE("the checkpoint file is the one of the protocol page") {
    const std::string example = block("checkpoint");
    REQUIRE(parse_checkpoint(example).valid);
    CHECK(parse_checkpoint(example).state == "hello");
    const std::string checkpoint = "with g.checkpoint('half way through.') as f: f.write('hello')\n";
    const Words programs[] = {{grain_program("misuse_grain"), "example"},
                              python_of_page("sys.stdin.buffer.read(1234)\n" + checkpoint),
                              shell("printf hello | dcs_checkpoint -m 'half way through.' -o 1234\n")};
    for (const Words &program : programs) {
        INFO(program.back());
        Server server(program, std::string(5000, 'x'));
        server.start();
        REQUIRE(server.wait().number == 0);
        CHECK(file_exists(server.directory() + "/announce"));
        CHECK_FALSE(file_exists(server.directory() + "/checkpoint.1.tmp"));
        CHECK(without_usage(read_file(server.directory() + "/checkpoint.1")) == without_usage(example));
    }
}

TEST_CASE("the file operations of a checkpoint are those of the protocol page") {
    const std::string expected = block("order");
    const Words programs[] = {{grain_program("misuse_grain"), "three"},
                              python_of_page("for i in range(3):\n  with g.checkpoint('m') as f: f.write('s')\n"),
                              shell("for i in 1 2 3; do dcs_grain_checkpoint m s; done\n")};
    for (const Words &program : programs) {
        INFO(program.back());
        Server server(program, "");
        const int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
        REQUIRE(watch >= 0);
        REQUIRE(inotify_add_watch(watch, server.directory().c_str(), IN_CREATE | IN_DELETE | IN_MOVE) >= 0);
        server.start();
        CHECK(server.wait().number == 0);
        CHECK(operations(watch) == expected);
        close(watch);
    }
}
