// Many processes take, leave and lose a lock while some are killed at random; each checks whether a process that it
// excludes is inside. Exit 1: a lock was held twice, a limit exceeded, an order not kept, or all waited for nothing.
//   locks_storm FAMILY SECONDS PROCESSES SEED [kill] [plant=NAME]
//   locks_storm wait|try FILE     holds FILE until its input ends
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "base/planted.h"
#include "locks/counted_slots.h"
#include "locks/files/queue.h"

using namespace dcs;
using namespace dcs::locks;

namespace {

constexpr int processes_max = 128, children_each = 4, limit = 3, wide_limit = 66, high_limit = 6;
std::int64_t stall = 60'000'000'000;  // a wake-up that is lost is lost for ever

// `doomed` is set before the kill: the kernel frees the locks of a dying process before it is seen to be dead.
enum : int { no_holder = 0, exclusive = 1, reader = 2, doomed = 8 };
struct Process {
    std::atomic<pid_t> pid;
    std::atomic<int> inside;
    std::atomic<long> taken, gave_up;
};
struct Shared {
    Process processes[processes_max * (1 + children_each)];
    std::atomic<long> violations, out_of_order, failures, last_ticket, changes;
    std::atomic<bool> stop;
};

Shared *shared = nullptr;
std::string planted_bug, family, directory;
int count = 0;
std::mt19937_64 dice;

int roll(int below) { return static_cast<int>(dice() % static_cast<std::uint64_t>(below)); }

void pause_us(int most) {
    timespec t = {0, 1000L * roll(most + 1)};
    ::nanosleep(&t, nullptr);
}

std::int64_t now_ns() {
    timespec t = {};
    ::clock_gettime(CLOCK_BOOTTIME, &t);
    return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

Deadline some_deadline() {
    if (roll(4) != 0) return Deadline::never();
    return Deadline{now_ns() + 1000 * roll(2000)};
}

void failed(const Status &s) {
    if (shared->failures++ < 5) std::fprintf(stderr, "pid %d: %s\n", ::getpid(), s.text.c_str());
    pause_us(1000);
}

struct Stay {
    const Process *process;
    pid_t pid;
    long taken;
    bool operator==(const Stay &) const = default;
};

bool counts(const Process &p, const Process *me, int kind) {
    const int inside = p.inside;
    return &p != me && inside != no_holder && inside < doomed && (kind == exclusive || inside == exclusive);
}

// Inside with us now, whom `kind` excludes or counts. A look takes time, in which one may leave and another come: so
// those count whom a second look finds in the same stay, and they all were inside between the two.
int others(const Process *me, int kind) {
    std::vector<Stay> seen;
    for (const Process &p : shared->processes)
        if (counts(p, me, kind)) seen.push_back({&p, p.pid, p.taken});
    int found = 0;
    for (const Stay &stay : seen)
        if (counts(*stay.process, me, kind) && stay == Stay{stay.process, stay.process->pid, stay.process->taken})
            ++found;
    return found;
}

void work_inside(Process *me, int kind, int allowed_others) {
    me->inside |= kind;
    for (int looks = 1 + roll(3); looks > 0; --looks) {
        if (others(me, kind) > allowed_others && me->inside < doomed) ++shared->violations;
        if (roll(2) == 0) pause_us(60);
    }
    ++me->taken;
    if (family == "suicides" && roll(2) == 0) {
        me->inside |= doomed;
        ::kill(::getpid(), SIGKILL);
    }
    me->inside &= doomed;
}

Place place_in(const std::string &name) {
    Place place;
    place.path = directory + "/" + name;
    place.atom = Atom{name, "", "storm"};
    return place;
}

// ---------------------------------------------------------------- the queue

void queue_turn(Process *me, LockFile &file) {
    const bool readers = family == "readers", with_order = family == "queue";
    const bool as_reader = readers && roll(3) != 0;
    Result<QueuePlace> place = QueuePlace::enter(file, as_reader);
    if (!place) return failed(place.status());
    Result<bool> first = place->wait_for_turn(some_deadline());
    if (!first) return failed(first.status());
    if (!*first) {
        ++me->gave_up;
        return;
    }
    Result<bool> got = file.hold(as_reader, Deadline::never());
    if (!got || !*got) return failed(got.status());
    const long ticket = place->ticket();
    if (with_order && shared->last_ticket.exchange(ticket) >= ticket) ++shared->out_of_order;
    place->leave();
    work_inside(me, as_reader ? reader : exclusive, 0);
    file.let_go();
}

// ---------------------------------------------------------------- slots

std::vector<SlotWish> wishes() {
    if (family == "wide") return {{place_in("wide"), wide_limit}};
    if (family == "shrunk") return {{place_in("slots"), limit + 1}};  // of which the high ones are held, see storm()
    if (family == "suicides") return {{place_in("slots"), 1}};
    if (family != "several") return {{place_in("slots"), family == "lowered" ? 1 + roll(limit) : limit}};
    // Together never more than `limit`; the narrow ones are taken in either order.
    std::vector<SlotWish> list = {{place_in("total"), limit}, {place_in("a" + std::to_string(roll(2))), 2}};
    if (roll(2) != 0) std::swap(list[0], list[1]);
    return list;
}

// A child keeps the slot after its parent let it go.
void leave_to_child(Process *me, Slots &slots, int allowed) {
    Process *children = &shared->processes[processes_max + (me - shared->processes) * children_each];
    Process *child = nullptr;
    for (int i = 0; i < children_each && child == nullptr; ++i) {
        pid_t none = 0;
        if (children[i].pid.compare_exchange_strong(none, -1)) child = &children[i];
    }
    if (child == nullptr) return;
    const pid_t pid = ::fork();
    if (pid == 0) {
        child->pid = ::getpid();
        dice.seed(static_cast<std::uint64_t>(::getpid()));
        work_inside(child, exclusive, allowed);
        child->pid = 0;
        ::_exit(0);
    }
    slots.abandon();
    if (pid > 0 && roll(2) == 0) ::waitpid(pid, nullptr, 0);
}

void slots_turn(Process *me) {
    const bool alone = family == "shrunk" || family == "suicides";
    const int allowed = alone ? 0 : (family == "wide" ? wide_limit : limit) - 1;
    const Deadline until = roll(4) == 0 ? Deadline::none() : some_deadline();
    Result<Slots> slots = Slots::take(this_world(), wishes(), until, "storm");
    if (!slots) {
        ++me->gave_up;
        if (slots.status().code != Code::limit) failed(slots.status());
        return;
    }
    if (family == "inherited" && roll(2) == 0) {
        leave_to_child(me, *slots, allowed);
        return;
    }
    work_inside(me, exclusive, allowed);
    if (roll(4) != 0) slots->release();
}

// ---------------------------------------------------------------- the storm

[[noreturn]] void worker(int number, std::uint64_t seed) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    dice.seed(seed);
    Process *me = &shared->processes[number];
    const bool queue = family == "queue" || family == "readers" || family == "counter";
    LockFile file;
    while (!shared->stop) {
        if (!queue) {
            slots_turn(me);
        } else {
            if (!file.is_open() || roll(8) == 0) {
                Result<LockFile> opened = LockFile::open(place_in("queue"), FileKind::atom);
                if (!opened) {
                    failed(opened.status());
                    continue;
                }
                file = std::move(*opened);
            }
            queue_turn(me, file);
        }
        while (::waitpid(-1, nullptr, WNOHANG) > 0) {}
        if (roll(8) == 0) pause_us(300);
    }
    ::_exit(0);
}

void start(int number) {
    std::fflush(stdout);
    const std::uint64_t seed = dice();
    const pid_t pid = ::fork();
    if (pid == 0) worker(number, seed);
    shared->processes[number].pid = pid;
}

void reap(pid_t pid) {
    for (Process &p : shared->processes) {
        if (p.pid != pid) continue;
        p.inside = no_holder;
        p.pid = 0;
        if (!shared->stop && &p < shared->processes + count) start(static_cast<int>(&p - shared->processes));
    }
}

void kill_one() {
    int number = roll(count);
    if (family == "inherited" && roll(3) == 0) number = processes_max + number * children_each + roll(children_each);
    Process &p = shared->processes[number];
    const pid_t pid = p.pid;
    if (pid <= 0) return;
    p.inside |= doomed;
    if (number >= processes_max && p.pid != pid) {  // it has just ended by itself, and the place may be taken again
        p.inside &= ~doomed;
        return;
    }
    ::kill(pid, SIGKILL);
    if (number < processes_max) {
        while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {}
        reap(pid);
    }
}

// What a stranger or a crash does to the hints of the files.
void damage() {
    const bool counter = family == "counter";
    const std::string path = directory + (counter ? "/queue" : "/slots");
    const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (fd < 0) return;
    std::vector<char> bytes(counter ? 64 : 80);
    if (roll(2) != 0)
        for (char &c : bytes) c = static_cast<char>(roll(256));
    if (counter) (void)!::pwrite(fd, bytes.data(), bytes.size(), counter_at);
    else if (roll(3) == 0) (void)!::ftruncate(fd, roll(2) != 0 ? 0 : slots_at + roll(slots_per_file * 256 + 80));
    else (void)!::pwrite(fd, bytes.data(), bytes.size(), slots_at + slots_per_file * 256 + roll(64));
    ::close(fd);
    ++shared->changes;
}

long total(std::atomic<long> Process::*what) {
    long sum = 0;
    for (Process &p : shared->processes) sum += p.*what;
    return sum;
}

int report(long kills, std::int64_t longest, bool stalled) {
    const long bad = shared->violations + shared->out_of_order + shared->failures + (stalled ? 1 : 0);
    std::printf(
        "%s: %d processes, %ld taken, %ld gave up, %ld killed, %ld times damaged: %ld held twice or above the limit, "
        "%ld out of order, %ld failures, longest pause of all %.3f s%s\n",
        family.c_str(), count, total(&Process::taken), total(&Process::gave_up), kills, shared->changes.load(),
        shared->violations.load(), shared->out_of_order.load(), shared->failures.load(),
        static_cast<double>(longest) * 1e-9, stalled ? ", STALLED" : "");
    return bad == 0 && total(&Process::taken) > 0 ? 0 : 1;
}

// The limit was lowered while slots above it were held.
std::vector<Slots> take_high_slots() {
    std::vector<Slots> kept;
    for (int i = 0; i < high_limit; ++i) {
        Result<Slots> slots = Slots::take(this_world(), {{place_in("slots"), high_limit}}, Deadline::none(), "high");
        if (slots) kept.push_back(std::move(*slots));
        else failed(slots.status());
    }
    if (!kept.empty()) kept.erase(kept.begin(), kept.begin() + limit);
    return kept;
}

int storm(double seconds, bool kills) {
    ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    std::vector<Slots> high;
    if (family == "shrunk") high = take_high_slots();
    for (int i = 0; i < count; ++i) start(i);
    const std::int64_t end = now_ns() + static_cast<std::int64_t>(seconds * 1e9);
    std::int64_t progress_at = now_ns(), longest = 0;
    long progress = 0, killed = 0;
    bool stalled = false;
    const auto watch = [&] {
        const long now = total(&Process::taken) + total(&Process::gave_up);
        const std::int64_t t = now_ns();
        longest = std::max(longest, t - progress_at);
        stalled = stalled || t - progress_at > stall;
        if (now != progress) progress_at = t;
        progress = now;
    };
    const bool damages = family == "counter" || family == "damaged" || family == "shrunk";
    const auto bad = [] { return shared->violations + shared->out_of_order + shared->failures > 0; };
    while (now_ns() < end && !stalled && !bad()) {
        if (kills && roll(2) == 0) kill_one(), ++killed;
        if (damages) damage();
        pause_us(2000);
        for (pid_t pid; (pid = ::waitpid(-1, nullptr, WNOHANG)) > 0;) reap(pid);
        watch();
    }
    shared->stop = true;
    for (int i = 0; i < count;) {
        const pid_t pid = shared->processes[i].pid;
        if (pid <= 0 || ::waitpid(pid, nullptr, WNOHANG) == pid) {
            ++i;
            continue;
        }
        if (stalled || bad()) {
            shared->processes[i].inside |= doomed;
            ::kill(pid, SIGKILL);
        }
        pause_us(1000);
        watch();
    }
    for (pid_t pid; (pid = ::waitpid(-1, nullptr, 0)) > 0 || errno == EINTR;) {}
    return report(killed, longest, stalled);
}

}  // namespace

namespace dcs {
// A moment here and there widens every window.
void failpoint(const char *) noexcept {
    if (shared != nullptr && roll(16) == 0) pause_us(100);
}
bool planted(const char *name) noexcept { return planted_bug == name; }
}  // namespace dcs

namespace {

// Beside other tools: holds the lock of this file until its input ends.
int hold_file(const std::string &path, bool wait) {
    Place place;
    place.path = path;
    place.atom = Atom{path, "", "storm"};
    place.named = place.adopt = false;
    Result<LockFile> file = LockFile::open(place, FileKind::atom);
    Result<bool> got = file ? file->hold(false, wait ? Deadline::never() : Deadline::none()) : file.status();
    std::puts(!got ? got.status().text.c_str() : *got ? "got it" : "busy");
    std::fflush(stdout);
    char c;
    while (got && *got && ::read(0, &c, 1) > 0) {}
    return 0;
}

}  // namespace

int main(int argc, char **argv) {
    if (argc == 3) return hold_file(argv[2], std::strcmp(argv[1], "wait") == 0);
    if (argc < 5) {
        std::fputs("usage: locks_storm FAMILY SECONDS PROCESSES SEED [kill] [plant=NAME] | wait|try FILE\n", stderr);
        return 2;
    }
    family = argv[1];
    count = std::min(std::atoi(argv[3]), processes_max);
    dice.seed(static_cast<std::uint64_t>(std::atoll(argv[4])));
    bool kills = false;
    for (int i = 5; i < argc; ++i) {
        const std::string word = argv[i];
        if (word == "kill") kills = true;
        else if (word.rfind("plant=", 0) == 0) planted_bug = word.substr(6);
    }
    if (!planted_bug.empty()) stall = 3'000'000'000;
    const char *base = std::getenv("TMPDIR");
    directory = std::string(base != nullptr ? base : "/tmp") + "/dcs_storm_XXXXXX";
    if (::mkdtemp(directory.data()) == nullptr) return 2;
    void *memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return 2;
    shared = new (memory) Shared{};
    shared->last_ticket = -1;
    const int result = storm(std::atof(argv[2]), kills);
    (void)!std::system(("rm -rf " + directory).c_str());
    return result;
}
