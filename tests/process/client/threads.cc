// A control program of many threads: what dcs.h says of them. See threads.py.
//   threads SESSION THREADS GRAINS
// Each thread submits GRAINS grains to the shared session and to one of its own, one by one or in batches, while others
// take results, ask, kill and read streams. In the end every number was seen once, and none of the texts was another's.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <pthread.h>

#include "dcs.h"

namespace {

int shared;
std::mutex mutex;
std::map<int, int> times_seen;  // of the shared session's grains
std::atomic<int> faults{0}, killed{0};

void fault(const char *what, int error) {
    std::fprintf(stderr, "%s: %s: %s\n", what, d_errorname(error), d_errortext());
    ++faults;
}

void must(const char *what, int error) {
    if (error != NO_ERROR) fault(what, error);
}

std::string word_of(int session, int grain) { return std::to_string(session) + "/" + std::to_string(grain); }

// Prints its session and number.
int submit(int session, int grain) {
    static char echo[] = "/bin/echo";
    std::string word = word_of(session, grain);
    char *argv[] = {echo, word.data(), nullptr};
    return d_gexec(session, grain, argv, nullptr, nullptr, 0, 0, 0, 0);
}

void submit_many(int session, int first, int count) {
    static char echo[] = "/bin/echo";
    std::vector<std::string> words;
    std::vector<std::vector<char *>> argvs;
    std::vector<d_grain_order> orders(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) words.push_back(word_of(session, first + i));
    for (std::string &word : words) argvs.push_back({echo, word.data(), nullptr});
    for (int i = 0; i < count; ++i) {
        d_grain_order &order = orders[static_cast<std::size_t>(i)];
        d_grain_order_init(&order, first + i);
        order.grain.gargv = argvs[static_cast<std::size_t>(i)].data();
    }
    std::size_t taken = 0;
    must("d_gexec_many", d_gexec_many(session, orders.data(), orders.size(), &taken, nullptr));
    if (taken != orders.size()) fault("d_gexec_many took only some", D_E_INTERNAL);
}

void seen(int session, int grain, const char *output) {
    if (output != word_of(session, grain) + "\n") fault("a text that is not this grain's", D_E_INTERNAL);
    if (session != shared) return;
    const std::lock_guard lock(mutex);
    ++times_seen[grain];
}

// All that are left of the session, even if others take some.
void take_results(int session, bool in_batches) {
    d_result results[7];
    d_result_init(results, 7);
    for (;;) {
        int grain = 0, count = 0;
        char *output = nullptr;
        const int error = in_batches ? d_gwait_many(D_BLOCK, session, 7, results, &count)
                                     : d_gwait(D_BLOCK, session, &grain, nullptr, nullptr, nullptr, nullptr, nullptr,
                                               nullptr, &output, nullptr, nullptr);
        if (error == D_E_NOTHING_LEFT) return;
        if (error != NO_ERROR) return fault("d_gwait", error);
        if (!in_batches) seen(session, grain, output);
        for (int i = 0; i < count; ++i) seen(session, results[i].grain_num, results[i].output);
    }
}

void ask(int session, int grain) {
    d_info *info = nullptr;
    must("d_query", d_query(D_Q_GRAIN, nullptr, session, grain, &info));
    if (info && (info->grain_count != 1 || info->grains[0].grain != grain))
        fault("an answer about another grain", D_E_INTERNAL);
    d_query_free(info);
    FILE *file = nullptr;
    must("d_grain_stream", d_grain_stream(nullptr, session, grain, "out", &file));
    if (file) std::fclose(file);
    const int error = d_gexec(session, -1, nullptr, nullptr, nullptr, 0, 0, 0, 0);
    if (error != D_E_INVALID || !std::strstr(d_errortext(), "grain_num")) fault("an error of another thread", error);
}

void work(int number, int grains) {
    const int own = shared + 1 + number, first = number * grains;
    must("d_open_ses", d_open_ses(own));
    if (number % 2 == 0) submit_many(shared, first, grains);
    for (int i = 0; i < grains; ++i) {
        if (number % 2 == 1) must("d_gexec", submit(shared, first + i));
        must("d_gexec of my own", submit(own, i));
        ask(own, i);
    }
    must("d_gexec of one to kill", submit(own, grains));
    if (d_gkill(own, grains) == NO_ERROR) ++killed;
    take_results(own, number % 2 == 0);
    take_results(shared, number % 3 == 0);
    must("d_close_ses", d_close_ses(own));
}

// It ends right behind its wait, where its connection is closed: without a cancellation point of its own.
void cancelled_in_a_wait(int session) {
    must("d_open_ses", d_open_ses(session));
    static char sleep[] = "/bin/sleep", seconds[] = "1";
    char *argv[] = {sleep, seconds, nullptr};
    must("d_gexec", d_gexec(session, 0, argv, nullptr, nullptr, 0, 0, 0, 0));
    static std::atomic<bool> begun{false};
    static int number = session;
    pthread_t thread{};
    const auto waits = [](void *) -> void * {
        begun = true;
        d_gwait(D_BLOCK, number, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                nullptr);
        return nullptr;
    };
    if (pthread_create(&thread, nullptr, waits, nullptr) != 0) return fault("pthread_create", D_E_INTERNAL);
    while (!begun) std::this_thread::yield();
    pthread_cancel(thread);
    pthread_join(thread, nullptr);
    must("d_close_ses", d_close_ses(session));
}

}  // namespace

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    shared = std::atoi(argv[1]);
    const int threads = std::atoi(argv[2]), grains = std::atoi(argv[3]);
    must("d_get_auth", d_get_auth("threads"));
    must("d_open_ses", d_open_ses(shared));
    std::vector<std::thread> all;
    for (int i = 0; i < threads; ++i) all.emplace_back(work, i, grains);
    for (std::thread &t : all) t.join();
    take_results(shared, true);  // a thread may have left before others had submitted
    must("d_close_ses", d_close_ses(shared));
    cancelled_in_a_wait(shared + threads + 1);
    for (int i = 0; i < threads * grains; ++i)
        if (times_seen[i] != 1) fault("a result was not seen once", D_E_INTERNAL);
    std::printf("%d threads, %zu results, %d killed, %d faults\n", threads, times_seen.size(), killed.load(),
                faults.load());
    return faults == 0 && killed == threads ? 0 : 1;
}
