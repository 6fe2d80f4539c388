// The backup on a simulated disk: after every operation of the disk, every state that a power failure could leave is
// recovered. What was acknowledged to a server and not taken by the scheduler must be there, whole and in order.
#include <cstdio>
#include <set>

#include "support/catch.h"
#include "unit/backupd/bench.h"

namespace dcs::backup {
namespace {

struct Promised {
    std::map<std::string, std::uint64_t> last;       // acknowledged, by host
    std::map<std::string, std::uint64_t> forgotten;  // that the scheduler may have learned it needs no more
    std::map<std::pair<std::string, std::uint64_t>, std::string> checkpoints;
};

std::string wrong_with(Bench &b, const Promised &promised) {
    if (std::string what = b.start(); !what.empty()) return what;
    if (!b.reports.empty()) return b.reports[0];
    if (std::string what = check(b.state()); !what.empty()) return what;
    for (const auto &[host, last] : promised.last) {
        const HostReports *there = b.state().host(host);
        if (!there || there->last < last) return host + ": an acknowledged report is lost";
        const auto known = promised.forgotten.find(host);
        const std::uint64_t forgotten = known == promised.forgotten.end() ? 0 : known->second;
        if (there->forgotten > forgotten) return host + ": forgotten what the scheduler does not have";
        std::set<std::uint64_t> held;
        for (const Held &h : there->held) held.insert(h.number);
        for (std::uint64_t n = forgotten + 1; n <= last; ++n)
            if (held.count(n) == 0) return host + ": report " + std::to_string(n) + " is missing";
    }
    b.scheduler_comes();
    for (const auto &h : b.all<wire::HandOver>(Bench::scheduler_conn)) {
        const auto known = promised.checkpoints.find({h.host, h.number});
        if (known == promised.checkpoints.end() || known->second != h.report.checkpoint + h.report.out)
            return h.host + ": report " + std::to_string(h.number) + " is not what was sent";
    }
    return {};
}

class Enumerator {
public:
    explicit Enumerator(std::uint64_t seed) : random_(seed) {}

    void run(int steps) {
        b_.server(ConnId{1}, "h1");
        b_.server(ConnId{2}, "h2");
        b_.run();
        b_.scheduler_comes();
        note_answers();
        b_.disk.after_operation = [this] { look(); };
        for (int i = 0; i < steps && bad.empty(); ++i) {
            act();
            b_.run();
            note_answers();
        }
        b_.disk.after_operation = nullptr;
    }

    std::uint64_t states = 0, forgotten = 0;
    std::string bad;

private:
    void act() {
        const std::uint64_t what = random_.below(10);
        const std::string host = random_.chance(50) ? "h1" : "h2";
        if (what < 7) {
            const ConnId conn = host == "h1" ? ConnId{1} : ConnId{2};
            const std::size_t sizes[] = {3, 200, 3000, 40'000};
            for (std::uint64_t n = 1 + random_.below(3); n > 0; --n) {
                const std::size_t size = sizes[random_.below(4)];
                const wire::GrainReport r = report_of(host == "h1" ? 1 : 2, ++sequence_[host], false, size);
                promised_.checkpoints[{host, sequence_[host]}] = r.checkpoint + r.out;
                b_.post(conn, r);
            }
        } else if (const HostReports *there = b_.state().host(host); there && there->sent > there->forgotten) {
            const std::uint64_t upto = there->forgotten + 1 + random_.below(there->sent - there->forgotten);
            promised_.forgotten[host] = upto;
            ++forgotten;
            b_.post(Bench::scheduler_conn, wire::HandOverTaken{host, upto});
        }
    }
    void note_answers() {
        for (const Bench::Sent &s : b_.sent)
            if (const auto *has = std::get_if<wire::BackupHas>(&s.message))
                if (has->ack.verdict == wire::Verdict::taken)
                    promised_.last[s.conn == ConnId{1} ? "h1" : "h2"] = has->number;
        b_.sent.clear();
    }
    void recover(const test::SimDisk &state) {
        ++states;
        Bench after(1u << 20, 4096);
        after.disk = state.killed();
        const std::string what = wrong_with(after, promised_);
        if (bad.empty()) bad = what;
    }
    void look() {
        for (const auto model : {test::CrashModel::weak, test::CrashModel::journal})
            b_.disk.each_crash(
                model, 12, random_.next(), [](std::uint64_t) { return true; },
                [&](test::SimDisk &state) { recover(state); });
    }

    Bench b_{1u << 20, 4096};
    test::Random random_;
    Promised promised_;
    std::map<std::string, std::uint32_t> sequence_;
};

}  // namespace

TEST_CASE("whatever a crash leaves, the backup has what it has acknowledged") {
    std::uint64_t states = 0, forgotten = 0;
    for (std::uint64_t seed = 1; states < 4'000; ++seed) {
        Enumerator run(seed);
        run.run(25);
        INFO("seed " << seed << ": " << run.bad);
        REQUIRE(run.bad.empty());
        states += run.states;
        forgotten += run.forgotten;
    }
    std::printf("backup: %llu crash states, %llu times forgotten, bad 0\n", static_cast<unsigned long long>(states),
                static_cast<unsigned long long>(forgotten));
    CHECK(forgotten > 0);
}

}  // namespace dcs::backup
