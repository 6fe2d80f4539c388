// What failpoint() does in the test build of a daemon. Two variables of its environment:
//   DCS_FAILPOINTS      NAME=ACTION@N, several separated by commas: at the N-th visit of NAME the
//                       process is killed (`kill`), stopped (`stop`) or aborts (`abort`);
//                       PROGRAM:NAME=ACTION@N is only for that program, as daemons hand their
//                       environment on to those that they start
//   DCS_FAILPOINT_LOG   a file to which each name is appended when it is visited first, and a line
//                       `NAME ACTION N` before that is done; a % in its name becomes the program's
#include "base/failpoint.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>

#include <fcntl.h>
#include <unistd.h>

namespace dcs {
namespace {

struct Armed {
    std::string action;
    long visit = 1;
};

class Points {
public:
    Points() {
        const char *list = std::getenv("DCS_FAILPOINTS");
        std::string rest = list ? list : "";
        while (!rest.empty()) {
            const std::size_t comma = rest.find(',');
            arm(rest.substr(0, comma));
            rest = comma == std::string::npos ? std::string() : rest.substr(comma + 1);
        }
        open_log();
    }

    void visit(const std::string &name) {
        const std::lock_guard<std::mutex> guard(mutex_);
        if (own_ != ::getpid()) open_log();  // a child, such as the launcher's starter, has closed what it inherited
        const long count = ++visits_[name];
        if (count == 1) log(name);
        const auto armed = armed_.find(name);
        if (armed == armed_.end() || armed->second.visit != count) return;
        log(name + " " + armed->second.action + " " + std::to_string(count));
        if (armed->second.action == "kill") ::kill(::getpid(), SIGKILL);
        if (armed->second.action == "stop") ::raise(SIGSTOP);
        if (armed->second.action == "abort") std::abort();
    }

private:
    void open_log() {
        own_ = ::getpid();
        log_ = -1;
        if (const char *name = std::getenv("DCS_FAILPOINT_LOG")) {
            std::string path = name;
            if (const std::size_t at = path.rfind('%'); at != std::string::npos)
                path.replace(at, 1, program_invocation_short_name);
            log_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        }
    }
    void log(const std::string &text) {
        const std::string line = text + "\n";
        if (log_ >= 0 && ::write(log_, line.data(), line.size()) < 0) std::perror("DCS_FAILPOINT_LOG");
    }
    void arm(const std::string &point) {
        const std::size_t colon = point.find(':');
        if (colon != std::string::npos) {
            if (point.substr(0, colon) == program_invocation_short_name) arm(point.substr(colon + 1));
            return;
        }
        const std::size_t equals = point.find('='), at = point.find('@');
        const std::string action = equals == std::string::npos ? "" : point.substr(equals + 1, at - equals - 1);
        if (action != "kill" && action != "stop" && action != "abort") {
            std::fprintf(stderr, "DCS_FAILPOINTS: `%s` is not NAME=kill|stop|abort@N\n", point.c_str());
            std::_Exit(2);
        }
        const long visit = at == std::string::npos ? 1 : std::atol(point.c_str() + at + 1);
        armed_[point.substr(0, equals)] = Armed{action, visit};
    }

    std::mutex mutex_;
    std::map<std::string, Armed> armed_;
    std::map<std::string, long> visits_;
    int log_ = -1;
    pid_t own_ = 0;  // whose it is
};

}  // namespace

void failpoint(const char *name) noexcept {
    static Points points;
    points.visit(name);
}

}  // namespace dcs
