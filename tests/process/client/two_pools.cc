// Two pools in one process: their sessions, results, idents and errors are apart. See two_pools.py.
//   two_pools EAST WEST GRAINS      the directories of the pools; DCS_DIR names EAST
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "dcs.hpp"

namespace {

int faults = 0;

void expect(bool holds, const std::string &what) {
    if (holds) return;
    ++faults;
    std::fprintf(stderr, "not so: %s; last error: %s %s\n", what.c_str(), d_errorname(d_errornumber()), d_errortext());
}

dcs::grain saying(const std::string &word) { return {.argv = {"/bin/echo", word}}; }

std::string word_of(const std::string &pool, int grain) { return pool + "/" + std::to_string(grain); }

// The calls of C, one pool and the other in turn, by one thread.
void interleaved(d_pool *east, d_pool *west, int grains) {
    d_pool *const pools[] = {east, west};
    const std::string names[] = {"east", "west"};
    std::set<int> seen[2];
    for (int p = 0; p < 2; ++p) {
        expect(d_pool_get_auth(pools[p], names[p].c_str()) == D_OK, names[p] + " knows this program");
        expect(d_pool_open_ses(pools[p], 1) == D_OK, "session 1 of " + names[p]);
    }
    for (int g = 0; g < grains; ++g)
        for (int p = 0; p < 2; ++p) {
            std::string word = word_of(names[p], g);
            char echo[] = "/bin/echo";
            char *argv[] = {echo, word.data(), nullptr};
            d_grain grain;
            d_grain_init(&grain);
            grain.gargv = argv;
            expect(d_pool_gexec_grain(pools[p], 1, g, &grain) == D_OK, "submitting " + word);
        }
    for (int i = 0; i < grains; ++i) {
        d_result results[2];
        d_result_init(results, 2);
        for (int p = 0; p < 2; ++p)
            expect(d_pool_gwait_result(pools[p], D_BLOCK, 1, &results[p]) == D_OK, "a result of " + names[p]);
        for (int p = 0; p < 2; ++p) {  // the text of the one outlives the wait in the other
            const int g = results[p].grain_num;
            expect(results[p].output && results[p].output == word_of(names[p], g) + "\n", "the text of " + names[p]);
            seen[p].insert(g);
        }
    }
    for (int p = 0; p < 2; ++p) {
        expect(seen[p].size() == static_cast<std::size_t>(grains), "every grain of " + names[p]);
        d_result none;
        d_result_init(&none, 1);
        expect(d_pool_gwait_result(pools[p], D_BLOCK, 1, &none) == D_E_NOTHING_LEFT, "no more of " + names[p]);
    }
}

// What is said of one is not known of the other.
void apart(d_pool *east, d_pool *west) {
    d_result result;
    d_result_init(&result, 1);
    expect(d_pool_open_ses(east, 77) == D_OK, "session 77 in the east");
    expect(d_pool_gwait_result(west, D_NO_BLOCK, 77, &result) == D_E_SESSION_UNKNOWN, "not in the west");
    expect(d_pool_gwait_result(east, D_NO_BLOCK, 77, &result) == D_E_NOTHING_LEFT, "empty in the east");
    expect(d_pool_close_ses(west, 77) == D_E_SESSION_UNKNOWN, "nothing to close in the west");
    expect(d_pool_close_ses(east, 77) == D_OK, "closed in the east");
    d_info *one = nullptr, *other = nullptr;
    expect(d_pool_query(east, D_Q_SYSTEM, nullptr, -1, -1, &one) == D_OK, "the east's system");
    expect(d_pool_query(west, D_Q_SYSTEM, nullptr, -1, -1, &other) == D_OK, "the west's system");
    expect(one && other && one->scheduler_pid != other->scheduler_pid, "two schedulers");
    d_query_free(one);
    d_query_free(other);
}

// A child continues with both pools, over connections of its own.
void forked(d_pool *east, d_pool *west) {
    const pid_t child = ::fork();
    if (child == 0) {
        const bool good = d_pool_gkill(east, 1, 0) == D_OK && d_pool_gkill(west, 1, 0) == D_OK;
        ::_exit(good ? 0 : 1);
    }
    int status = -1;
    expect(::waitpid(child, &status, 0) == child && status == 0, "the child's calls");
    expect(d_pool_gkill(east, 1, 0) == D_OK, "the parent's connection");
}

void wrong_options(const std::string &nowhere) {
    d_pool_options options;
    d_pool_options_init(&options);
    options.directory = "relative";
    expect(d_pool_open(&options) == nullptr && d_errornumber() == D_E_INVALID && std::strstr(d_errortext(), "relative"),
           "a relative directory is refused");
    options.directory = "/tmp";
    options.ident = "no blanks";
    expect(d_pool_open(&options) == nullptr && d_errornumber() == D_E_INVALID, "such an ident is refused");
    options.ident = nullptr;
    options.auth_fd = 0;
    expect(d_pool_open(&options) == nullptr && d_errornumber() == D_E_NO_AUTH, "standard input holds no credentials");
    options.struct_size = 0;
    expect(d_pool_open(&options) == nullptr && d_errornumber() == D_E_INVALID, "options without a size are refused");
    d_pool_options_init(&options);
    options.directory = nowhere.c_str();
    options.ident = "nowhere";
    d_pool *pool = d_pool_open(&options);
    expect(pool && d_pool_open_ses(pool, 1) == D_E_UNREACHABLE, "nothing answers where there is no pool");
    d_pool_close(pool);
    d_pool_close(nullptr);
}

// dcs.hpp, a thread for each pool, at the same time.
void through_objects(const dcs::pool &pool, const std::string &name, int grains) {
    dcs::session session = pool.resume(name, 2);
    std::vector<dcs::order> orders;
    for (int g = 0; g < grains; ++g) orders.push_back({g, saying(word_of(name, g))});
    session.submit(orders);
    int count = 0;
    for (const dcs::result &result : session.results(5)) {
        expect(result.output == word_of(name, result.grain) + "\n", "an object's text of " + name);
        expect(dcs::read_all(result.open("out").get()) == result.output, "an object's stream of " + name);
        ++count;
    }
    expect(count == grains, "all objects of " + name);
    session.close();
}

}  // namespace

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    const int grains = std::atoi(argv[3]);
    try {
        const dcs::pool east({.directory = argv[1]}), west({.directory = argv[2]});
        interleaved(east.handle(), west.handle(), grains);
        apart(east.handle(), west.handle());
        forked(east.handle(), west.handle());
        wrong_options(std::string(argv[1]) + "/nowhere");
        std::thread other([&] { through_objects(east, "east", grains); });
        through_objects(west, "west", grains);
        other.join();
        // The default pool is a third handle, beside that of the same directory.
        dcs::session session = dcs::session::resume("by-default", 3);
        session.submit(1, saying("default"));
        dcs::result result;
        expect(session.wait(result) && result.whole_output() == "default\n", "the default pool");
        const dcs::answer seen = east.query(D_Q_SESSIONS);
        bool found = false;
        for (const d_session_row &row : seen.sessions()) found = found || std::strcmp(row.ident, "by-default") == 0;
        expect(found, "the default pool is the east");
        // An ident in the options: no call names it.
        d_pool_options options;
        d_pool_options_init(&options);
        options.directory = argv[2];
        options.ident = "from-options";
        d_pool *third = d_pool_open(&options);
        expect(third && d_pool_gkill(third, 4711, 1) == D_E_SESSION_UNKNOWN, "whatever the first call is");
        expect(third && d_pool_open_ses(third, 9) == D_OK && d_pool_close_ses(third, 9) == D_OK, "ident by options");
        d_pool_close(third);
        expect(d_pool_close_ses(west.handle(), 1) == D_OK, "the west goes on when another handle to it was closed");
    } catch (const dcs::error &error) {
        std::fprintf(stderr, "%s: %s\n", error.name(), error.what());
        return 1;
    }
    if (faults == 0) std::puts("two pools, each with its own");
    return faults == 0 ? 0 : 1;
}
