#pragma once
// The command `dcs` as a person runs it, at a terminal or not, against a scheduler that says what a test wants: for
// what a real one says rarely, or never.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "unit/client/fake_scheduler.h"

namespace dcs::test {

// What a command wrote, its two streams in the order in which they came, and its exit code (128 + N by signal N).
struct Said {
    std::string text;
    int exit = -1;
};

// One run of the command. Standard input is empty, or a terminal at which a party typed `typed`.
class RunningCommand {
public:
    explicit RunningCommand(const std::vector<std::string> &words, const char *typed = nullptr);
    ~RunningCommand();
    RunningCommand(const RunningCommand &) = delete;
    RunningCommand &operator=(const RunningCommand &) = delete;
    pid_t pid() const { return pid_; }
    Said wait();

private:
    pid_t pid_ = -1;
    int said_ = -1, terminal_ = -1;
};

class CommandBench {
public:
    using Reply = std::optional<wire::AnyMessage>;
    using Answer = std::function<Reply(const wire::AnyMessage &)>;

    CommandBench();
    // `special` answers what it wants to. The rest is as of a pool with four sessions: 1 (active), 2 (terminated),
    // 3 (damaged), and ben's 4 (terminated); each has grain 1, which failed. A party that waits gets grain after
    // grain as a result, with the output "out".
    void answer(const Answer &special);
    template <class Request> void refuse(const wire::ErrorReply &error) {
        answer(
            [error](const wire::AnyMessage &m) { return std::holds_alternative<Request>(m) ? Reply(error) : Reply(); });
    }
    void as_usual();

    Said dcs(const std::vector<std::string> &words, const char *typed = nullptr) const {
        return RunningCommand(words, typed).wait();
    }

    FakeScheduler fake;
    std::string ident = "prog";  // of session 1
};

std::string own_name();
wire::AnyMessage as_of_a_pool(const wire::AnyMessage &request, const std::string &ident);

const wire::ErrorReply disk_full{static_cast<std::int32_t>(Code::no_space), "the disk is full", -1};
// What is said of it, with advice.
const std::string no_room =
    "the disk is full\n  hint: `dcs session clean` and `dcs session close` work with a full disk, too\n";

void check(const Said &said, int exit, const std::string &text);

}  // namespace dcs::test
