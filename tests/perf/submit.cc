// A control program that submits, and what the same costs without DCS; prints the seconds that it took. For submit.py.
//   perf_submit batches SESSION COUNT            COUNT grains by d_gexec_many
//   perf_submit callers SESSION CALLERS COUNT    CALLERS threads submit COUNT grains each, one a call
//   perf_submit one SESSION COUNT                submits a grain and waits for its result, COUNT times; the median
//   perf_submit log FILE COUNT GROUP             appends COUNT records, each GROUP made durable by fdatasync
//   perf_submit start FILE COUNT                 appends a record, starts /bin/true, appends its end, durably; median
// The same with beanstalkd at PORT of this host:
//   perf_submit put PORT CALLERS COUNT
//   perf_submit job PORT COUNT                   the median; needs a worker
//   perf_submit work PORT                        is one, until it is killed
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dcs.h"

extern char **environ;

namespace {

using Clock = std::chrono::steady_clock;
double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

[[noreturn]] void give_up(const std::string &why) {
    std::fprintf(stderr, "perf_submit: %s\n", why.c_str());
    std::exit(1);
}
void need(int error, const char *call) {
    if (error != D_OK) give_up(std::string(call) + ": " + d_strerror(error) + ": " + d_errortext());
}
void need(bool good, const char *what) {
    if (!good) give_up(std::string(what) + ": " + std::strerror(errno));
}

double median_of(int count, const std::function<void()> &act) {
    std::vector<double> times;
    for (int i = 0; i < count; ++i) {
        const auto start = Clock::now();
        act();
        times.push_back(since(start));
    }
    std::nth_element(times.begin(), times.begin() + count / 2, times.end());
    return times[static_cast<std::size_t>(count / 2)];
}

// All start together, each after it has connected.
double at_once(int callers, const std::function<std::function<void()>(int)> &connect) {
    std::vector<std::thread> threads;
    std::atomic<int> ready{0};
    std::atomic<bool> go{false};
    for (int i = 0; i < callers; ++i)
        threads.emplace_back([&, i] {
            const std::function<void()> act = connect(i);
            ++ready;
            while (!go) std::this_thread::yield();
            act();
        });
    while (ready < callers) std::this_thread::yield();
    const auto start = Clock::now();
    go = true;
    for (std::thread &thread : threads) thread.join();
    return since(start);
}

void start_true() {
    char program[] = "/bin/true";
    char *argv[] = {program, nullptr};
    pid_t pid = 0;
    int status = 0;
    need(::posix_spawn(&pid, program, nullptr, nullptr, argv, environ) == 0, "posix_spawn");
    need(::waitpid(pid, &status, 0) == pid && status == 0, "/bin/true");
}

// Grains of three words, as a parameter sweep has millions of them.
class Grains {
public:
    explicit Grains(int count, const char *program = "/bin/true") : words_(count), orders_(count) {
        for (int i = 0; i < count; ++i) {
            auto &[number, argv] = words_[static_cast<std::size_t>(i)];
            number = std::to_string(i);
            argv = {const_cast<char *>(program), const_cast<char *>("--from"), number.data(), nullptr};
            d_grain_order &order = orders_[static_cast<std::size_t>(i)];
            d_grain_order_init(&order, i);
            order.grain.gargv = argv.data();
        }
    }
    const std::vector<d_grain_order> &orders() const { return orders_; }

private:
    struct Words {
        std::string number;
        std::vector<char *> argv;
    };
    std::vector<Words> words_;
    std::vector<d_grain_order> orders_;
};

void open_session(int session) {
    need(d_get_auth("perf_submit"), "d_get_auth");
    need(d_open_ses(session), "d_open_ses");
}

double batches(int session, int count) {
    const Grains grains(count);
    open_session(session);
    const auto start = Clock::now();
    need(d_gexec_many(session, grains.orders().data(), grains.orders().size(), nullptr, nullptr), "d_gexec_many");
    return since(start);
}

double callers(int session, int threads, int count) {
    const Grains grains(threads * count);
    open_session(session);
    return at_once(threads, [&](int i) {
        d_result nothing;  // asked for so that the thread has its connection
        d_result_init(&nothing, 1);
        const int asked = d_gwait_result(D_NO_BLOCK, session, &nothing);
        if (asked != D_E_NOTHING_LEFT && asked != D_E_NOTHING_YET) need(asked, "d_gwait_result");
        return [&grains, session, i, count] {
            for (int k = i * count; k < (i + 1) * count; ++k)
                need(d_gexec_grain(session, k, &grains.orders()[static_cast<std::size_t>(k)].grain), "d_gexec_grain");
        };
    });
}

double one(int session, int count) {
    const Grains grains(count);
    open_session(session);
    int next = 0;
    return median_of(count, [&] {
        d_result result;
        d_result_init(&result, 1);
        need(d_gexec_grain(session, next, &grains.orders()[static_cast<std::size_t>(next)].grain), "d_gexec_grain");
        ++next;
        need(d_gwait_result(D_BLOCK, session, &result), "d_gwait_result");
        if (result.retcode != 0 || result.termsig != 0) give_up("a grain failed");
    });
}

constexpr std::size_t record_bytes = 100;

class Log {
public:
    explicit Log(const char *path) : fd_(::open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600)) {
        need(fd_ >= 0, path);
    }
    Log(const Log &) = delete;
    Log &operator=(const Log &) = delete;
    ~Log() { ::close(fd_); }
    void append(int records) {
        const std::string bytes(static_cast<std::size_t>(records) * record_bytes, 'x');
        need(::write(fd_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()), "write");
        need(::fdatasync(fd_) == 0, "fdatasync");
    }

private:
    int fd_;
};

double log(const char *path, int count, int group) {
    Log file(path);
    const auto start = Clock::now();
    for (int done = 0; done < count; done += group) file.append(std::min(group, count - done));
    return since(start);
}

double start(const char *path, int count) {
    Log file(path);
    return median_of(count, [&] {
        file.append(1);
        start_true();
        file.append(1);
    });
}

class Beanstalk {
public:
    explicit Beanstalk(int port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_in a{};
        a.sin_family = AF_INET;
        a.sin_port = htons(static_cast<std::uint16_t>(port));
        a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        const int yes = 1;
        need(fd_ >= 0 && ::connect(fd_, reinterpret_cast<const sockaddr *>(&a), sizeof a) == 0, "beanstalkd");
        ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
        answers_ = ::fdopen(::dup(fd_), "r");
    }
    Beanstalk(const Beanstalk &) = delete;
    Beanstalk &operator=(const Beanstalk &) = delete;
    ~Beanstalk() {
        std::fclose(answers_);
        ::close(fd_);
    }
    void ask(const std::string &words, const char *due) {
        need(::write(fd_, words.data(), words.size()) == static_cast<ssize_t>(words.size()), "beanstalkd");
        expect(due);
    }
    void tubes(const char *use, const char *watch) {
        ask(std::string("use ") + use + "\r\n", "USING");
        ask(std::string("watch ") + watch + "\r\n", "WATCHING");
        ask("ignore default\r\n", "WATCHING");
    }
    void put(const std::string &body) {
        ask("put 0 0 600 " + std::to_string(body.size()) + "\r\n" + body + "\r\n", "INSERTED");
    }
    void take(const std::function<void()> &work) {
        ask("reserve\r\n", "RESERVED");
        const std::string id = line_.substr(9, line_.find(' ', 9) - 9);
        expect("");  // the body
        work();
        ask("delete " + id + "\r\n", "DELETED");
    }

private:
    void expect(const char *due) {
        char text[1024];
        if (!std::fgets(text, sizeof text, answers_)) give_up("beanstalkd closed the connection");
        line_ = text;
        if (line_.rfind(due, 0) != 0) give_up("beanstalkd said " + line_);
    }
    int fd_;
    std::FILE *answers_;
    std::string line_;
};

const std::string body(record_bytes, 'x');  // NOLINT(cert-err58-cpp)

double put(int port, int threads, int count) {
    return at_once(threads, [port, count](int) {
        const auto queue = std::make_shared<Beanstalk>(port);
        return [queue, count] {
            for (int i = 0; i < count; ++i) queue->put(body);
        };
    });
}

double job(int port, int count) {
    Beanstalk queue(port);
    queue.tubes("jobs", "done");
    return median_of(count, [&] {
        queue.put(body);
        queue.take([] {});
    });
}

double work(int port) {
    Beanstalk queue(port);
    queue.tubes("done", "jobs");
    for (;;)
        queue.take([&] {
            start_true();
            queue.put("0");
        });
}

}  // namespace

int main(int argc, char **argv) {
    const std::string what = argc > 1 ? argv[1] : "";
    const auto number = [&](int i) { return i < argc ? std::atoi(argv[i]) : 0; };
    double seconds = 0;
    if (what == "batches" && argc == 4) seconds = batches(number(2), number(3));
    else if (what == "callers" && argc == 5) seconds = callers(number(2), number(3), number(4));
    else if (what == "one" && argc == 4) seconds = one(number(2), number(3));
    else if (what == "log" && argc == 5) seconds = log(argv[2], number(3), number(4));
    else if (what == "start" && argc == 4) seconds = start(argv[2], number(3));
    else if (what == "put" && argc == 5) seconds = put(number(2), number(3), number(4));
    else if (what == "job" && argc == 4) seconds = job(number(2), number(3));
    else if (what == "work" && argc == 3) seconds = work(number(2));
    else give_up("the first lines of submit.cc say how it is called");
    std::printf("%.9f\n", seconds);
    return 0;
}
