// Real grains, killed and restarted at random: joined output must equal that of one quiet run.
#include <signal.h>

#include <random>

#include "server.h"
#include "support/catch.h"

using namespace grain_test;

namespace {

std::string text(std::size_t bytes, unsigned seed) {
    std::minstd_rand random(seed);
    std::string result;
    while (result.size() < bytes) {
        unsigned r = random() % 100;
        result += r < 3 ? '\n' : r < 20 ? ' ' : static_cast<char>('a' + random() % 26);
    }
    return result;
}

std::vector<std::string> grain(const std::string &how) { return {grain_program("transform_grain"), how, "slow"}; }

// Kills the grain after a while, repeatedly, with checkpoint signals at random in between;
// then lets it end. Returns the number of kills that came before its end.
unsigned disturb(Server &server, unsigned seed, unsigned kills) {
    std::minstd_rand random(seed);
    unsigned killed = 0;
    for (; killed < kills; killed++) {
        server.start();
        // Some die at birth, the others once they can hear us.
        bool young = random() % 8 == 0;
        while (!young && !server.announced() && !server.ended()) sleep_us(100);
        unsigned signals = random() % 6;
        for (unsigned i = 0; i < signals && !server.ended(); i++) {
            sleep_us(random() % 1200);
            server.send(random() % 8 == 0 ? SIGUSR2 : SIGUSR1);
        }
        // Half of them get as far as a checkpoint, however slow the machine is today.
        std::string next = server.directory() + "/checkpoint." + std::to_string(server.sequence + 1);
        if (random() % 2 == 0 && signals > 0)
            for (int i = 0; i < 3000 && !server.ended() && !file_exists(next); i++) sleep_us(100);
        sleep_us(random() % 800);
        bool ended = server.ended();
        if (ended) server.collect();
        else server.kill_and_collect();
        if (server.finished) return killed;
        server.prepare();
    }
    server.start();
    server.collect();
    return killed;
}

}  // namespace

TEST_CASE("joined increments of a disturbed grain equal an undisturbed run") {
    std::string how = GENERATE("fgetc", "getline", "read", "close");
    std::size_t size = GENERATE(0u, 1u, 70000u, 3000000u);
    if (how == "close" && size > 100000) return;  // differs from "fgetc" at the end only
    CAPTURE(how, size);
    std::string input = text(size, 7);
    Filtered quiet = run_filter(grain(how), input);
    REQUIRE(quiet.end.number == 0);
    unsigned kills = 0, checkpoints = 0;
    // On a busy machine a grain may be through before it is killed: then another one.
    const auto enough = [&] { return size < 3000000 || (kills >= 3 && checkpoints >= 3); };
    for (unsigned seed = 1; seed <= (size > 100000 ? 1u : 3u) || (!enough() && seed <= 30); seed++) {
        CAPTURE(seed);
        Server server(grain(how), input);
        kills += disturb(server, seed * 977 + static_cast<unsigned>(size), 20);
        checkpoints += server.checkpoints;
        REQUIRE(server.finished);
        CHECK(server.out.size() == quiet.out.size());
        CHECK((server.out == quiet.out));
        CHECK((server.err == quiet.err));
    }
    CHECK(enough());  // else the test tests nothing
}

TEST_CASE("a checkpoint after every few bytes, each followed by a kill") {
    // The grain takes checkpoints unasked, so each run advances by a known step, whatever the load.
    std::string how = GENERATE("fgetc", "read");
    std::string input = text(600, 11) + "a last line without an end";
    std::vector<std::string> argv = {grain_program("transform_grain"), how, "every", "37"};
    Filtered quiet = run_filter(argv, input);
    REQUIRE(quiet.end.number == 0);
    Server server(argv, input);
    std::minstd_rand random(5);
    for (int run = 0; run < 60 && !server.finished; run++) {
        server.start();
        unsigned long before = server.sequence;
        // Wait until at least one more checkpoint is there, then kill at once.
        while (!server.ended() && !file_exists(server.directory() + "/out." + std::to_string(before + 2))) sleep_us(50);
        if (random() % 2 != 0) sleep_us(random() % 300);
        if (server.ended()) server.collect();
        else server.kill_and_collect();
        if (!server.finished) server.prepare();
    }
    if (!server.finished) {
        server.start();
        server.collect();
    }
    REQUIRE(server.finished);
    CHECK(server.checkpoints >= 16);
    CHECK(server.out == quiet.out);
    CHECK(server.err == quiet.err);
}
