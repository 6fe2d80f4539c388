// What goes into a log line, and the log itself.
#include <fcntl.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "daemon/log.h"
#include "support/catch.h"

using namespace dcs;

namespace {
// Runs body() with standard error going to a file, and returns what went there.
template <class Body> std::string standard_error_of(Body body) {
    char name[] = "/tmp/dcs_log_XXXXXX";
    int file = ::mkstemp(name), kept = ::dup(2);
    ::unlink(name);
    ::dup2(file, 2);
    body();
    ::dup2(kept, 2);
    ::close(kept);
    std::string text(static_cast<std::size_t>(::lseek(file, 0, SEEK_END)), '\0');
    REQUIRE(::pread(file, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
    ::close(file);
    return text;
}

std::vector<std::string> lines_of(const std::string &text) {
    std::vector<std::string> lines;
    for (std::size_t at = 0, end; (end = text.find('\n', at)) != std::string::npos; at = end + 1)
        lines.push_back(text.substr(at, end - at));
    return lines;
}
}  // namespace

TEST_CASE("escaping keeps what is readable and disarms the rest") {
    CHECK(escape_text("plain text, {} %s %n") == "plain text, {} %s %n");
    CHECK(escape_text("Grüße 日本 🙂") == "Grüße 日本 🙂");
    CHECK(escape_text("a\nb\tc\rd\\e") == "a\\nb\\tc\\rd\\\\e");
    CHECK(escape_text(std::string("\x1b[31m\x7f\0z", 8)) == "\\x1b[31m\\x7f\\x00z");
    CHECK(escape_text("\xc2\x9b"
                      "31m") == "\\xc2\\x9b31m");  // a control character of U+0080 ff.
    CHECK(escape_text("\xe2\x80\xae"
                      "txt.exe") == "\\xe2\\x80\\xaetxt.exe");  // right to left
    SECTION("bytes that are no UTF-8") {
        CHECK(escape_text("\xff\xfe") == "\\xff\\xfe");
        CHECK(escape_text("\xc3") == "\\xc3");  // cut short
        CHECK(escape_text("\xc3(") == "\\xc3(");
        CHECK(escape_text("\xc0\xaf") == "\\xc0\\xaf");  // overlong
        CHECK(escape_text("\xe0\x80\xaf") == "\\xe0\\x80\\xaf");
        CHECK(escape_text("\xf0\x80\x80\xaf") == "\\xf0\\x80\\x80\\xaf");
        CHECK(escape_text("\xed\xa0\x80") == "\\xed\\xa0\\x80");           // half of a surrogate pair
        CHECK(escape_text("\xf4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");  // above the last character
        CHECK(escape_text("\x80") == "\\x80");
    }
    SECTION("the first and last characters of each length") {
        for (const char *text :
             {"\xc2\xa0", "\xdf\xbf", "\xe0\xa0\x80", "\xef\xbf\xbd", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"})
            CHECK(escape_text(text) == text);
    }
    CHECK(escape_text("").empty());
    std::string cut = escape_text(std::string(1 << 20, '\n'));
    CHECK(cut.size() < 9000);
    CHECK(cut.substr(cut.size() - 3) == "...");
}

TEST_CASE("the log writes one line per event, in UTC, at its level") {
    std::string text = standard_error_of([] {
        log_open("scheduler", Level::info);
        log_error("disk {} is %s full");
        log_warn("two\nlines");
        log_info("grain ann/3:17 started");
        log_debug("not this");
        log_set_level(Level::debug);
        log_debug("but this");
        log_set_level(Level::error);
        log_warn("nor this");
    });
    std::vector<std::string> lines = lines_of(text);
    REQUIRE(lines.size() == 4);
    std::string pid = "[" + std::to_string(::getpid()) + "]";
    CHECK(lines[0].substr(23) == "Z scheduler" + pid + " error: disk {} is %s full");
    CHECK(lines[1].substr(23) == "Z scheduler" + pid + " warning: two\\nlines");
    CHECK(lines[2].substr(23) == "Z scheduler" + pid + " info: grain ann/3:17 started");
    CHECK(lines[3].substr(23) == "Z scheduler" + pid + " debug: but this");
    char now[64];
    time_t seconds = ::time(nullptr);
    tm utc = {};
    ::gmtime_r(&seconds, &utc);
    ::strftime(now, sizeof now, "%Y-%m-%dT%H:", &utc);
    CHECK(lines[3].compare(0, 11, now, 11) == 0);
    CHECK(log_level() == Level::error);
}

TEST_CASE("lines of several threads do not mix") {
    std::string text = standard_error_of([] {
        log_open("mixed", Level::info);
        std::vector<std::thread> threads;
        for (char c : {'a', 'b', 'c'})
            threads.emplace_back([c] {
                for (int i = 0; i < 200; ++i) log_info(std::string(200, c));
            });
        for (std::thread &thread : threads) thread.join();
    });
    std::vector<std::string> lines = lines_of(text);
    CHECK(lines.size() == 600);
    for (const std::string &line : lines) {
        std::string tail = line.substr(line.size() - 200);
        CHECK(tail == std::string(200, tail[0]));
    }
}

TEST_CASE("levels have names") {
    const std::pair<const char *, Level> names[] = {{"off", Level::off},
                                                    {"error", Level::error},
                                                    {"warn", Level::warn},
                                                    {"info", Level::info},
                                                    {"debug", Level::debug}};
    for (const auto &[name, level] : names) {
        Result<Level> read = level_of(name);
        REQUIRE(read);
        CHECK(*read == level);
    }
    CHECK_FALSE(level_of("loud"));
    CHECK_FALSE(level_of(""));
}
