// dcs_scheduler as a process: its files, its signals, its descriptors, its probes.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "process/spawn.h"
#include "dcs.h"
#include "places.h"
#include "support/about.h"
#include "support/catch.h"
#include "wire/message.h"

using namespace dcs;

namespace {
std::string get_file(const std::string &path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

// A grain server that the test plays.
struct Caller {
    int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    std::string bytes;
    bool ended = false;

    Caller(const std::string &directory, const std::string &host) {
        sockaddr_un a{};
        a.sun_family = AF_UNIX;
        const std::string path = directory + "/server.sock";
        REQUIRE(path.size() < sizeof a.sun_path);
        path.copy(a.sun_path, path.size());
        REQUIRE(::connect(fd, reinterpret_cast<const sockaddr *>(&a), sizeof a) == 0);
        wire::FirstCall call;
        call.host = host;
        call.binary_class = "x";
        call.boot_id = "boot";
        call.instance = static_cast<std::uint64_t>(fd);
        send(std::move(call));
    }
    Caller(const Caller &) = delete;
    ~Caller() { ::close(fd); }
    void send(wire::AnyMessage m) {
        const std::string frame = wire::encode(std::move(m), 0);
        REQUIRE(::send(fd, frame.data(), frame.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(frame.size()));
    }
    std::optional<wire::AnyMessage> next(int ms) {
        const Instant deadline = boot_clock() + milliseconds(ms);
        for (;;) {
            if (bytes.size() >= wire::header_bytes) {
                const auto h = wire::decode_header(std::string_view(bytes).substr(0, wire::header_bytes), 1u << 20);
                REQUIRE(h);
                if (bytes.size() >= wire::header_bytes + h->length) {
                    auto m = wire::decode_payload(*h, std::string_view(bytes).substr(wire::header_bytes, h->length));
                    REQUIRE(m);
                    bytes.erase(0, wire::header_bytes + h->length);
                    return std::move(*m);
                }
            }
            pollfd p{fd, POLLIN, 0};
            const Duration left = deadline - boot_clock();
            char more[4096];
            if (left.ns <= 0 || ::poll(&p, 1, static_cast<int>(left.ns / 1'000'000) + 1) != 1) return {};
            const ssize_t n = ::recv(fd, more, sizeof more, 0);
            if (n <= 0) ended = true;
            if (n <= 0) return {};
            bytes.append(more, static_cast<std::size_t>(n));
        }
    }
    template <class M> bool hears(int ms) {
        const Instant deadline = boot_clock() + milliseconds(ms);
        while (!ended && boot_clock() < deadline)
            if (const auto m = next(static_cast<int>((deadline - boot_clock()).ns / 1'000'000)))
                if (std::get_if<M>(&*m)) return true;
        return false;
    }
};

// Calls in a process of their own: the library is one control program for life. The code of the last.
template <class F> int as_control(F calls) {
    const pid_t pid = ::fork();
    if (pid == 0) {
        int code = d_get_auth("daemon_test");
        if (code == NO_ERROR) code = calls();
        ::_exit(code);
    }
    int status = 0;
    REQUIRE(::waitpid(pid, &status, 0) == pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
int open_session(int number) {
    return as_control([&] { return d_open_ses(number); });
}

struct Daemon {
    std::string base, directory, log;
    pid_t pid = 0;

    Daemon() {
        char name[] = "/tmp/dcs_daemon_XXXXXX";
        REQUIRE(::mkdtemp(name) != nullptr);
        base = name;
        directory = base + "/scheduler";
        log = base + "/log";
        std::filesystem::create_directory(directory);
        write("hosts", "h1\n");
        ::setenv("DCS_DIR", base.c_str(), 1);
    }
    ~Daemon() {
        stop();
        std::filesystem::remove_all(base);
    }
    void write(const std::string &name, const std::string &text) { std::ofstream(directory + "/" + name) << text; }
    // True when it serves; else it has ended.
    bool start() {
        int ready[2];
        REQUIRE(::pipe2(ready, O_CLOEXEC) == 0);
        SpawnRequest r;
        r.program = DCS_BINARY_DIR "/bin/dcs_scheduler";
        r.arguments = {r.program, "--dir", directory, "--ready-fd", "3"};
        r.environment = current_environment();
        r.inherit = {ready[1]};
        r.err = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        const Result<pid_t> started = spawn(r);
        ::close(r.err);
        ::close(ready[1]);
        REQUIRE(started);
        pid = *started;
        char word[8];
        const bool serves = ::read(ready[0], word, sizeof word) > 0;
        ::close(ready[0]);
        return serves;
    }
    void stop() {
        if (pid == 0) return;
        ::kill(pid, SIGTERM);
        ::waitpid(pid, nullptr, 0);
        pid = 0;
    }
    // Tells it to read its files again and waits until the log has `words` once more.
    void reread(const std::string &words) {
        const auto count = [&] {
            const std::string text = get_file(log);
            int n = 0;
            for (std::size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) ++n;
            return n;
        };
        const int before = count();
        ::kill(pid, SIGHUP);
        for (int i = 0; i < 6000 && count() == before; ++i) ::usleep(10'000);
        INFO(get_file(log));
        REQUIRE(count() > before);
    }
    bool takes_in(const std::string &host) { return Caller(directory, host).hears<wire::Configure>(60'000); }
};
}  // namespace

TEST_CASE("a broken policy stops the start, with file and line") {
    Daemon d;
    d.write("policy", "fair_share on\nprobation many\n");
    REQUIRE_FALSE(d.start());
    CHECK(get_file(d.log) == about(d.directory + "/policy:2 probation must number"));
}

TEST_CASE("host table and policy are read again together: both, or neither") {
    Daemon d;
    d.write("policy", "sessions_per_user 1\n");
    REQUIRE(d.start());
    CHECK(open_session(1) == NO_ERROR);
    CHECK(open_session(2) == D_E_LIMIT);
    CHECK_FALSE(d.takes_in("h2"));
    d.write("hosts", "h1\nh2\n");
    d.write("policy", "sessions_per_user few\n");
    d.reread("the old host table, policy and limits remain in effect: " + d.directory +
             "/policy:1: sessions_per_user "
             "must be");
    CHECK_FALSE(d.takes_in("h2"));
    CHECK(open_session(2) == D_E_LIMIT);
    d.write("hosts", "h1\nh2 slots=x\n");
    d.write("policy", "sessions_per_user 2\n");
    d.reread("the old host table, policy and limits remain in effect: " + d.directory + "/hosts:2: slots must be");
    CHECK(open_session(2) == D_E_LIMIT);
    d.write("hosts", "h1\nh2\n");
    d.reread("reread");
    CHECK(d.takes_in("h2"));
    CHECK(open_session(2) == NO_ERROR);
    CHECK(open_session(3) == D_E_LIMIT);
    ::unlink((d.directory + "/policy").c_str());  // a missing one is the default
    d.reread("reread");
    CHECK(open_session(3) == NO_ERROR);
}

TEST_CASE("a table that would remove all hosts is refused, and hosts work on") {
    Daemon d;
    const std::string stays =
        "the old host table, policy and limits remain in effect: " + d.directory + "/hosts lists ";
    const std::string advice = ": put their lines back, or remove each on purpose with `dcs host rm NAME`";
    REQUIRE(d.start());
    d.write("hosts", "# nothing\ndesk role=client\n");  // h1 never called
    d.reread(stays + "no host that runs grains, and would remove h1" + advice);
    Caller h1(d.directory, "h1");
    REQUIRE(h1.hears<wire::Configure>(60'000));
    d.write("hosts", "");
    d.reread(stays + "no host that runs grains, and would remove h1" + advice);
    d.write("hosts", "h2\n");
    d.reread(stays + "none of the connected hosts, and would remove h1" + advice);
    d.write("hosts", "h1 slots=2\n");
    d.reread("policy " + d.directory + "/policy reread");
    CHECK(h1.hears<wire::Configure>(60'000));  // on the same connection
}

TEST_CASE("the limit of descriptors is raised for all connections, as far as it may") {
    Daemon d;
    rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
    rlimit low = before;
    low.rlim_cur = 200;
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &low) == 0);
    const bool serves = d.start();
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
    REQUIRE(serves);
    rlimit now{};
    REQUIRE(::prlimit(d.pid, RLIMIT_NOFILE, nullptr, &now) == 0);
    CHECK(now.rlim_cur >= std::min<rlim_t>(limits::connections + 256, before.rlim_max));
    CHECK(now.rlim_max == before.rlim_max);
}

TEST_CASE("more servers than one user may have connections: all of them are taken in") {
    Daemon d;
    const int count = static_cast<int>(limits::connections_per_user) + 50;
    std::string table;
    for (int i = 0; i < count; ++i) table += "h" + std::to_string(i) + "\n";
    d.write("hosts", table);
    REQUIRE(d.start());
    std::vector<std::unique_ptr<Caller>> callers;
    for (int i = 0; i < count; ++i) callers.push_back(std::make_unique<Caller>(d.directory, "h" + std::to_string(i)));
    int taken_in = 0;
    for (const auto &caller : callers) taken_in += caller->hears<wire::Configure>(60'000);
    CHECK(taken_in == count);
}

TEST_CASE("an overdue host is asked about, and has longer if a party answers") {
    const bool answers = GENERATE(true, false);
    Daemon d;
    const std::string times = " interval=0.2 alert=0.4 limit=0.6 extended=10";
    // No party listens on port 1 of this host: the kernel refuses, so it is alive.
    const std::string check = answers ? " check=127.0.0.1:1" : "";
    d.write("hosts", "silent class=1" + times + check + "\nother class=2" + times + "\n");
    REQUIRE(d.start());
    Caller silent(d.directory, "silent"), other(d.directory, "other");
    REQUIRE(silent.hears<wire::Configure>(60'000));
    REQUIRE(other.hears<wire::Configure>(60'000));
    silent.send(wire::CallIn{0, 1 << 20, false});
    char program[] = "/bin/true";
    char *argv[] = {program, nullptr};
    REQUIRE(as_control([&] {
                const int code = d_open_ses(1);
                return code != NO_ERROR ? code : d_gexec(1, 1, argv, nullptr, "", 0, 0, 0, 0);
            }) == NO_ERROR);
    for (int i = 0; i < 300 && !silent.hears<wire::Launch>(200); ++i) silent.send(wire::CallIn{0, 1 << 20, false});
    const Instant began = boot_clock();
    bool moved = false;
    while (!moved && boot_clock() - began < seconds(60)) {
        other.send(wire::CallIn{0, 1 << 20, true});
        moved = other.hears<wire::Launch>(100);
    }
    const Duration took = boot_clock() - began;
    INFO(took.seconds());
    CHECK(moved);
    if (answers) CHECK(took > seconds(5));
    else CHECK(took < seconds(5));
}
