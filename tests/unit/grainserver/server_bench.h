#pragma once
// dcs_grainserver as a process, with a scheduler that the test plays.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <optional>

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "process/spawn.h"
#include "process/table.h"
#include "locks/dcs_atoms.h"
#include "locks/files/lock_search.h"
#include "places.h"
#include "scratch_dir.h"
#include "slot_held.h"
#include "soon.h"
#include "wire/message.h"

namespace bench {

using namespace dcs;

// Listens where the scheduler would; one grain server connects.
struct Scheduler {
    std::string path;
    Fd listener, conn;
    std::string buffer;

    explicit Scheduler(const std::string &directory) : path(directory + "/server.sock") {
        listener = Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        sockaddr_un a{};
        a.sun_family = AF_UNIX;
        REQUIRE(path.size() < sizeof a.sun_path);
        path.copy(a.sun_path, path.size());
        REQUIRE(::bind(listener.get(), reinterpret_cast<sockaddr *>(&a), sizeof a) == 0);
        REQUIRE(::listen(listener.get(), 5) == 0);
    }
    wire::FirstCall accept() {
        pollfd p{listener.get(), POLLIN, 0};
        REQUIRE(::poll(&p, 1, 60'000) == 1);
        conn = Fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
        REQUIRE(conn);
        buffer.clear();
        std::optional<wire::AnyMessage> m = next(60'000);
        REQUIRE(m);
        REQUIRE(std::get_if<wire::FirstCall>(&*m) != nullptr);
        return std::get<wire::FirstCall>(*m);
    }
    void send(const wire::AnyMessage &m) {
        const std::string frame = wire::encode(m, 0);
        std::size_t done = 0;
        while (done < frame.size()) {
            const ssize_t n = ::send(conn.get(), frame.data() + done, frame.size() - done, MSG_NOSIGNAL);
            if (n <= 0) return;
            done += static_cast<std::size_t>(n);
        }
    }
    bool fill(std::size_t wanted, Instant deadline) {
        while (buffer.size() < wanted) {
            const Duration left = deadline - boot_clock();
            pollfd p{conn.get(), POLLIN, 0};
            if (left.ns <= 0 || ::poll(&p, 1, static_cast<int>(left.ns / 1'000'000) + 1) != 1) return false;
            char bytes[65536];
            const ssize_t n = ::recv(conn.get(), bytes, sizeof bytes, 0);
            if (n <= 0) return false;
            buffer.append(bytes, static_cast<std::size_t>(n));
        }
        return true;
    }
    std::optional<wire::AnyMessage> next(int ms) {
        const Instant deadline = boot_clock() + milliseconds(ms);
        if (!fill(wire::header_bytes, deadline)) return std::nullopt;
        const Result<wire::FrameHeader> h =
            wire::decode_header(std::string_view(buffer).substr(0, wire::header_bytes), limits::server_frame_bytes);
        REQUIRE(h);
        if (!fill(wire::header_bytes + h->length, deadline)) return std::nullopt;
        Result<wire::AnyMessage> m =
            wire::decode_payload(*h, std::string_view(buffer).substr(wire::header_bytes, h->length));
        REQUIRE(m);
        buffer.erase(0, wire::header_bytes + h->length);
        return std::move(*m);
    }
    template <class M> M wait_for(int ms = 60'000) {
        const Instant deadline = boot_clock() + milliseconds(ms);
        while (boot_clock() < deadline)
            if (std::optional<wire::AnyMessage> m = next(100))
                if (M *found = std::get_if<M>(&*m)) return std::move(*found);
        FAIL("the message did not come");
        return {};
    }
};

struct Pool {
    ScratchDir dir;
    Scheduler scheduler{dir.path};
    std::string server_dir = dir.path + "/local1";
    pid_t server = 0;
    double interval = 0.6;
    int slots = 2;
    std::vector<std::string> options = {"--run-as", "self"};
    std::string programs = DCS_BINARY_DIR "/bin";
    std::vector<std::string> environment = current_environment();

    explicit Pool(bool at_once = true) {
        if (at_once) start();
    }
    ~Pool() { stop(SIGKILL); }  // what it has started is ended with the directory
    pid_t launcher_pid() const { return locks::holder_of(server_dir + "/launcher.lock"); }
    void start() {
        SpawnRequest r;
        r.program = programs + "/dcs_grainserver";
        // These tests run on busy machines, too: grains that get nothing there are not given back.
        r.arguments = {r.program,      "--name",      "local1", "--dir",      server_dir, "--scheduler",
                       scheduler.path, "--log-level", "info",   "--courtesy", "priority"};
        r.arguments.insert(r.arguments.end(), options.begin(), options.end());
        r.environment = environment;
        const Fd log(::open((dir.path + "/log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
        r.err = log.get();
        const Result<pid_t> pid = spawn(r);
        REQUIRE(pid);
        server = *pid;
    }
    int stop(int signal) {
        int status = 0;
        if (server != 0) {
            ::kill(server, signal);
            ::waitpid(server, &status, 0);
        }
        server = 0;
        return status;
    }
    wire::FirstCall greet() {
        wire::FirstCall call = scheduler.accept();
        scheduler.send(wire::Configure{interval, slots, 1});
        return call;
    }
};

}  // namespace bench
