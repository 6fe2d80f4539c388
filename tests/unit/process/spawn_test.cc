#include "process/spawn.h"

#include <atomic>
#include <csignal>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "base/clock.h"
#include "support/catch.h"

using namespace dcs;

namespace {
struct Pipe {
    Pipe() { REQUIRE(::pipe2(fds, O_CLOEXEC) == 0); }
    ~Pipe() {
        close_write();
        ::close(fds[0]);
    }
    void close_write() {
        if (fds[1] >= 0) ::close(fds[1]);
        fds[1] = -1;
    }
    std::string all() {
        close_write();
        std::string text;
        char bytes[4096];
        for (ssize_t n; (n = ::read(fds[0], bytes, sizeof bytes)) > 0;) text.append(bytes, static_cast<std::size_t>(n));
        return text;
    }
    int fds[2];
};

SpawnRequest shell(const std::string &script) {
    SpawnRequest request;
    request.program = "/bin/sh";
    request.arguments = {"sh", "-c", script};
    request.environment = {"PATH=/usr/bin:/bin"};
    return request;
}

int status_of(pid_t pid) {
    int status = -1;
    REQUIRE(::waitpid(pid, &status, 0) == pid);
    return status;
}

// Standard output of a script.
std::string output_of(SpawnRequest request) {
    Pipe out;
    request.out = out.fds[1];
    Result<pid_t> pid = spawn(request);
    REQUIRE(pid);
    std::string text = out.all();
    CHECK(status_of(*pid) == 0);
    return text;
}
}  // namespace

TEST_CASE("a program gets its arguments, environment, streams and directory") {
    Pipe in, out, err;
    SpawnRequest request = shell("echo \"$0 $1|$A|$(pwd)\"; cat; echo oops >&2; exit 7");
    request.arguments = {"sh", "-c", request.arguments[2], "zero", "one two"};
    request.environment.push_back("A=b c");
    request.directory = "/usr";
    request.in = in.fds[0];
    request.out = out.fds[1];
    request.err = err.fds[1];
    Result<pid_t> pid = spawn(request);
    REQUIRE(pid);
    REQUIRE(::write(in.fds[1], "from here", 9) == 9);
    in.close_write();
    CHECK(out.all() == "zero one two|b c|/usr\nfrom here");
    CHECK(err.all() == "oops\n");
    int status = status_of(*pid);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 7);
    CHECK(output_of(shell("env | grep -v -e ^PATH= -e ^PWD= -e ^SHLVL= -e ^OLDPWD= -e ^_=; true")).empty());
}

TEST_CASE("streams may be crossed or left out") {
    CHECK(output_of(shell("readlink /proc/self/fd/0 /proc/$$/fd/2")) == "/dev/null\n/dev/null\n");
    Pipe out;
    // What is our 0 becomes its 1, what is our 1 its 0: in a child of ours, whose streams we may spoil.
    pid_t middle = ::fork();
    if (middle == 0) {
        int null = ::open("/dev/null", O_RDONLY);
        ::dup2(out.fds[1], 0);
        ::dup2(null, 1);
        SpawnRequest request = shell("readlink /proc/self/fd/0; test -p /proc/$$/fd/1 && echo pipe");
        request.in = 1;
        request.out = 0;
        Result<pid_t> pid = spawn(request);
        int status = -1;
        if (pid) ::waitpid(*pid, &status, 0);
        ::_exit(status == 0 ? 0 : 1);
    }
    CHECK(status_of(middle) == 0);
    CHECK(out.all() == "/dev/null\npipe\n");
}

TEST_CASE("only the listed descriptors are passed on") {
    // Without close-on-exec, as a careless library would leave them.
    int leak = ::open("/dev/null", O_RDONLY), low = ::open("/dev/null", O_RDONLY);
    int high = ::fcntl(low, F_DUPFD, 700), closing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    SpawnRequest request =
        shell("i=0; while [ $i -lt 720 ]; do [ -e /proc/$$/fd/$i ] && printf '%s ' $i; i=$((i+1)); done; true");
    CHECK(output_of(request) == "0 1 2 ");
    request.inherit = {high, low, closing, low};
    CHECK(output_of(request) == "0 1 2 3 4 5 6 ");
    CHECK((::fcntl(closing, F_GETFD) & FD_CLOEXEC) != 0);  // ours are as before
    CHECK(::fcntl(leak, F_GETFD) == 0);
    for (int fd : {leak, low, high, closing}) ::close(fd);
    request.inherit = {high};
    Result<pid_t> bad = spawn(request);
    REQUIRE_FALSE(bad);
    CHECK(bad.status().text.find("Bad file descriptor") != std::string::npos);
}

TEST_CASE("a new session is one, otherwise it is ours") {
    std::string sid = std::to_string(::getsid(0));
    SpawnRequest request = shell("set -- $(cut -d' ' -f1,5,6 /proc/$$/stat); echo $1 $2 $3");
    std::string text = output_of(request);
    CHECK(text.substr(text.rfind(' ') + 1) == sid + "\n");
    request.new_session = true;
    Pipe out;
    request.out = out.fds[1];
    Result<pid_t> pid = spawn(request);
    REQUIRE(pid);
    std::string number = std::to_string(*pid);
    CHECK(out.all() == number + " " + number + " " + number + "\n");
    CHECK(status_of(*pid) == 0);
}

TEST_CASE("signals are at their defaults and open in a session of its own") {
    pid_t middle = ::fork();
    if (middle == 0) {
        sigset_t mask;
        ::sigemptyset(&mask);
        ::sigaddset(&mask, SIGTERM);
        ::sigprocmask(SIG_BLOCK, &mask, nullptr);
        std::signal(SIGUSR1, SIG_IGN);
        // Above these are two that glibc keeps for itself.
        SpawnRequest request = shell("exec grep -c -E '^Sig(Blk|Ign):.*0000000$' /proc/self/status");
        request.new_session = true;
        Pipe out;
        request.out = out.fds[1];
        Result<pid_t> pid = spawn(request);
        if (!pid) ::_exit(1);
        int status = -1;
        std::string text = out.all();
        ::waitpid(*pid, &status, 0);
        ::sigprocmask(SIG_SETMASK, nullptr, &mask);
        bool ours = sigismember(&mask, SIGTERM) == 1 && sigismember(&mask, SIGUSR2) == 0;
        ::_exit(text == "2\n" && ours ? 0 : 2);
    }
    CHECK(status_of(middle) == 0);
}

TEST_CASE("what cannot start is told, and leaves nothing behind") {
    char file[] = "/tmp/dcs_spawn_XXXXXX";
    int fd = ::mkstemp(file);
    REQUIRE(::write(fd, "no program", 10) == 10);
    struct {
        std::string program, directory;
        Code code;
        const char *part;
    } cases[] = {
        {"/no/such/program", "", Code::not_found, "No such file"},
        {"/etc/passwd/x", "", Code::io_error, "Not a directory"},
        {"/bin/sh", "/no/such/directory", Code::not_found, "No such file"},
        {file, "", Code::io_error, "Permission denied"},
        {"/tmp", "", Code::io_error, "Permission denied"},
    };
    for (const auto &each : cases) {
        SpawnRequest request = shell("true");
        request.program = each.program;
        request.directory = each.directory;
        Result<pid_t> pid = spawn(request);
        REQUIRE_FALSE(pid);
        INFO(pid.status().text);
        CHECK(pid.status().code == each.code);
        CHECK(pid.status().text.find(each.part) != std::string::npos);
        CHECK(pid.status().text.find(each.program) == 0);
    }
    ::fchmod(fd, 0700);
    ::close(fd);
    SpawnRequest request = shell("true");
    request.program = file;
    Result<pid_t> pid = spawn(request);
    REQUIRE_FALSE(pid);
    CHECK(pid.status().text.find("Exec format error") != std::string::npos);
    ::unlink(file);
    CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);  // no zombie
}

TEST_CASE("starting from a fat process is not slower for it") {
    auto time_of = [](int count) {
        double best = 1e9;  // of these, which other work on this machine holds up now and then
        for (int i = 0; i < count; ++i) {
            const Instant start = boot_clock();
            SpawnRequest request = shell("");
            request.program = "/bin/true";
            Result<pid_t> pid = spawn(request);
            REQUIRE(pid);
            status_of(*pid);
            best = std::min(best, (boot_clock() - start).seconds());
        }
        return best;
    };
    time_of(5);
    double lean = time_of(20);
    const std::size_t size = 512u << 20;
    void *fat = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    REQUIRE(fat != MAP_FAILED);
    double heavy = time_of(20);
    ::munmap(fat, size);
    WARN("a start: " << lean << " s lean, " << heavy << " s with 512 MiB resident");
    CHECK(heavy < 10 * lean + 0.05);
}

TEST_CASE("several threads may start programs at once") {
    std::vector<std::thread> threads;
    std::atomic<int> wrong = 0;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&wrong, t] {
            for (int i = 0; i < 25; ++i) {
                SpawnRequest request = shell("exit " + std::to_string(t + 1));
                Result<pid_t> pid = spawn(request);
                int status = -1;
                if (!pid || ::waitpid(*pid, &status, 0) != *pid || status != (t + 1) << 8) ++wrong;
            }
        });
    for (std::thread &thread : threads) thread.join();
    CHECK(wrong == 0);
}

TEST_CASE("a forked process keeps the standard streams and what it names") {
    constexpr int numbers[] = {3, 40, 41, 43, 60};
    const pid_t pid = ::fork();
    if (pid == 0) {
        for (const int number : numbers) ::dup2(STDERR_FILENO, number);
        keep_descriptors({43, -1, 40});
        int open = 0;
        for (int i = 0; i < 5; ++i) open |= (::fcntl(numbers[i], F_GETFD) >= 0) << i;
        ::_exit(::fcntl(STDERR_FILENO, F_GETFD) >= 0 ? open : 64);
    }
    int status = -1;
    REQUIRE(::waitpid(pid, &status, 0) == pid);
    CHECK(status == (1 << 1 | 1 << 3) << 8);
}
