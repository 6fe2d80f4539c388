// The paper's Appendix A as a grain: interrupted or not, the same output, with and without its
// read-only file of primes.
#include <signal.h>

#include <random>

#include "server.h"
#include "support/catch.h"

using namespace grain_test;

TEST_CASE("Appendix A goes on from its checkpoints") {
    // Two numbers: the primes of the one are far beyond what 900 primes can show, a curve finds the p9
    // of the other.
    bool with_file = GENERATE(false, true);
    bool finds = GENERATE(false, true);
    CAPTURE(with_file, finds);
    Scratch scratch;
    std::vector<std::string> argv = {program("appendix_a")};
    if (with_file) {
        std::string primes;
        for (int p = 2; p < 100000; p++) {
            bool prime = true;
            for (int d = 2; d * d <= p && prime; d++) prime = p % d != 0;
            if (prime) primes += std::to_string(p) + "\n";
        }
        write_file(scratch.path() + "/primes", primes);
        argv.push_back(scratch.path() + "/primes");
    }
    std::string input = finds
                            ? "56bc7648c1c08b811\n1000\n0\n0\n9000\n3\n2\n3\n5\n7\nb\n1\n1234\n5678\n9abc"
                            : "c097ce7bc907179a67df1840360099\n1000\n0\n0\n900\n3\n2\n3\n5\n7\nb\n1\n1234\n5678\n9abc";
    Filtered quiet = run_filter(argv, input);
    REQUIRE(quiet.end.number == 0);
    CHECK(quiet.out.find(finds ? "factor " : "no factor with 900 primes\n") == 0);
    Server server(argv, input);
    std::minstd_rand random(17);
    while (!server.finished && server.runs < 25) {
        server.start();
        while (!server.ended() && !server.announced()) sleep_us(100);
        for (unsigned i = random() % 3; i > 0; i--) {
            sleep_us(random() % 2000);
            server.send(SIGUSR1);
        }
        sleep_us(random() % 3000);
        if (server.ended()) server.collect();
        else server.kill_and_collect();
        if (!server.finished) server.prepare();
    }
    if (!server.finished) {
        server.start();
        server.collect();
    }
    REQUIRE(server.finished);
    CHECK(server.out == quiet.out);
    CHECK(server.err == quiet.err);
}
