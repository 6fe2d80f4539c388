#include "locks/files/run_log.h"
#include "base/fd.h"
#include "base/per_thread.h"
#include "base/text.h"
#include "locks/files/world.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fcntl.h>
#include <string_view>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace dcs::locks {
namespace {

constexpr std::int64_t day = 86'400;
constexpr std::size_t line_max = 4000;  // a write of less than a page is never interleaved with another
constexpr off_t rotate_at = 8 << 20;

// --- words ------------------------------------------------------------------------------------------

template <class Number> void put(std::string &text, Number number, int digits = 0) {
    char buffer[24];
    const char *end = std::to_chars(buffer, buffer + sizeof buffer, number).ptr;
    for (auto length = end - buffer; length < digits; ++length) text.push_back('0');
    text.append(buffer, static_cast<std::size_t>(end - buffer));
}

// Howard Hinnant's conversions between days since 1970 and the calendar.
struct Date {
    std::int64_t year = 0;
    unsigned month = 0, day = 0;
};

Date date_of(std::int64_t days) {
    const std::int64_t z = days + 719'468;
    const std::int64_t era = (z >= 0 ? z : z - 146'096) / 146'097;
    const auto doe = static_cast<unsigned>(z - era * 146'097);
    const unsigned yoe = (doe - doe / 1460 + doe / 36'524 - doe / 146'096) / 365;
    const unsigned doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    const unsigned mp = (5 * doy + 2) / 153;
    const unsigned month = mp < 10 ? mp + 3 : mp - 9;
    return {static_cast<std::int64_t>(yoe) + era * 400 + (month <= 2), month, doy - (153 * mp + 2) / 5 + 1};
}

std::int64_t days_of(const Date &date) {
    const std::int64_t y = date.year - (date.month <= 2);
    const std::int64_t era = (y >= 0 ? y : y - 399) / 400;
    const auto yoe = static_cast<unsigned>(y - era * 400);
    const unsigned doy = (153 * (date.month > 2 ? date.month - 3 : date.month + 9) + 2) / 5 + date.day - 1;
    return era * 146'097 + static_cast<std::int64_t>(yoe * 365 + yoe / 4 - yoe / 100 + doy) - 719'468;
}

void put_time(std::string &text, std::int64_t wall) {
    std::int64_t seconds = wall / second - (wall % second < 0);
    const std::int64_t nanoseconds = wall - seconds * second;
    const std::int64_t days = seconds / day - (seconds % day < 0);
    seconds -= days * day;
    const Date date = date_of(days);
    put(text, date.year, 4);
    put(text += '-', date.month, 2);
    put(text += '-', date.day, 2);
    put(text += 'T', seconds / 3600, 2);
    put(text += ':', seconds / 60 % 60, 2);
    put(text += ':', seconds % 60, 2);
    put(text += '.', nanoseconds, 9);
    text += 'Z';
}

void put_seconds(std::string &text, const char *name, std::int64_t nanoseconds) {
    if (nanoseconds < 0) return;
    text += name;
    if (nanoseconds == no_limit) {
        text += "never";
        return;
    }
    put(text, nanoseconds / second);
    if (nanoseconds % second == 0) return;
    put(text += '.', nanoseconds % second, 9);
    while (text.back() == '0') text.pop_back();
}

void put_text(std::string &line, const std::string &text) {
    if (text.empty()) return;
    line += " : ";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (line.size() + 4 >= line_max) return;
        if (byte >= 0x20 && byte != 0x7f && c != '\\') line += c;
        else line += "\\x" + hex_of({&c, 1});
    }
}

// --- reading ----------------------------------------------------------------------------------------

class Words {
public:
    explicit Words(std::string_view text) : rest_(text) {}
    std::string_view next() {
        const std::string_view word = rest_.substr(0, rest_.find(' '));
        rest_.remove_prefix(std::min(rest_.size(), word.size() + 1));
        return word;
    }
    // If the next word begins with `beginning`: the rest of the word.
    bool next(std::string_view beginning, std::string_view &value) {
        if (rest_.substr(0, beginning.size()) != beginning) return false;
        value = next().substr(beginning.size());
        return true;
    }
    std::string_view rest() const { return rest_; }

private:
    std::string_view rest_;
};

bool parse_time(std::string_view text, std::int64_t &wall) {
    if (text.size() != 30) return false;
    std::string_view form = "0000-00-00T00:00:00.000000000Z";
    for (std::size_t i = 0; i < form.size(); ++i)
        if (form[i] == '0' ? text[i] < '0' || text[i] > '9' : text[i] != form[i]) return false;
    const auto part = [&](std::size_t at, std::size_t length) {
        std::int64_t value = 0;
        read_number(text.substr(at, length), value);
        return value;
    };
    const Date date{part(0, 4), static_cast<unsigned>(part(5, 2)), static_cast<unsigned>(part(8, 2))};
    if (date.year < 1678 || date.year > 2261 || date.month < 1 || date.month > 12 || date.day < 1 || date.day > 31)
        return false;
    wall = (days_of(date) * day + part(11, 2) * 3600 + part(14, 2) * 60 + part(17, 2)) * second + part(20, 9);
    return true;
}

bool parse_seconds(std::string_view text, std::int64_t &nanoseconds) {
    nanoseconds = no_limit;
    if (text == "never") return true;
    const std::size_t point = std::min(text.find('.'), text.size());
    std::int64_t whole = 0, part = 0;
    if (!read_number(text.substr(0, point), whole) || whole < 0) return false;
    if (point < text.size()) {
        std::string digits(text.substr(point + 1));
        if (digits.empty() || digits.size() > 9) return false;
        digits.append(9 - digits.size(), '0');
        if (digits.find('-') != std::string::npos || !read_number(std::string_view(digits), part)) return false;
    }
    return !__builtin_mul_overflow(whole, second, &whole) && !__builtin_add_overflow(whole, part, &nanoseconds);
}

bool parse_text(std::string_view escaped, std::string &text) {
    for (std::size_t i = 0; i < escaped.size(); ++i) {
        if (escaped[i] != '\\') {
            text += escaped[i];
            continue;
        }
        unsigned byte = 0;
        const std::string_view code = escaped.substr(i, 4);
        if (code.size() != 4 || code[1] != 'x' ||
            std::from_chars(code.data() + 2, code.data() + 4, byte, 16).ptr != code.data() + 4)
            return false;
        text += static_cast<char>(byte);
        i += 3;
    }
    return true;
}

}  // namespace

std::string printed(const LogLine &line) {
    std::string text;
    text.reserve(256);
    put_time(text, line.wall);
    (text += ' ') += line.name;
    (text += ' ') += line.event;
    put(text += " pid=", line.pid);
    put(text += " uid=", line.uid);
    put(text += " gen=", line.generation);
    put_seconds(text, " run=", line.runtime);
    put_seconds(text, " cpu=", line.cpu);
    if (line.io >= 0) put(text += " io=", line.io);
    put_seconds(text, " wait=", line.waited);
    put_seconds(text, " limit=", line.limit);
    put_text(text, line.text);
    return text;
}

bool parse_log_line(const std::string &text, LogLine &line) {
    Words words(text);
    line = {};
    if (!parse_time(words.next(), line.wall)) return false;
    line.name = words.next();
    line.event = words.next();
    std::string_view value;
    if (line.name.empty() || line.event.empty()) return false;
    if (!words.next("pid=", value) || !read_number(value, line.pid)) return false;
    if (!words.next("uid=", value) || !read_number(value, line.uid)) return false;
    if (!words.next("gen=", value) || !read_number(value, line.generation)) return false;
    if (words.next("run=", value) && !parse_seconds(value, line.runtime)) return false;
    if (words.next("cpu=", value) && !parse_seconds(value, line.cpu)) return false;
    if (words.next("io=", value) && !read_number(value, line.io)) return false;
    if (words.next("wait=", value) && !parse_seconds(value, line.waited)) return false;
    if (words.next("limit=", value) && !parse_seconds(value, line.limit)) return false;
    if (words.rest().empty()) return true;
    return words.next() == ":" && parse_text(words.rest(), line.text);
}

// --- the file ---------------------------------------------------------------------------------------

namespace {

// The log that this thread wrote last: opening it for each line would cost more than the write.
class LogFile {
public:
    LogFile() = default;
    LogFile(const LogFile &) = delete;
    LogFile &operator=(const LogFile &) = delete;
    ~LogFile() { close(); }

    // A descriptor to append to; -1 on failure.
    int fd(const std::string &directory) {
        for (int tries = 0; tries < 3; ++tries) {
            if (directory != directory_ || fd_ < 0) open(directory);
            if (fd_ < 0) return -1;
            struct stat now = {};
            // The program may have closed this descriptor and reused its number for a file of its own.
            if (::fstat(fd_, &now) != 0 || now.st_dev != device_ || now.st_ino != inode_) {
                fd_ = -1;
            } else if (now.st_nlink == 0) {
                close();
            } else if (now.st_size < rotate_at || !rotate()) {
                return fd_;
            } else {
                close();
            }
        }
        return -1;
    }

private:
    void close() {
        struct stat now = {};
        if (fd_ >= 0 && ::fstat(fd_, &now) == 0 && now.st_dev == device_ && now.st_ino == inode_) ::close(fd_);
        fd_ = -1;
    }
    void open(const std::string &directory) {
        close();
        directory_ = directory;
        const std::string path = directory + "/run.log";
        const int flags = O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
        int fd = ::open(path.c_str(), flags);
        if (fd < 0 && errno == ENOENT) fd = make(path, flags);
        if (fd < 0 && errno == EEXIST) fd = ::open(path.c_str(), flags);
        struct stat st = {};
        if (fd >= 0 && (::fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))) {
            ::close(fd);
            fd = -1;
        }
        fd_ = above_standard(Fd(fd)).release();
        device_ = st.st_dev;
        inode_ = st.st_ino;
    }
    // The owner of the directory and its mode decide who may write the log.
    int make(const std::string &path, int flags) const {
        struct stat st = {};
        const bool known = ::stat(directory_.c_str(), &st) == 0;
        const mode_t mode = 0600 | (known && (st.st_mode & S_ISVTX) == 0 ? (st.st_mode & 022) * 3 : 0);
        const int fd = ::open(path.c_str(), flags | O_CREAT | O_EXCL, 0600);
        if (fd >= 0 && mode != 0600 && ::fchmod(fd, mode) != 0) return fd;  // then only its owner can write it
        return fd;
    }
    // Only the process that has locked the file now named run.log renames it. False: it still has that name; the
    // caller then exceeds the size by one line.
    bool rotate() const {
        const std::string path = directory_ + "/run.log";
        struct stat named = {};
        if (::flock(fd_, LOCK_EX | LOCK_NB) != 0) return false;
        const bool ours = ::stat(path.c_str(), &named) == 0 && named.st_dev == device_ && named.st_ino == inode_;
        const bool away = !ours || ::rename(path.c_str(), (path + ".1").c_str()) == 0;
        ::flock(fd_, LOCK_UN);
        return away;
    }

    std::string directory_;
    int fd_ = -1;
    dev_t device_ = 0;
    ino_t inode_ = 0;
};

void read_file(const std::string &path, const std::function<void(const LogLine &)> &take) {
    const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
    if (!fd) return;
    std::string pending;
    LogLine line;
    char buffer[65536];
    for (ssize_t n; (n = ::read(fd.get(), buffer, sizeof buffer)) > 0;) {
        pending.append(buffer, static_cast<std::size_t>(n));
        std::size_t begin = 0;
        for (std::size_t end; (end = pending.find('\n', begin)) != std::string::npos; begin = end + 1)
            if (parse_log_line(pending.substr(begin, end - begin), line)) take(line);
        pending.erase(0, begin);
        if (pending.size() > line_max) pending.clear();  // not a line of the log
    }
}

}  // namespace

void append_log(const std::string &directory, const LogLine &line) {
    LogFile &log = PerThread<LogFile>::mine();
    const int saved = errno;
    if (const int fd = log.fd(directory); fd >= 0) {
        const std::string text = printed(line) + '\n';
        const ssize_t n = ::write(fd, text.data(), text.size());
        // The disk became full within the line: the next line starts on a new one.
        if (n > 0 && static_cast<std::size_t>(n) < text.size()) (void)!::write(fd, "\n", 1);
    }
    errno = saved;
}

void read_log(const std::string &directory, const std::function<void(const LogLine &)> &take) {
    read_file(directory + "/run.log.1", take);
    read_file(directory + "/run.log", take);
}

}  // namespace dcs::locks
