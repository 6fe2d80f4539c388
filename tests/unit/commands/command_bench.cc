#include "command_bench.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <pty.h>
#include <pwd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "places.h"
#include "support/catch.h"

namespace dcs::test {
namespace {

wire::AnyMessage rows(const wire::Query &query, const std::string &ident) {
    wire::QueryReply reply;
    const auto session = [&](const std::string &user, int number, const char *state) {
        if (!query.user.empty() && query.user != user) return;
        wire::SessionRow row;
        row.user = user;
        row.session = number;
        row.ident = ident;
        row.state = state;
        row.running = number == 1;
        row.finished = 1;
        reply.sessions.push_back(row);
    };
    if (query.type == wire::QueryType::sessions) {
        session(own_name(), 1, "active");
        session(own_name(), 2, "terminated");
        session(own_name(), 3, "damaged");
        session("ben", 4, "terminated");
    } else if (query.type == wire::QueryType::grains || query.type == wire::QueryType::grain) {
        wire::GrainRow row;
        row.user = query.user.empty() ? own_name() : query.user;
        row.session = query.session;
        row.grain = 1;
        row.state = "finished";
        row.exit_code = 1;
        row.argv = {"true"};
        reply.grains.push_back(row);
    }
    return reply;
}

wire::GrainResult result(std::int32_t place) {
    wire::GrainResult r;
    r.grain = r.completed = r.sent = place + 1;
    r.out = "out";
    r.out_length = 3;
    return r;
}

}  // namespace

void check(const Said &said, int exit, const std::string &text) {
    CHECK(said.text == text);
    CHECK(said.exit == exit);
}

std::string own_name() {
    const passwd *entry = ::getpwuid(::geteuid());
    return entry != nullptr ? entry->pw_name : "uid" + std::to_string(::geteuid());
}

wire::AnyMessage as_of_a_pool(const wire::AnyMessage &request, const std::string &ident) {
    if (const auto *query = std::get_if<wire::Query>(&request)) return rows(*query, ident);
    if (const auto *one = std::get_if<wire::Gwait>(&request)) return result(one->next);
    if (const auto *many = std::get_if<wire::GwaitMany>(&request)) return wire::GrainResults{{result(many->next)}};
    if (std::holds_alternative<wire::Fetch>(request)) return wire::Piece{};
    return plausible(request);
}

CommandBench::CommandBench() {
    ::setenv("DCS_PATIENCE_S", "1", 1);
    as_usual();
}

void CommandBench::as_usual() {
    answer([](const wire::AnyMessage &) { return Reply(); });
}

void CommandBench::answer(const Answer &special) {
    fake.script([special, ident = ident](const wire::AnyMessage &request, int) {
        Act act;
        const Reply reply = special(request);
        act.reply = reply ? *reply : as_of_a_pool(request, ident);
        return act;
    });
}

RunningCommand::RunningCommand(const std::vector<std::string> &words, const char *typed) {
    int said[2], slave = -1;
    REQUIRE(::pipe2(said, O_CLOEXEC) == 0);
    if (typed != nullptr) REQUIRE(::openpty(&terminal_, &slave, nullptr, nullptr, nullptr) == 0);
    else REQUIRE((slave = ::open("/dev/null", O_RDONLY)) >= 0);
    std::vector<std::string> all = {DCS_BINARY_DIR "/bin/dcs"};
    all.insert(all.end(), words.begin(), words.end());
    std::vector<char *> argv;
    for (std::string &word : all) argv.push_back(word.data());
    argv.push_back(nullptr);
    pid_ = ::fork();
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) {
        ::dup2(slave, STDIN_FILENO);
        ::dup2(said[1], STDOUT_FILENO);
        ::dup2(said[1], STDERR_FILENO);
        if (terminal_ >= 0) ::close(terminal_);
        ::close(slave);
        ::execv(argv[0], argv.data());
        ::_exit(126);
    }
    ::close(said[1]);
    ::close(slave);
    said_ = said[0];
    if (typed != nullptr)
        REQUIRE(::write(terminal_, typed, std::strlen(typed)) == static_cast<ssize_t>(std::strlen(typed)));
}

RunningCommand::~RunningCommand() {
    if (pid_ > 0) {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }
    if (said_ >= 0) ::close(said_);
    if (terminal_ >= 0) ::close(terminal_);
}

Said RunningCommand::wait() {
    Said said;
    char part[4096];
    for (;;) {
        const ssize_t n = ::read(said_, part, sizeof part);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        said.text.append(part, static_cast<std::size_t>(n));
    }
    int status = 0;
    REQUIRE(::waitpid(pid_, &status, 0) == pid_);
    pid_ = -1;
    said.exit = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return said;
}

}  // namespace dcs::test
