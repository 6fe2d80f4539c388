#include "scheduler/shell/host_table_file.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "base/confinement.h"
#include "base/host_classes.h"
#include "base/limits.h"
#include "base/option_table.h"
#include "base/resources.h"
#include "net/socket_calls.h"
#include "scheduler/shell/settings_text.h"
#include "wire/backup_calls.h"

namespace dcs::shell {
namespace {

constexpr std::int32_t max_slots = limits::host_slots;
constexpr double max_seconds = 1e9;
constexpr std::int32_t max_cores = 65536, max_memory_mb = 1 << 30;
constexpr std::size_t max_addresses = 8;
constexpr std::int32_t most_offset = 26 * 60;  // from UTC-12 to UTC+14

std::string read_class(std::string_view text, const HostClasses &known, std::uint32_t &mask) {
    const auto read = mask_of(text, known);
    if (!read && read.status().code == Code::not_found)
        return "class: " + read.status().text + (read.status().text.ends_with('?') ? " A" : ". A") +
               " line `class NAME=MASK` above declares one";
    if (!read || *read == 0) return "class must be a mask of host classes, such as 0x1, or names of `class` lines";
    mask = *read;
    return "";
}

std::string read_seconds(std::string_view key, std::string_view text, Duration &value) {
    double s = 0;
    const char *end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, s, std::chars_format::fixed);
    if (text.empty() || error != std::errc() || stop != end || !(s >= 0.001 && s <= max_seconds))
        return std::string(key) + " must be a number of seconds, at least 0.001";
    value = seconds_of(s);
    return "";
}

std::string read_users(std::string_view key, std::string_view text, std::vector<std::string> &users) {
    for (const std::string_view user : words_of(text, ",")) {
        if (!is_name(user)) return std::string(key) + " must be login names separated by commas";
        users.emplace_back(user);
    }
    if (!users.empty()) return "";
    return std::string(key) + " must name at least one user; omit it " +
           (key == "users" ? "to permit all users" : "to have none");
}

std::string read_amount(std::string_view key, std::string_view text, std::int32_t most, std::int32_t &value) {
    if (read_number(text, value) && value >= 0 && value <= most) return "";
    return std::string(key) + " must be a number from 0 to " + std::to_string(most);
}

std::string read_addresses(std::string_view key, std::string_view text, std::vector<std::string> &addresses) {
    for (const std::string_view address : words_of(text, ",")) {
        if (!net::parse_address(address))
            return std::string(key) + " must be addresses separated by commas: NAME, NAME:PORT, [IPV6] or [IPV6]:PORT";
        addresses.emplace_back(address);
    }
    if (addresses.empty()) return std::string(key) + " must name an address; omit it to have none";
    return addresses.size() <= max_addresses ? "" : std::string(key) + " has more than 8 addresses";
}

// What is wrong with the value; nothing if there is no such setting.
std::optional<std::string> read_field(std::string_view key, std::string_view value, const HostClasses &classes,
                                      core::HostConfig &host) {
    if (key == "class") return read_class(value, classes, host.host_class);
    if (key == "binary") {
        host.binary_class = std::string(value);
        return is_name(value) ? "" : "binary must be a name such as x86_64-linux-gnu";
    }
    if (key == "slots") return read_amount(key, value, max_slots, host.slots);
    if (key == "cores") return read_amount(key, value, max_cores, host.cores);
    if (key == "memory") {
        const auto mb = megabytes_of_text(value);
        if (mb && *mb <= max_memory_mb) host.memory_mb = static_cast<std::int32_t>(*mb);
        return mb && *mb <= max_memory_mb
                   ? ""
                   : "memory must be a size such as 16G, or megabytes such as 16384: at most 1024T";
    }
    if (key == "resources") {
        Result<Offers> offers = offers_of(value);
        if (offers) host.resources = std::move(*offers);
        return offers ? "" : "resources: " + offers.status().text;
    }
    if (key == "time_zone_offset") {
        const std::string_view digits = value.substr(value.starts_with('+') && !value.starts_with("+-"));
        std::int32_t &minutes = host.time_zone_offset;
        const bool good = read_number(digits, minutes) && minutes >= -most_offset && minutes <= most_offset;
        return good ? "" : "time_zone_offset must be minutes from the scheduler's local time, from -1560 to 1560";
    }
    if (key == "check") return read_addresses(key, value, host.check);
    if (key == "fileserver") return read_addresses(key, value, host.file_server);
    if (key == "gateway") return read_addresses(key, value, host.gateway);
    if (key == "interval") return read_seconds(key, value, host.interval);
    if (key == "alert") return read_seconds(key, value, host.alert);
    if (key == "limit") return read_seconds(key, value, host.limit);
    if (key == "extended") return read_seconds(key, value, host.extended);
    if (key == "users") return read_users(key, value, host.users);
    if (key == "accounts") return read_users(key, value, host.accounts);
    if (key == "role") {
        host.source = value == "client";
        const bool known = host.source || value == "server" || value == "backup";
        return known ? "" : "role must be server, client or backup";
    }
    if (key == "address") {
        const auto address = net::parse_address(value);
        host.backup_at = std::string(value);
        const bool good = address && address->port != 0 && value.size() <= wire::place_bytes;
        return good ? "" : "address must be NAME:PORT or [IPV6]:PORT, where the backup listens";
    }
    if (key == "pilot") {
        host.pilot = value == "yes";
        return host.pilot || value == "no" ? "" : "pilot must be yes or no";
    }
    if (key == "require_confinement") {
        const Result<Rungs> rungs = rungs_of(value);
        if (rungs) host.require_confinement = *rungs;
        return rungs ? "" : std::string(key) + ": " + rungs.status().text;
    }
    return std::nullopt;
}

// "" or what is wrong with the line.
std::string read_line(const Words &words, const HostClasses &classes, core::HostConfig &host) {
    if (!is_name(words[0])) return "a line begins with the host's name: letters, digits, '.', '_' and '-'";
    host.name = std::string(words[0]);
    std::set<std::string_view> seen;
    for (std::size_t i = 1; i < words.size(); ++i) {
        const std::size_t equals = words[i].find('=');
        if (equals == std::string_view::npos || equals == 0)
            return "`" + std::string(words[i]) + "` must have the form name=value";
        const std::string_view key = words[i].substr(0, equals);
        if (!seen.insert(key).second) return "`" + std::string(key) + "` occurs twice";
        const auto wrong = read_field(key, words[i].substr(equals + 1), classes, host);
        if (!wrong) return "unknown setting `" + std::string(key) + "`";
        if (!wrong->empty()) return *wrong;
    }
    const bool other = std::any_of(seen.begin(), seen.end(), [](auto key) { return key != "role" && key != "users"; });
    if (std::find(words.begin(), words.end(), "role=backup") != words.end()) {
        if (seen == std::set<std::string_view>{"role", "address"}) return "";
        return "a line with role=backup must have address=HOST:PORT and no other setting";
    }
    if (!host.backup_at.empty()) return "address= requires role=backup";
    if (host.source && other) return "a line with role=client may have users= and no other setting";
    if (host.interval > host.alert || host.alert > host.limit || host.limit > host.extended)
        return "the times must grow: interval <= alert <= limit <= extended";
    return "";
}

// `class gpu=0x4 fast=0x8`: names of masks; a mask may be given by names that are declared already.
std::string read_classes(const Words &words, HostClasses &classes) {
    if (words.size() == 1) return "`class` declares nothing: write class NAME=MASK, such as class gpu=0x4";
    for (std::size_t i = 1; i < words.size(); ++i) {
        const std::size_t equals = std::min(words[i].find('='), words[i].size());
        HostClass fresh{std::string(words[i].substr(0, equals)), 0};
        core::HostConfig unused;
        if (equals == words[i].size() || !is_class_name(fresh.name))
            return "`" + std::string(words[i]) + "` does not name a mask, as gpu=0x4 does";
        if (read_field(fresh.name, "", classes, unused))
            return "`" + fresh.name + "` is a setting of hosts: no host can have the name `class`";
        const auto same = [&](const HostClass &c) { return c.name == fresh.name; };
        if (std::any_of(classes.begin(), classes.end(), same)) return "class " + fresh.name + " is declared twice";
        if (std::string wrong = read_class(words[i].substr(equals + 1), classes, fresh.mask); !wrong.empty())
            return wrong;
        classes.push_back(std::move(fresh));
    }
    return "";
}

}  // namespace

Result<std::vector<core::HostConfig>> parse_host_table(std::string_view text, const std::string &file) {
    std::vector<core::HostConfig> hosts;
    std::set<std::pair<std::string, int>> names;  // one host may have several roles, a line for each
    const auto role_of = [](const core::HostConfig &h) { return h.source ? 1 : h.backup_at.empty() ? 0 : 2; };
    HostClasses classes;
    bool backup = false;
    const Status read = each_line(text, file, [&](const Words &words) -> std::string {
        if (words[0] == "class") return read_classes(words, classes);
        core::HostConfig host;
        std::string wrong = read_line(words, classes, host);
        if (wrong.empty() && !names.emplace(host.name, role_of(host)).second)
            wrong = "host " + host.name + " occurs twice";
        if (wrong.empty() && !host.backup_at.empty() && std::exchange(backup, true))
            wrong = "the table has a second passive backup: a pool can have only one";
        if (wrong.empty()) hosts.push_back(std::move(host));
        return wrong;
    });
    if (!read) return read;
    for (HostClass &c : classes) {
        core::HostConfig name;
        name.name = std::move(c.name), name.host_class = c.mask, name.names_class = true;
        hosts.push_back(std::move(name));
    }
    return hosts;
}

}  // namespace dcs::shell
