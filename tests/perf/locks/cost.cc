// One acquisition and release by one process, no other process wanting the lock.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "bench.h"
#include "locks/adaptive_lock.h"
#include "paper.h"

namespace dcs::locks::perf {
namespace {

struct Entry {
    std::string name;
    std::function<void()> once;
    std::vector<double> figures;  // microseconds, one of each round
};

int open_plain(const std::string &path) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) die("cannot open " + path);
    return fd;
}

void ofd(int fd, short type) {
    struct flock range = {};
    range.l_type = type;
    range.l_whence = SEEK_SET;
    range.l_len = 1;
    if (::fcntl(fd, F_OFD_SETLK, &range) != 0) die("F_OFD_SETLK");
}

Entry ofd_open_fd(const std::string &path) {
    const int fd = open_plain(path);
    return {"OFD lock, open descriptor",
            [fd] {
                ofd(fd, F_WRLCK);
                ofd(fd, F_UNLCK);
            },
            {}};
}

Entry flock_open_fd(const std::string &path) {
    const int fd = open_plain(path);
    return {"flock, open descriptor",
            [fd] {
                if (::flock(fd, LOCK_EX | LOCK_NB) != 0 || ::flock(fd, LOCK_UN) != 0) die("flock");
            },
            {}};
}

Entry both_open_fd(const std::string &path) {
    const int fd = open_plain(path);
    return {"OFD lock and flock, open descriptor",
            [fd] {
                ofd(fd, F_WRLCK);
                if (::flock(fd, LOCK_EX | LOCK_NB) != 0 || ::flock(fd, LOCK_UN) != 0) die("flock");
                ofd(fd, F_UNLCK);
            },
            {}};
}

Entry hold_open_fd(const std::string &directory) {
    auto file = std::make_shared<LockFile>(must(LockFile::open(place_at(directory, "hold"), FileKind::atom), "open"));
    return {"LockFile::hold, open descriptor",
            [file] {
                if (!must(file->hold(false, Deadline::none()), "hold")) die("no other requester");
                file->let_go();
            },
            {}};
}

Entry open_close(const std::string &path, bool with_ofd, bool with_flock) {
    const std::string name = with_ofd && with_flock ? "open, OFD lock and flock, close"
                             : with_ofd             ? "open, OFD lock, close"
                                                    : "open, flock, close";
    return {name,
            [path, with_ofd, with_flock] {
                const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
                if (with_ofd) ofd(fd, F_WRLCK);
                if (with_flock && ::flock(fd, LOCK_EX | LOCK_NB) != 0) die("flock");
                ::close(fd);
            },
            {}};
}

Entry hold_open_close(const std::string &directory) {
    const Place place = place_at(directory, "hold_close");
    return {"LockFile open, hold, close",
            [place] {
                LockFile file = must(LockFile::open(place, FileKind::atom), "open");
                if (!must(file.hold(false, Deadline::none()), "hold")) die("no other requester");
            },
            {}};
}

Entry paper(const std::string &directory) {
    auto lock = std::make_shared<PaperLock>(directory, "paper");
    return {"adaptive: the protocol of 1997",
            [lock] {
                if (!lock->get(0, 90)) die("no other requester");
                lock->release();
            },
            {}};
}

Entry adaptive(const std::string &directory, bool log) {
    LockRequest request;
    request.place = place_at(directory, log ? "adaptive" : "adaptive_silent");
    request.log = log;
    return {log ? "adaptive: record, sample and log" : "adaptive: record and sample",
            [request] {
                AdaptiveLock lock;
                const Answer answer = AdaptiveLock::get(this_world(), request, lock);
                if (answer.denied != Denied::no) die("no other requester: " + answer.text);
                lock.release({});
            },
            {}};
}

void measure(std::vector<Entry> &entries, int rounds, int times) {
    for (int round = 0; round < rounds; ++round) {
        for (Entry &entry : entries) {
            entry.once();
            const std::int64_t begin = now_ns();
            for (int i = 0; i < times; ++i) entry.once();
            entry.figures.push_back(static_cast<double>(now_ns() - begin) / times / 1000);
        }
    }
}

double of(const std::vector<Entry> &entries, const std::string &name) {
    for (const Entry &entry : entries)
        if (entry.name == name) return median(entry.figures);
    die("no figure of " + name);
}

void within_ten_percent(Bench &bench, const std::vector<Entry> &entries, const char *what, const char *ours,
                        const char *ofd_name, const char *both) {
    const double mine = of(entries, ours), bare = of(entries, ofd_name), two = of(entries, both);
    bench.goal({what, "within 10 % of OFD", text("%.2f us, OFD %.2f", mine, bare), mine <= 1.1 * bare,
                text("it takes flock(2) too, to exclude flock(1): OFD and flock alone are %.2f us; who opens looks at "
                     "owner, mode and header of the file",
                     two)});
}

}  // namespace

void cost(Bench &bench) {
    const std::string directory = bench.folder("cost");
    for (const char *name : {"/a", "/b", "/c", "/d"}) ::close(open_plain(directory + name));
    std::vector<Entry> entries;
    entries.push_back(ofd_open_fd(directory + "/a"));
    entries.push_back(flock_open_fd(directory + "/b"));
    entries.push_back(both_open_fd(directory + "/c"));
    entries.push_back(hold_open_fd(directory));
    entries.push_back(open_close(directory + "/a", true, false));
    entries.push_back(open_close(directory + "/b", false, true));
    entries.push_back(open_close(directory + "/c", true, true));
    entries.push_back(hold_open_close(directory));
    entries.push_back(paper(directory));
    entries.push_back(adaptive(directory, false));
    entries.push_back(adaptive(directory, true));
    measure(entries, bench.times(600), 50);  // so short that most of them are not interrupted
    std::printf("\nOne acquisition and release, no other requester (median of the rounds)\n");
    for (const Entry &entry : entries) std::printf("  %-40s %8.2f us\n", entry.name.c_str(), median(entry.figures));
    const double ours = of(entries, "adaptive: record, sample and log");
    figure("lock, get and release: adaptive, of OFD open to close", ours, of(entries, "open, OFD lock, close"), "us");
    figure("lock, get and release: LockFile::hold, of OFD", of(entries, "LockFile::hold, open descriptor"),
           of(entries, "OFD lock, open descriptor"), "us");
    bench.goal({"adaptive get and release with record and log", "<= 2.5 us",
                text("%.2f us, the paper's protocol %.2f", ours, of(entries, "adaptive: the protocol of 1997")),
                ours <= 2.5,
                text("18 system calls, four of them writes (record at the grant and at the release, "
                     "sample, log line); without the log %.2f us",
                     of(entries, "adaptive: record and sample"))});
    within_ten_percent(bench, entries, "exclusive lock, open descriptor", "LockFile::hold, open descriptor",
                       "OFD lock, open descriptor", "OFD lock and flock, open descriptor");
    within_ten_percent(bench, entries, "exclusive lock, open to close", "LockFile open, hold, close",
                       "open, OFD lock, close", "open, OFD lock and flock, close");
}

}  // namespace dcs::locks::perf
