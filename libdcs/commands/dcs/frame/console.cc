#include "console.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sys/ioctl.h>
#include <unistd.h>
#include <vector>

#include "base/json.h"
#include "table.h"

namespace dcs::commands {
namespace {

constexpr double told_every_s = 60;
constexpr double told_from_s = 1;  // less saved time is not worth a word

std::size_t terminal_columns() {
    winsize size = {};
    if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 20) return size.ws_col;
    return 80;
}

bool is_dumb() {
    const char *terminal = std::getenv("TERM");
    return terminal == nullptr || std::string_view(terminal) == "dumb";
}

bool write_all(FILE *stream, std::string_view bytes) {
    return bytes.empty() || std::fwrite(bytes.data(), 1, bytes.size(), stream) == bytes.size();
}

// By the grains that finished in this run alone; none, or none that runs, no guess.
std::optional<double> left_s(const Progress &p) {
    const std::int64_t done_now = p.done - p.done_before;
    if (done_now <= 0 || p.done >= p.total || p.running == 0 || p.stuck > 0) return std::nullopt;
    return p.elapsed_s / static_cast<double>(done_now) * static_cast<double>(p.total - p.done);
}

std::vector<std::string> standing(const Progress &p) {
    std::vector<std::string> parts;
    if (p.running >= 0 && p.done < p.total) parts.push_back(std::to_string(p.running) + " running");
    if (p.stuck > 0 && p.done < p.total) parts.push_back(std::to_string(p.stuck) + " that no host can take");
    if (p.failed > 0) parts.push_back(std::to_string(p.failed) + " failed");
    if (p.saved_cpu_s >= told_from_s) parts.push_back(seconds_text(p.saved_cpu_s) + " CPU saved");
    return parts;
}

}  // namespace

std::string progress_text(const Progress &p, std::size_t columns) {
    std::string tail = "  " + std::to_string(p.done) + "/" + std::to_string(p.total);
    for (const std::string &part : standing(p)) tail += "  " + part;
    if (const auto left = left_s(p)) tail += "  " + seconds_text(*left) + " left";
    const std::size_t room = columns > tail.size() + 3 ? std::min<std::size_t>(columns - tail.size() - 3, 40) : 0;
    if (room < 5) return tail.substr(2, columns);
    const std::size_t full = p.total == 0
                                 ? room
                                 : static_cast<std::size_t>(static_cast<double>(room) * static_cast<double>(p.done) /
                                                            static_cast<double>(p.total));
    return "[" + std::string(full, '#') + std::string(room - full, '-') + "]" + tail;
}

std::string progress_json(const Progress &p) {
    JsonObject json;
    json.add("schema", "dcs.progress/1").add("total", p.total).add("done", p.done).add("failed", p.failed);
    if (p.running >= 0) json.add("running", p.running);
    if (p.stuck > 0) json.add("stuck", p.stuck);
    json.add("saved_cpu_s", p.saved_cpu_s).add("elapsed_s", p.elapsed_s);
    if (const auto left = left_s(p)) json.add("left_s", *left);
    return json.text();
}

Shown shown_of(std::string_view word) {
    if (word == "bar") return Shown::bar;
    if (word == "plain") return Shown::plain;
    if (word == "json") return Shown::json;
    if (word == "none") return Shown::none;
    return ::isatty(STDERR_FILENO) == 1 && !is_dumb() ? Shown::bar : Shown::plain;
}

Console::Console(std::string program, Shown shown) : program_(std::move(program)), shown_(shown) {}

bool Console::out(std::string_view bytes) {
    std::lock_guard guard(mutex_);
    clear_locked();
    return write_all(stdout, bytes);
}

bool Console::err(std::string_view bytes) {
    std::lock_guard guard(mutex_);
    clear_locked();
    return write_all(stderr, bytes);
}

bool Console::flush() {
    std::lock_guard guard(mutex_);
    return std::fflush(stdout) == 0 && std::fflush(stderr) == 0;
}

void Console::note(const std::string &text) {
    std::lock_guard guard(mutex_);
    std::fflush(stdout);
    clear_locked();
    std::fprintf(stderr, "%s: %s\n", program_.c_str(), printable(text, true).c_str());
}

void Console::show(const Progress &progress) {
    std::lock_guard guard(mutex_);
    if (shown_ == Shown::none || bar_kept_) return;
    if (shown_ == Shown::bar) {
        std::fflush(stdout);  // what belongs above the bar
        std::fprintf(stderr, "\r%s\033[K", progress_text(progress, terminal_columns() - 1).c_str());
        std::fflush(stderr);
        bar_shown_ = true;
        return;
    }
    const int tenths = progress.total == 0 ? 10 : static_cast<int>(10 * progress.done / progress.total);
    const bool over = tenths == 10;  // that is what a result is for; a program that reads lines wants the last one too
    if (over ? tenths_ == 10 || shown_ == Shown::plain
             : tenths <= tenths_ && progress.elapsed_s < told_s_ + told_every_s)
        return;
    tenths_ = tenths;
    told_s_ = progress.elapsed_s;
    if (shown_ == Shown::json) {
        std::fprintf(stderr, "%s\n", progress_json(progress).c_str());
        return;
    }
    if (progress.elapsed_s < long_run_s) return;
    std::string more;
    for (const std::string &part : standing(progress)) more += ", " + part;
    std::fprintf(stderr, "%s: %lld of %lld grains finished%s\n", program_.c_str(),
                 static_cast<long long>(progress.done), static_cast<long long>(progress.total), more.c_str());
}

void Console::keep_bar() {
    std::lock_guard guard(mutex_);
    if (bar_shown_) std::fputs("\n", stderr);
    bar_shown_ = false;
    bar_kept_ = true;
}

void Console::clear_locked() {
    if (!bar_shown_) return;
    std::fputs("\r\033[K", stderr);
    std::fflush(stderr);
    bar_shown_ = false;
}

void Console::give_up(const Failure &failure, Format format, int exit) {
    // The lock stays taken: no other thread prints after this.
    mutex_.lock();
    clear_locked();
    (void)report(failure, format);
    std::fflush(stderr);
    std::_Exit(exit);
}

}  // namespace dcs::commands
