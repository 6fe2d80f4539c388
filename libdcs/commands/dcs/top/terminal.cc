#include "terminal.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/files.h"
#include "base/text.h"
#include "commands/dcs/frame/ending_signals.h"

namespace dcs::commands::top {
namespace {

constexpr std::size_t least_rows = 4, least_columns = 20;

// The length of a sequence that sets colours, at the beginning of the text; 0: there is none.
std::size_t colour_sequence(std::string_view text) {
    if (text.substr(0, 2) != "\033[") return 0;
    const std::size_t end = text.find('m');
    return end == std::string_view::npos ? 0 : end + 1;
}

}  // namespace

std::string cut(std::string_view line, std::size_t columns) {
    std::string r;
    bool coloured = false;
    for (std::size_t taken = 0; !line.empty();) {
        std::size_t length = colour_sequence(line);
        if (length > 0) {
            coloured = line.substr(0, length) != "\033[0m";
        } else {
            if (taken++ == columns) break;
            length = std::max<std::size_t>(1, utf8_character(line));
        }
        r += line.substr(0, length);
        line.remove_prefix(length);
    }
    return coloured ? r + "\033[0m" : r;
}

Key take_key(std::string_view &typed) {
    static constexpr struct {
        Key key;
        std::array<std::string_view, 4> typed;  // any of these
    } keys[] = {{Key::up, {"\033[A", "\033OA", "k"}},
                {Key::down, {"\033[B", "\033OB", "j"}},
                {Key::page_up, {"\033[5~", "b"}},
                {Key::page_down, {"\033[6~", " "}},
                {Key::home, {"\033[H", "\033OH", "\033[1~", "g"}},
                {Key::end, {"\033[F", "\033OF", "\033[4~", "G"}},
                {Key::next, {"\t", "\033[C"}},
                {Key::first, {"1"}},
                {Key::second, {"2"}},
                {Key::third, {"3"}},
                {Key::fourth, {"4"}},
                {Key::fifth, {"5"}},
                {Key::leave, {"q", "Q", "\004"}}};
    for (const auto &[key, sequences] : keys)
        for (const std::string_view bytes : sequences)
            if (!bytes.empty() && typed.starts_with(bytes)) {
                typed.remove_prefix(bytes.size());
                return key;
            }
    std::size_t length = 1;
    if (typed.substr(0, 2) == "\033[") {  // a sequence of another key: its letters are not keys
        length = 2;
        while (length < typed.size() && (typed[length] < '@' || typed[length] > '~')) ++length;
        length = std::min(length + 1, typed.size());
    } else if (typed.substr(0, 2) == "\033O") {
        length = std::min<std::size_t>(3, typed.size());
    }
    typed.remove_prefix(length);
    return Key::none;
}

Terminal::Terminal() {
    sigset_t wanted = block_ending_signals();
    sigset_t own;
    ::sigemptyset(&own);
    for (const int number : {SIGWINCH, SIGTSTP}) ::sigaddset(&own, number), ::sigaddset(&wanted, number);
    ::pthread_sigmask(SIG_BLOCK, &own, nullptr);
    signals_ = Fd(::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
    enter();
}

Terminal::~Terminal() { restore(); }

void Terminal::enter() {
    keys_ = ::tcgetattr(STDIN_FILENO, &before_) == 0;
    if (keys_) {
        termios now = before_;
        now.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
        keys_ = ::tcsetattr(STDIN_FILENO, TCSANOW, &now) == 0;
    }
    drawn_size_ = {0, 0};  // draws all
    std::fputs("\033[?1049h\033[?25l", stdout);
}

void Terminal::restore() {
    std::fputs("\033[?25h\033[?1049l", stdout);
    std::fflush(stdout);
    if (keys_) ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
}

Size Terminal::size() const {
    winsize size = {};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0) return {};
    return {std::max<std::size_t>(least_rows, size.ws_row), std::max<std::size_t>(least_columns, size.ws_col)};
}

void Terminal::draw(const std::vector<std::string> &lines) {
    const Size now = size();
    std::string out;
    if (now != drawn_size_) {
        drawn_.assign(now.rows, "");
        drawn_size_ = now;
        out = "\033[0m\033[2J";
    }
    for (std::size_t row = 0; row < now.rows; ++row) {
        std::string line = row < lines.size() ? cut(lines[row], now.columns) : "";
        if (line == drawn_[row]) continue;
        out += "\033[" + std::to_string(row + 1) + ";1H" + line + "\033[K";
        drawn_[row] = std::move(line);
    }
    std::fputs(out.c_str(), stdout);
    std::fflush(stdout);
}

void Terminal::take_signal(std::vector<Key> &keys) {
    signalfd_siginfo signal = {};
    while (::read(signals_.get(), &signal, sizeof signal) == static_cast<ssize_t>(sizeof signal)) {
        if (signal.ssi_signo == SIGWINCH) continue;
        if (signal.ssi_signo != SIGTSTP) {
            keys.push_back(Key::leave);
            continue;
        }
        restore();
        ::raise(SIGSTOP);  // until SIGCONT
        enter();
    }
}

std::vector<Key> Terminal::wait(int news) {
    std::vector<Key> keys;
    pollfd fds[] = {{signals_.get(), POLLIN, 0}, {news, POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
    if (::poll(fds, keys_ ? 3 : 2, -1) <= 0) return keys;
    if (fds[0].revents != 0) take_signal(keys);
    std::uint64_t count = 0;
    if (fds[1].revents != 0 && ::read(news, &count, sizeof count) < 0) keys.push_back(Key::leave);
    if (!keys_ || fds[2].revents == 0) return keys;
    char bytes[256];
    const ssize_t n = ::read(STDIN_FILENO, bytes, sizeof bytes);
    if (n <= 0) keys.push_back(Key::leave);
    for (std::string_view typed(bytes, n > 0 ? static_cast<std::size_t>(n) : 0); !typed.empty();)
        keys.push_back(take_key(typed));
    return keys;
}

}  // namespace dcs::commands::top
