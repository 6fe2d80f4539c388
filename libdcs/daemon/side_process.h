#pragma once
// A process beside a daemon that keeps what the daemon gives up (privileges.h) and does a few things for it. It is
// asked in packets, one at a time, and ends with the daemon. What may be asked is the business of who uses this.
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include <sys/types.h>

#include "base/fd.h"
#include "base/status.h"

namespace dcs {

// The daemon's side. Its calls wait for the answer. When the other is gone, or silent for longer than its patience,
// they fail with `unreachable`, now and ever after. Thread-safe.
class SideProcess {
public:
    struct Words {
        std::string who;     // "the scheduler's keeper"
        std::string daemon;  // "the scheduler"
    };
    // Forks it, as who this process is now; `run` gets its end of the socket and does not return. Before any thread
    // starts, and before anything is read that it should not know.
    static Result<std::unique_ptr<SideProcess>> start(Words words, int patience_s, const std::function<void(int)> &run);
    ~SideProcess();
    SideProcess(const SideProcess &) = delete;
    SideProcess &operator=(const SideProcess &) = delete;

    int fd() const { return socket_; }      // readable when it is gone
    bool lost() const { return is_lost_; }  // gone, or silent, as a call has found out
    bool gone();                            // that, or found out now
    std::string how_it_ended();             // "was killed by signal 9"
    Status stops_daemon();                  // ok as long as it is not gone(): else what the daemon says as it ends
    // The answer; `fd` is the descriptor that came with it and the caller's, or -1.
    Result<std::string> ask(std::string_view packet, int *fd);
    // The bytes of an answer that side_answer() wrote, or its status. `fd`, if it is wanted: what came with it.
    Result<std::string> call(std::string_view packet, Fd *fd = nullptr);
    Status distrust();  // its answer has not the form that answers have

private:
    SideProcess(Words words, int socket, pid_t pid) : words_(std::move(words)), socket_(socket), pid_(pid) {}
    Status lose(const std::string &why);

    std::mutex mutex_;
    const Words words_;
    const int socket_;
    pid_t pid_;
    std::string lost_;  // why no call can succeed any more
    std::atomic<bool> is_lost_ = false;
};

inline constexpr std::size_t side_packet_max = 8192;

// The other side, first of all: keeps `socket` (which becomes descriptor 3) and standard error of all that was open,
// is called `name`, and is not ended by signals that are for the daemon's group.
Status settle_side_process(int &socket, const char *name);

struct SideAnswer {
    Status status;
    std::string bytes;  // only with Code::ok
};
// The rest of its life: unless it has not `settled`, which its log says, each packet goes to `answer`, which returns
// the reply, and sets the descriptor that goes with it and is closed then, until the peer has gone. An answer that
// takes longer than the patience ends the process, and so the waiting.
[[noreturn]] void serve_side_process(const Status &settled, int socket, int patience_s,
                                     const std::function<SideAnswer(std::string_view, int *)> &answer);

// Answers are a Code, then text or bytes.
std::string side_answer(const SideAnswer &answer);
std::optional<SideAnswer> read_side_answer(std::string_view packet);

}  // namespace dcs
