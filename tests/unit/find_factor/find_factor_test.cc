// find_factor and the paper's Appendix B, interrupted at each of their calls. A played pool (fake/) keeps
// the record; the grain is the real one.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "places.h"
#include "support/about.h"
#include "support/catch.h"

namespace {

std::string read_file(const std::string &path) {
    std::string bytes;
    if (FILE *f = std::fopen(path.c_str(), "re")) {
        char piece[65536];
        for (std::size_t got; (got = std::fread(piece, 1, sizeof piece, f)) > 0;) bytes.append(piece, got);
        std::fclose(f);
    }
    return bytes;
}

void write_file(const std::string &path, const std::string &bytes) {
    FILE *f = std::fopen(path.c_str(), "we");
    REQUIRE(f != nullptr);
    REQUIRE(std::fwrite(bytes.data(), 1, bytes.size(), f) == bytes.size());
    REQUIRE(std::fclose(f) == 0);
}

struct Ran {
    int code = 0;
    std::string out, err;
    int calls = 0;
};

// One pool and one list.
class Played {
public:
    explicit Played(std::string list) {
        REQUIRE(mkdtemp(dir_) != nullptr);
        set_list(list);
    }
    ~Played() {
        std::string command = std::string("rm -rf ") + dir_;
        if (std::system(command.c_str()) != 0) std::perror(dir_);
    }
    void set_list(const std::string &list) { write_file(path("list"), list); }
    std::string path(const char *name) const { return std::string(dir_) + "/" + name; }

    Ran run(const std::string &arguments, const std::string &die = "", int seed = 0,
            const std::string &program = "find_factor_fake") {
        std::string env = "FAKE_DCS_DIR=" + std::string(dir_) + " FAKE_DCS_COUNT=" + path("count") +
                          " FAKE_DCS_SEED=" + std::to_string(seed) + (die.empty() ? "" : " FAKE_DCS_DIE=" + die);
        std::string command = env + " " + DCS_BINARY_DIR + "/tests/" + program + " " + arguments + " < " +
                              path("list") + " > " + path("out") + " 2> " + path("err");
        Ran result;
        int status = std::system(("exec env " + command).c_str());
        result.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        result.out = read_file(path("out"));
        result.err = read_file(path("err"));
        result.calls = std::atoi(read_file(path("count")).c_str());
        return result;
    }

private:
    char dir_[40] = "/tmp/dcs-find-factor-XXXXXX";
};

const std::string grain = std::string("--grain ") + DCS_BINARY_DIR + "/bin/ellipsc ";
const std::string quick = grain + "--b1 300:4,2000:20,11000 --curves-per-grain 2 --window 4 ";

// Four primes of 8 to 12 digits, so that cofactors have to be gone on with; a cube of a prime; small ones.
const char *const list =
    "# a comment\n"
    "  10000019789001505463012099010017689 # four primes\n"
    "1000000016000000063\n"
    "\n"
    "000360\n"
    "1\n"
    "1000000000039\n"
    "1000009000027000027\n";

}  // namespace

TEST_CASE("a list is factored in its order, a rerun replays it") {
    Played pool(list);
    Ran first = pool.run(quick);
    CAPTURE(first.err);
    REQUIRE(first.code == 0);
    CHECK(first.out.rfind("10000019789001505463012099010017689 = 10000019 * 100000007 * 1000000007 * "
                          "10000000019\n",
                          0) == 0);
    CHECK(first.out.find("1000009000027000027 = 1000003 * 1000003 * 1000003\n") != std::string::npos);
    CHECK(first.out.find("\n1000000016000000063 = 1000000007 * 1000000009\n") != std::string::npos);
    CHECK(first.out.find("\n360 = 2 * 2 * 2 * 3 * 3 * 5\n1 = 1\n1000000000039 = 1000000000039\n") != std::string::npos);
    std::string state = read_file(pool.path("state"));
    Ran second = pool.run(quick, "", 99);
    CHECK(second.code == 0);
    CHECK(second.out == first.out);
    CHECK(read_file(pool.path("state")) == state);  // nothing new was submitted
    // Another list does not meet the sessions of this one; the same numbers in another dress do.
    pool.set_list("15\n");
    CHECK(pool.run(quick).out == "15 = 3 * 5\n");
    pool.set_list(std::string("#\n") + list + "# end");
    CHECK(pool.run(quick).out == first.out);
}

TEST_CASE("killed at any call, a rerun finds the same factors") {
    std::string one_at_a_time = quick + "--parallel 1 ";
    std::string expected;
    int calls = 0;
    {
        Played pool(list);
        Ran calm = pool.run(one_at_a_time);
        REQUIRE(calm.code == 0);
        expected = calm.out;
        calls = calm.calls;
    }
    REQUIRE(calls > 30);
    for (int n = 1; n <= calls; n += 1 + calls / 24) {
        std::string die = std::to_string(n) + (n % 2 ? "+" : "");
        CAPTURE(die);
        Played pool(list);
        CHECK(pool.run(one_at_a_time, die).code == 137);
        Ran rerun = pool.run(one_at_a_time, "", n);
        CAPTURE(rerun.err);
        CHECK(rerun.code == 0);
        CHECK(rerun.out == expected);
    }
}

TEST_CASE("killed again and again, with several numbers at a time") {
    Played pool(list);
    std::minstd_rand random(3);
    Ran ran;
    int kills = 0;
    for (int i = 0; i < 60; i++) {
        // Replays need the more calls the further the record goes.
        std::string die = i < 40 ? std::to_string(3 + random() % 40 + i) + (i % 2 ? "+" : "") : "";
        ran = pool.run(quick, die, i);
        if (ran.code != 137) break;
        kills++;
    }
    CAPTURE(ran.err);
    CHECK(ran.code == 0);
    CHECK(kills >= 2);
    Played calm(list);
    CHECK(ran.out == calm.run(quick).out);
}

TEST_CASE("factors of a composite cofactor are searched for by new grains") {
    // Three primes of 11 digits: after the first factor the other grains are withdrawn.
    Played pool("1000000011300000037990000038247\n");
    Ran ran = pool.run(quick);
    CAPTURE(ran.err);
    CHECK(ran.code == 0);
    CHECK(ran.out == "1000000011300000037990000038247 = 10000000019 * 10000000033 * 10000000061\n");
    CHECK(read_file(pool.path("state")).find("6:killed") != std::string::npos);
}

TEST_CASE("grains are limited, more of them go on") {
    Played pool("1164020557905420620724826107662501806315124796788320055422354508504871019707476728214154679\n");
    Ran some = pool.run(grain + "--b1 2000 --curves-per-grain 1 --seed 6 --grains 3");
    CHECK(some.code == 1);
    CHECK(some.out.find("= 11640205579054206207248261076625018063151247967883200554223545085048710197"
                        "07476728214154679 (composite)\n") != std::string::npos);
    Ran all = pool.run(grain + "--b1 2000 --curves-per-grain 1 --seed 6 --grains 12");
    CAPTURE(all.err);
    CHECK(all.code == 0);
    CHECK(all.out.find("= 790468905817 * 14725696979849336103500938446231166237437746082999383770083971"
                       "29155903438335887\n") != std::string::npos);
    Ran other = pool.run(grain + "--b1 2000 --curves-per-grain 2 --seed 6");
    CHECK(other.code == 1);
    CHECK(other.err.find("other options") != std::string::npos);
}

TEST_CASE("a wrong list is refused before anything happens") {
    struct {
        const char *list, *words;
    } bad[] = {
        {"12x\n", "line 1"},        {"35\n-3\n", "line 2: -3: is negative"},
        {"0\n", "line 1: 0: zero"}, {"#\n\n15 16\n", "line 3"},
        {"000\n", "zero"},          {"1.5\n", "line 1"},
        {"--5\n", "line 1"},        {"0x10\n", "line 1"},
    };
    for (auto &row : bad) {
        CAPTURE(row.list);
        Played pool(row.list);
        Ran ran = pool.run(quick);
        CHECK(ran.code == 2);
        CHECK(ran.out.empty());
        CHECK(ran.err.find(row.words) != std::string::npos);
        CHECK(read_file(pool.path("state")).empty());
    }
    Played huge("15\n" + std::string(501, '7') + "\n");
    Ran ran = huge.run(quick);
    CHECK(ran.code == 2);
    CHECK(ran.err.find("line 2: ") != std::string::npos);
    CHECK(ran.err.find("500 digits") != std::string::npos);
    Played empty("# nothing\n");
    CHECK(empty.run(quick).code == 0);
}

TEST_CASE("wrong options") {
    Played pool("15\n");
    for (const char *options : {"--b1 x", "--b1 5", "--b1 2000:0", "--b1 2000,3000 --b2 5,6,7", "--seed 5",
                                "--window 0", "--class 0x1ffffffff", "--grains 0", "--bogus", "extra"}) {
        CAPTURE(options);
        Ran ran = pool.run(grain + options);
        CHECK(ran.code == 2);
        CHECK(ran.err.find("--help") != std::string::npos);
    }
    CHECK(pool.run("").code == 1);  // no ellipsc beside the test's program
    CHECK(pool.run("--help").code == 0);
}

TEST_CASE("grains that fail are told about, and do not go on for ever") {
    Played pool("1000000016000000063\n");
    Ran ran = pool.run("--grain /bin/false --b1 2000");
    CHECK(ran.code == 1);
    CHECK(ran.out.empty());
    CHECK(ran.err == about("10 grains failed"));
    // A program that is not ellipsc.
    Played other("1000000016000000063\n");
    CHECK(other.run("--grain /bin/cat --b1 2000").code == 1);
}

TEST_CASE("Appendix B finds the factor, and again after a kill") {
    std::string arguments = std::string("-g ") + DCS_BINARY_DIR + "/bin/appendix_a -l 300 -d 5";
    std::string expected;
    int calls = 0;
    {
        Played pool("1000036000099\n0x1f73\n");
        Ran calm = pool.run(arguments, "", 0, "appendix_b_fake");
        CAPTURE(calm.err);
        REQUIRE(calm.code == 0);
        expected = calm.out;
        calls = calm.calls;
        const auto tells = [&](const char *words) { return expected.find(words) != std::string::npos; };
        CHECK((tells("factor 1000003 ") || tells("factor 1000033 ")));
        CHECK((tells("factor 83 ") || tells("factor 97 ")));
        CHECK(pool.run(arguments, "", 5, "appendix_b_fake").out.substr(0, 200) == expected.substr(0, 200));
    }
    for (int n = 2; n < calls; n += 5) {
        CAPTURE(n);
        Played pool("1000036000099\n0x1f73\n");
        CHECK(pool.run(arguments, std::to_string(n), 0, "appendix_b_fake").code == 137);
        Ran rerun = pool.run(arguments, "", n, "appendix_b_fake");
        CAPTURE(rerun.err);
        CHECK(rerun.code == 0);
        CHECK(rerun.out.find("factor 10000") != std::string::npos);
        CHECK(rerun.out.find("Grain ") != std::string::npos);
    }
}
