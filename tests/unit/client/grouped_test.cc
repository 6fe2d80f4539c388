// Threads that submit single grains at the same time: what goes together, and what each is answered.
#include <atomic>
#include <map>

#include <sys/wait.h>
#include <unistd.h>

#include "base/limits.h"
#include "c_calls.h"
#include "client/pool.h"

using namespace dcs;
using namespace dcs::client;
using namespace dcs::test;

namespace {

GroupedGrainPtr grain_of(int session, std::uint64_t bytes = 100) {
    auto grain = std::make_shared<GroupedGrain>();
    grain->session = session;
    grain->bytes = bytes;
    return grain;
}

// The first that is submitted is on its way; then others come, whose threads keep the sizes of the groups they led.
struct Crowd {
    Pool pool{PoolOptions{}};
    std::unique_ptr<Group> under_way = std::make_unique<Group>(pool.submitting(), grain_of(1), seconds(30));
    std::vector<GroupedGrainPtr> late;
    std::vector<std::size_t> led;
    int too_late = 0, waited = 0;
    std::mutex mutex;
    std::vector<std::thread> threads;

    void come(GroupedGrainPtr grain, Duration patience = seconds(1000)) {
        late.push_back(grain);
        threads.emplace_back([this, patience, mine = std::move(grain)]() mutable {
            Group group(pool.submitting(), std::move(mine), patience);
            if (group.grains().empty()) return;
            group.status = group.too_late() ? fail(Code::unreachable, "") : fail(Code::limit, "of its group");
            const std::lock_guard lock(mutex);
            too_late += group.too_late();
            waited += group.waited() > Duration{};
            led.push_back(group.grains().size());
        });
        while (late.back().use_count() < 3) std::this_thread::yield();  // its thread's, the pool's and ours: it waits
    }
    // When the first has been submitted.
    void go_on() {
        under_way.reset();
        for (std::thread &thread : threads) thread.join();
        std::sort(led.begin(), led.end());
    }
};

}  // namespace

TEST_CASE("grains that threads submit while another is on its way go together") {
    Crowd crowd;
    for (int i = 0; i < 5; ++i) crowd.come(grain_of(1));
    crowd.go_on();
    CHECK(crowd.led == std::vector<std::size_t>{5});
    int told = 0;
    for (const auto &grain : crowd.late)
        told += grain->state == GroupedGrain::done && grain->status.code == Code::limit;
    CHECK(told == 4);
}

TEST_CASE("a group is of one session, and no larger than a request may be") {
    Crowd crowd;
    crowd.come(grain_of(1, limits::batch_bytes - 50));
    crowd.come(grain_of(2));
    crowd.come(grain_of(1, 50));
    crowd.come(grain_of(2));
    crowd.come(grain_of(1, 100));
    crowd.go_on();
    CHECK(crowd.led == std::vector<std::size_t>{1, 2, 2});
}

TEST_CASE("time in which the scheduler does not answer is of the patience of all threads that wait") {
    Crowd crowd;
    const bool patient = GENERATE(true, false);
    for (int i = 0; i < 4; ++i) crowd.come(grain_of(1), patient ? seconds(1000) : Duration{1});
    SECTION("the first was not answered") {
        crowd.under_way->status = fail(GENERATE(Code::unreachable, Code::broken), "");
        crowd.go_on();
        CHECK(crowd.too_late == !patient);
        CHECK(crowd.waited == 1);
    }
    SECTION("the first was refused") {
        crowd.under_way->status = fail(Code::limit, "");
        crowd.go_on();
        CHECK(crowd.too_late + crowd.waited == 0);
    }
    CHECK(crowd.led == std::vector<std::size_t>{4});
}

TEST_CASE("threads submit each grain once, and each gets its own refusal") {
    FakeScheduler fake;
    get_auth();
    std::atomic<int> groups{0};
    fake.script([&](const wire::AnyMessage &m, int) {
        Act a = as_usual(m);
        if (const auto *many = std::get_if<wire::GexecMany>(&m)) {
            ++groups;
            for (const auto &order : many->orders)
                if (order.grain % 10 == 7) a.reply = wire::ErrorReply{D_E_GRAIN_DIFFERS, "of a group", order.grain};
        }
        if (const auto *one = std::get_if<wire::Gexec>(&m); one && one->grain % 10 == 7)
            a.reply = wire::ErrorReply{D_E_GRAIN_DIFFERS, "grain " + std::to_string(one->grain), one->grain};
        return a;
    });
    std::atomic<int> wrong{0}, submitted{0};
    const auto act = [&] {
        for (int n = 0; n < 200 || groups < 20; ++n) {
            const int grain = submitted++;
            const int error = d_gexec(1, grain, words, nullptr, "", 0, 0, 0, 0);
            if (grain % 10 != 7) wrong += error != NO_ERROR;
            else wrong += error != D_E_GRAIN_DIFFERS || d_errortext() != "grain " + std::to_string(grain);
        }
    };
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) threads.emplace_back(act);
    for (std::thread &thread : threads) thread.join();
    CHECK(wrong == 0);
    std::map<std::int32_t, int> taken;  // how often the scheduler said yes
    for (const auto &[id, m] : fake.all<wire::Gexec>()) taken[m.grain] += m.grain % 10 != 7;
    for (const auto &[id, m] : fake.all<wire::GexecMany>()) {
        bool refused = false;
        for (const auto &order : m.orders) refused |= order.grain % 10 == 7;
        for (const auto &order : m.orders) taken[order.grain] += !refused;
    }
    REQUIRE(taken.size() == static_cast<std::size_t>(submitted));
    for (const auto &[grain, times] : taken) CHECK(times == (grain % 10 != 7));
}

TEST_CASE("a forked child submits although the parent's threads are on their way") {
    FakeScheduler fake;
    get_auth();
    std::atomic<int> asked{0};
    std::atomic<bool> forked{false};
    fake.script([&](const wire::AnyMessage &m, int) {
        const bool submits = is<wire::Gexec>(m) || is<wire::GexecMany>(m);  // of all threads at once, perhaps
        if (submits) ++asked;
        while (submits && !forked) std::this_thread::yield();
        return as_usual(m);
    });
    std::vector<std::thread> threads;
    std::atomic<int> good{0};
    for (int i = 0; i < 6; ++i)
        threads.emplace_back([&, i] { good += d_gexec(1, i, words, nullptr, "", 0, 0, 0, 0) == NO_ERROR; });
    while (asked == 0) std::this_thread::yield();
    const pid_t child = ::fork();
    if (child == 0) ::_exit(d_gexec(1, 100, words, nullptr, "", 0, 0, 0, 0) == NO_ERROR ? 0 : 1);
    forked = true;
    int status = -1;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    for (std::thread &thread : threads) thread.join();
    CHECK(good == 6);
}
