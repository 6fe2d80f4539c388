// Aborts are counted against what was worked on; real processes, real signals.
#include "scheduler/shell/suspect.h"

#include <csignal>
#include <cstdlib>
#include <functional>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/catch.h"

using dcs::shell::Suspect;

namespace {

struct File {
    std::string path = "/tmp/dcs-suspect-XXXXXX";
    File() { ::close(::mkstemp(path.data())); }
    ~File() { ::unlink(path.c_str()); }
};

// A process with the file open that works on `entity` and then ends like `end`. What it learned.
std::string life(const File &file, const std::string &entity, const std::function<void()> &end) {
    int pipe[2];
    REQUIRE(::pipe(pipe) == 0);
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        const rlimit no_core{0, 0};
        ::setrlimit(RLIMIT_CORE, &no_core);
        for (const int signal : {SIGABRT, SIGSEGV}) ::signal(signal, SIG_DFL);
        auto suspect = Suspect::open(file.path);
        if (!suspect) ::_exit(2);
        const std::string told = (*suspect)->culprit();
        if (::write(pipe[1], told.data(), told.size()) < 0) ::_exit(2);
        (*suspect)->working_on("something else");
        (*suspect)->working_on(entity);
        end();
        ::_exit(0);
    }
    ::close(pipe[1]);
    std::string told(1000, '\0');
    const ssize_t n = ::read(pipe[0], told.data(), told.size());
    REQUIRE(n >= 0);
    told.resize(static_cast<std::size_t>(n));
    ::close(pipe[0]);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK((WIFSIGNALED(status) || WEXITSTATUS(status) == 0));
    return told;
}

void abort_it() { std::abort(); }
void crash_it() { ::raise(SIGSEGV); }
void kill_it() { ::kill(::getpid(), SIGKILL); }
void end_it() {}

}  // namespace

TEST_CASE("two aborts running over one session make it the culprit, told once") {
    File file;
    CHECK(life(file, "session ann/1", abort_it) == "");
    CHECK(life(file, "session ann/1", crash_it) == "");
    CHECK(life(file, "", end_it) == "session ann/1");
    CHECK(life(file, "", end_it) == "");
}

TEST_CASE("no party is blamed for kills, for one abort, or for what another session did") {
    File file;
    for (int i = 0; i < 3; ++i) CHECK(life(file, "session ann/1", kill_it) == "");
    CHECK(life(file, "session ann/1", abort_it) == "");
    CHECK(life(file, "session bob/1", abort_it) == "");
    CHECK(life(file, "session ann/1", abort_it) == "");
    CHECK(life(file, "", abort_it) == "");
    CHECK(life(file, "", abort_it) == "");
    CHECK(life(file, "", end_it) == "");
}

TEST_CASE("kills in between do not make it innocent") {
    File file;
    CHECK(life(file, "session ann/1", abort_it) == "");
    CHECK(life(file, "session ann/2", kill_it) == "");
    CHECK(life(file, "session ann/1", abort_it) == "");
    CHECK(life(file, "", end_it) == "session ann/1");
}

TEST_CASE("a long name is cut, a file of nonsense is survived") {
    File file;
    const std::string longer(1000, 'x');
    CHECK(life(file, longer, abort_it) == "");
    CHECK(life(file, longer, abort_it) == "");
    CHECK(life(file, "", end_it) == longer.substr(0, 255));
    const int fd = ::open(file.path.c_str(), O_WRONLY);
    const std::string nonsense(600, '\xff');
    REQUIRE(::write(fd, nonsense.data(), nonsense.size()) == 600);
    ::close(fd);
    (void)life(file, "session ann/1", end_it);
    CHECK(life(file, "", end_it) == "");
}
