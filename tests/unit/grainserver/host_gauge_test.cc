// What is read of a host: one that the test makes up of files, and this one.
#include <csignal>
#include <cstdlib>

#include <sys/wait.h>
#include <unistd.h>

#include "grainserver/shell/host_gauge.h"
#include "scratch_dir.h"
#include "soon.h"
#include "support/catch.h"

using namespace dcs;
using namespace dcs::server;

namespace {
struct FakeHost {
    bench::ScratchDir dir;
    HostGauge gauge{dir.path};

    void put(const std::string &name, const std::string &text) {
        const std::string path = dir.path + name;
        REQUIRE(make_directories(path.substr(0, path.rfind('/'))));
        REQUIRE(replace_file(AT_FDCWD, path, text));
    }
    FakeHost() {
        put("/proc/loadavg", "2.50 1.00 0.50 3/100 4711\n");
        put("/proc/stat", "cpu  100 50 30 800 20 1 2 3 40 5\ncpu0 1 1 1 1\ncpu1 1 1 1 1\nintr 17\nctxt 4\n");
        put("/proc/meminfo", "MemTotal:  4000000 kB\nMemFree:  5 kB\nMemAvailable:  3000000 kB\n");
        put("/proc/vmstat", "pgpgin 9\npswpin 30\npswpout 12\npgmajfault 5\n");
        put("/proc/self/cgroup", "4:memory:/a/b\n2:cpu,cpuacct:/x\n0::/u\n");
        put("/proc/self/mountinfo",
            "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
            "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
            "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n");
    }
    void group(const std::string &path, const char *limit, const char *used, const char *stat) {
        put("/sys/fs/cgroup/memory" + path + "/memory.limit_in_bytes", limit);
        put("/sys/fs/cgroup/memory" + path + "/memory.usage_in_bytes", used);
        put("/sys/fs/cgroup/memory" + path + "/memory.stat", stat);
    }
};
constexpr const char *no_files = "inactive_file 7777\ntotal_inactive_file 0\ntotal_active_file 0\n";
}  // namespace

TEST_CASE("gauge: a host's figures from its files") {
    FakeHost f;
    const HostSample s = f.gauge.host();
    const std::int64_t tick = 1'000'000 / ::sysconf(_SC_CLK_TCK);
    CHECK(s.cores == 2);
    CHECK(s.total_us == 1006 * tick);  // guests are counted with their hosts
    CHECK(s.busy_us == 186 * tick);
    CHECK(s.yielding_us == 50 * tick);
    CHECK(s.stalled_us == -1);
    CHECK(s.swapped_pages == 42);
    CHECK(s.memory_kb == 4000000);
    CHECK(s.free_kb == 3000000);
    const HostFigures figures = f.gauge.figures();
    CHECK(figures.load == 2.5);
    CHECK(figures.free_memory_kb == 3000000);
    CHECK(figures.memory_kb == 4000000);
    f.put("/proc/pressure/memory", "some avg10=1.00 avg60=0.50 avg300=0.10 total=123456\nfull avg10=0 total=9\n");
    CHECK(f.gauge.host().stalled_us == 123456);
}

TEST_CASE("gauge: free is what the tightest control group leaves, without what can be read again") {
    FakeHost f;
    f.group("/a", "1073741824", "1063256064", no_files);  // 10 MB left
    f.group("/a/b", "104857600", "83886080", "total_inactive_file 1048576\ntotal_active_file 2097152\n");
    f.group("", "9223372036854771712", "1", no_files);  // none
    CHECK(f.gauge.figures().free_memory_kb == 10 * 1024);
    CHECK(f.gauge.figures().memory_kb == 100 * 1024);  // of the smallest group
    HostSample s = f.gauge.host();
    CHECK(s.memory_kb == 1024 * 1024);
    CHECK(s.memory_of == "control group /a");
    f.group("/a", "1073741824", "1000", no_files);
    s = f.gauge.host();
    CHECK(s.free_kb == (100 - 80 + 3) * 1024);
    CHECK(s.memory_of == "control group /a/b");
    f.group("/a/b", "104857600", "104857600", no_files);
    CHECK(f.gauge.host().free_kb == 0);
}

TEST_CASE("gauge: control groups of the second version, and a container that sees its own as the root") {
    FakeHost f;
    f.put("/proc/self/cgroup", "0::/pods/one/server\n");
    f.put("/proc/self/mountinfo", "41 31 0:38 /pods/one /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 rw\n");
    f.put("/sys/fs/cgroup/server/memory.max", "max\n");
    f.put("/sys/fs/cgroup/server/memory.current", "1000\n");
    f.put("/sys/fs/cgroup/memory.max", "67108864\n");
    f.put("/sys/fs/cgroup/memory.current", "60817408\n");
    f.put("/sys/fs/cgroup/memory.stat", "anon 1\ninactive_file 1048576\nactive_file 0\n");
    CHECK(f.gauge.figures().free_memory_kb == 7 * 1024);
    CHECK(f.gauge.host().memory_kb == 64 * 1024);
}

TEST_CASE("gauge: nothing that can be read is no reason for anything") {
    bench::ScratchDir empty;
    HostGauge gauge(empty.path);
    const HostSample s = gauge.host();
    CHECK(s.cores == 1);
    CHECK(s.memory_kb == 0);
    CHECK(s.stalled_us == -1);
    CHECK(gauge.grain(1).cpu_us == 0);
}

TEST_CASE("gauge: a tree of real processes: who computes, who waits for a core, who sleeps") {
    const pid_t parent = ::fork();
    if (parent == 0) {
        if (::fork() == 0)
            for (volatile unsigned x = 0; x == 0;) continue;
        std::string memory(20u << 20, 'x');
        for (volatile char *p = memory.data();; ::pause()) *p = 'y';
    }
    HostGauge gauge;
    GrainSample seen;
    REQUIRE(bench::soon([&] {
        seen = gauge.grain(parent);
        return seen.cpu_us >= 100'000 && seen.memory_kb >= 20 * 1024;
    }));
    if (::access("/proc/self/schedstat", R_OK) == 0) CHECK(seen.waited_us >= 0);
    const HostSample host = gauge.host();
    CHECK(host.total_us > 0);
    CHECK(host.busy_us > 0);
    CHECK(host.free_kb > 0);
    CHECK(host.free_kb < host.memory_kb);
    const std::string children =
        text_of("/proc/" + std::to_string(parent) + "/task/" + std::to_string(parent) + "/children");
    ::kill(std::atoi(children.c_str()), SIGKILL);
    ::kill(parent, SIGKILL);
    ::waitpid(parent, nullptr, 0);
}
