#pragma once
// The lock protocol of 1997 as it is printed: two inodes for each atom, unlink, a process id, and no lock in the
// kernel. A yardstick, with its races.
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <string>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace dcs::locks::perf {

class PaperLock {
public:
    PaperLock(const std::string &directory, const std::string &atom)
        : lock_(directory + "/lock." + atom), last_(directory + "/last." + atom), log_(directory + "/log") {}

    // Minutes, as there.
    bool get(long if_elapsed, long expire_after) {
        const std::time_t now = std::time(nullptr);
        if ((now - modified(last_, now, true)) / 60 < if_elapsed) return false;
        const std::time_t since = modified(lock_, now, false);
        if (since != 0 && (now - since) / 60 < expire_after) return false;
        if (since != 0) {
            const long pid = owner();
            if (pid > 1)
                for (const int number : {SIGCONT, SIGINT, SIGTERM, SIGKILL}) ::kill(static_cast<pid_t>(pid), number);
            ::unlink(lock_.c_str());
            write_log("expired");
        }
        const int fd = ::open(lock_.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
        char text[32];
        const int length = std::snprintf(text, sizeof text, "%d\n", static_cast<int>(::getpid()));
        if (fd < 0 || ::write(fd, text, static_cast<std::size_t>(length)) != length) return false;
        ::close(fd);
        write_log("lock");
        return true;
    }
    void release() {
        ::unlink(lock_.c_str());
        const int fd = ::open(last_.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
        ::futimens(fd, nullptr);
        ::close(fd);
        write_log("release");
    }
    // As if it had been taken by `pid` two hours ago.
    void leave_expired(pid_t pid) {
        const int fd = ::open(lock_.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
        if (::dprintf(fd, "%d\n", static_cast<int>(pid)) < 0) return;
        timespec times[2] = {};
        times[0].tv_sec = times[1].tv_sec = std::time(nullptr) - 7200;
        ::futimens(fd, times);
        ::close(fd);
    }

private:
    static std::time_t modified(const std::string &path, std::time_t otherwise, bool make) {
        struct stat st = {};
        if (::stat(path.c_str(), &st) == 0) return st.st_mtime;
        if (!make) return 0;
        ::close(::open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
        return otherwise;
    }
    long owner() const {
        long pid = 0;
        if (FILE *file = std::fopen(lock_.c_str(), "re")) {
            if (std::fscanf(file, "%ld", &pid) != 1) pid = 0;
            std::fclose(file);
        }
        return pid;
    }
    void write_log(const char *what) const {
        const int fd = ::open(log_.c_str(), O_CREAT | O_APPEND | O_WRONLY | O_CLOEXEC, 0644);
        ::dprintf(fd, "%ld %s %d\n", static_cast<long>(std::time(nullptr)), what, static_cast<int>(::getpid()));
        ::close(fd);
    }
    std::string lock_, last_, log_;
};

}  // namespace dcs::locks::perf
