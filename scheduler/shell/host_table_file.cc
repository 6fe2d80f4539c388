#include "scheduler/shell/host_table_file.h"

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <set>

namespace dcs::shell {
namespace {

constexpr std::size_t max_file_bytes = 16u << 20;
constexpr std::int32_t max_slots = 65536;
constexpr double max_seconds = 1e9;

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

std::vector<std::string_view> split(std::string_view text, bool (*at)(char)) {
    std::vector<std::string_view> words;
    std::size_t start = 0;
    for (std::size_t i = 0; i <= text.size(); ++i) {
        if (i < text.size() && !at(text[i])) continue;
        if (i > start) words.push_back(text.substr(start, i - start));
        start = i + 1;
    }
    return words;
}

// Letters, digits, '.', '_', '-' and not a leading '.' or '-': host and login names alike.
bool is_name(std::string_view name) {
    if (name.empty() || name.size() > limits::name_bytes || name[0] == '.' || name[0] == '-')
        return false;
    for (const char c : name) {
        const bool ok = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                        (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
        if (!ok) return false;
    }
    return true;
}

template <class T> bool read_whole(std::string_view text, T &value, int base) {
    const char *end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value, base);
    return !text.empty() && error == std::errc() && stop == end;
}

std::string read_class(std::string_view text, std::uint32_t &mask) {
    const bool hex = text.substr(0, 2) == "0x";
    if (!read_whole(hex ? text.substr(2) : text, mask, hex ? 16 : 10) || mask == 0)
        return "class must be a mask of host classes, such as 0x1";
    return "";
}

std::string read_seconds(std::string_view key, std::string_view text, Duration &value) {
    double s = 0;
    const char *end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, s, std::chars_format::fixed);
    if (text.empty() || error != std::errc() || stop != end || !(s >= 0.001 && s <= max_seconds))
        return std::string(key) + " must be seconds, at least 0.001";
    value = seconds_of(s);
    return "";
}

std::string read_users(std::string_view text, std::vector<std::string> &users) {
    for (const std::string_view user : split(text, [](char c) { return c == ','; })) {
        if (!is_name(user)) return "users must be login names separated by commas";
        users.emplace_back(user);
    }
    return users.empty() ? "users must name somebody; leave it out to permit everybody" : "";
}

std::string read_field(std::string_view key, std::string_view value, core::HostConfig &host) {
    if (key == "class") return read_class(value, host.host_class);
    if (key == "binary") {
        host.binary_class = std::string(value);
        return is_name(value) ? "" : "binary must be a name such as x86_64-linux-gnu";
    }
    if (key == "slots") {
        if (read_whole(value, host.slots, 10) && host.slots >= 0 && host.slots <= max_slots)
            return "";
        return "slots must be a number from 0 to " + std::to_string(max_slots);
    }
    if (key == "interval") return read_seconds(key, value, host.interval);
    if (key == "alert") return read_seconds(key, value, host.alert);
    if (key == "limit") return read_seconds(key, value, host.limit);
    if (key == "extended") return read_seconds(key, value, host.extended);
    if (key == "users") return read_users(value, host.users);
    return "there is no setting `" + std::string(key) + "`";
}

// "" or what is wrong with the line.
std::string read_line(const std::vector<std::string_view> &words, core::HostConfig &host) {
    if (!is_name(words[0]))
        return "a line begins with the host's name: letters, digits, '.', '_' and '-'";
    host.name = std::string(words[0]);
    std::set<std::string_view> seen;
    for (std::size_t i = 1; i < words.size(); ++i) {
        const std::size_t equals = words[i].find('=');
        if (equals == std::string_view::npos)
            return "`" + std::string(words[i]) + "` is not of the form name=value";
        const std::string_view key = words[i].substr(0, equals);
        if (!seen.insert(key).second) return "`" + std::string(key) + "` stands there twice";
        if (std::string wrong = read_field(key, words[i].substr(equals + 1), host); !wrong.empty())
            return wrong;
    }
    if (host.interval > host.alert || host.alert > host.limit || host.limit > host.extended)
        return "the times must grow: interval <= alert <= limit <= extended";
    return "";
}

}  // namespace

Result<std::vector<core::HostConfig>> parse_host_table(std::string_view text,
                                                       const std::string &file) {
    std::vector<core::HostConfig> hosts;
    std::set<std::string> names;
    std::size_t number = 0;
    while (!text.empty()) {
        ++number;
        const std::size_t end = text.find('\n');
        std::string_view line = text.substr(0, end);
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
        line = line.substr(0, line.find('#'));
        const auto words = split(line, is_blank);
        if (words.empty()) continue;
        core::HostConfig host;
        std::string wrong = read_line(words, host);
        if (wrong.empty() && !names.insert(host.name).second)
            wrong = "host " + host.name + " stands there twice";
        if (!wrong.empty())
            return fail(Code::invalid, file + ":" + std::to_string(number) + ": " + wrong);
        hosts.push_back(std::move(host));
    }
    return hosts;
}

Result<std::vector<core::HostConfig>> read_host_table(const std::string &file) {
    std::FILE *f = std::fopen(file.c_str(), "re");
    if (!f) {
        const int error = errno;
        return fail_errno(error == ENOENT ? Code::not_found : Code::io_error,
                          "the host table " + file, error);
    }
    std::string text;
    char buffer[8192];
    std::size_t n = 0;
    while (text.size() <= max_file_bytes && (n = std::fread(buffer, 1, sizeof buffer, f)) > 0)
        text.append(buffer, n);
    const bool bad = std::ferror(f) != 0;
    std::fclose(f);
    if (bad) return fail(Code::io_error, "the host table " + file + " cannot be read");
    if (text.size() > max_file_bytes)
        return fail(Code::limit, "the host table " + file + " is larger than 16 MiB");
    return parse_host_table(text, file);
}

}  // namespace dcs::shell
