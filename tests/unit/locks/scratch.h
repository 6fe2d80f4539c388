#pragma once
// A directory that goes away with the test, and processes for it to lock in.
#include <cstdlib>
#include <dirent.h>
#include <signal.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace scratch {

class Directory {
public:
    Directory() {
        char name[] = "/tmp/dcs_locks_XXXXXX";
        path_ = ::mkdtemp(name) != nullptr ? name : "";
    }
    Directory(const Directory &) = delete;
    ~Directory() { clear(path_); }
    std::string operator/(const std::string &name) const { return path_ + "/" + name; }
    const std::string &path() const { return path_; }

private:
    static void clear(const std::string &path) {
        if (DIR *dir = ::opendir(path.c_str())) {
            while (const dirent *entry = ::readdir(dir)) {
                std::string name = entry->d_name;
                if (name == "." || name == "..") continue;
                std::string inner = path + "/" + name;
                if (::unlink(inner.c_str()) != 0) clear(inner);
            }
            ::closedir(dir);
        }
        ::rmdir(path.c_str());
    }
    std::string path_;
};

// Runs body() in a forked process that then sleeps until it is killed; returns after body() ended.
template <class Body> pid_t sleeper(Body body) {
    int done[2];
    if (::pipe(done) != 0) return -1;
    pid_t pid = ::fork();
    if (pid == 0) {
        ::close(done[0]);
        char ok = body() ? 'y' : 'n';
        if (::write(done[1], &ok, 1) != 1) ::_exit(9);
        ::close(done[1]);
        for (;;) ::pause();
    }
    ::close(done[1]);
    char answer = 0;
    if (::read(done[0], &answer, 1) != 1) answer = 'n';
    ::close(done[0]);
    if (answer == 'y') return pid;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    return -1;
}

inline void end(pid_t pid) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
}

inline int exit_code(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : -1; }

}  // namespace scratch
