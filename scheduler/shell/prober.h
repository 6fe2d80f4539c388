#pragma once
// Is the host alive? A thread that probes addresses of overdue hosts: TCP where a port is said (a refusal is
// an answer), else an ICMP echo where the process may send one, else TCP to two ports. All that is asked is
// under way together, each address once however many hosts name it, and is over after some seconds.
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <poll.h>

#include "base/fd.h"
#include "base/instant.h"
#include "net/look_up.h"
#include "net/loop.h"
#include "net/socket_calls.h"
#include "scheduler/state/decision.h"
#include "scheduler/shell/probe_socket.h"

namespace dcs::shell {

class Prober {
public:
    using RawSocket = std::function<int(bool v6)>;  // see echo_probe()
    // `loop` is woken when a result is there. It outlives this.
    Prober(net::Loop &loop, RawSocket raw_socket);
    ~Prober();  // what is under way is dropped
    Prober(const Prober &) = delete;
    Prober &operator=(const Prober &) = delete;

    // Never blocks. With more than `probes_max` in progress, the answer is that the host may be alive.
    void ask(const core::ProbeHost &probe);
    std::vector<core::ProbeResult> take();

    static constexpr std::size_t probes_max = 4096;

private:
    struct Target {  // one address
        net::TcpAddress address;
        bool named = false;  // its places are known, or that there are none
        Fd lookup;           // under way
        std::vector<net::Place> places;
        Instant until{};
        bool trying = false;
        int open = 0;  // attempts under way
        bool heard = false;
        std::vector<std::uint64_t> probes;  // that wait for it
    };
    using Targets = std::map<std::string, Target>;
    struct Attempt {
        ProbeSocket socket;
        Targets::iterator target;
    };
    struct Probe {
        core::ProbeHost asked;
        std::map<std::string, bool> found;
        std::size_t left = 0;
    };

    void work();
    bool take_in();
    void join(std::uint64_t number, Probe &probe, const std::string &text);
    void look_up(Target &target);
    void take_places(Target &target);
    void try_targets(Instant now);
    void try_target(Targets::iterator target);
    void add(Targets::iterator target, const ProbeSocket &socket);
    void wait(Instant now);
    void read(const std::vector<pollfd> &polled);
    void settle(Targets::iterator target, bool alive);
    void answer(const Probe &probe);
    void wake();

    net::Loop &loop_;
    const RawSocket raw_socket_;  // of the thread
    int wake_fd_ = -1;

    std::mutex mutex_;
    std::vector<core::ProbeHost> asked_;
    std::vector<core::ProbeResult> results_;
    std::size_t under_way_ = 0;
    bool stop_ = false;

    // the thread's own
    std::map<std::uint64_t, Probe> probes_;
    Targets targets_;
    std::vector<Attempt> attempts_;
    std::size_t lookups_ = 0;  // under way
    std::uint64_t next_ = 1, next_cookie_ = 1;
    std::thread thread_;
};

}  // namespace dcs::shell
