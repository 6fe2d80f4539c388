// GNU parallel's list of ssh logins, and what becomes of the host table.
#include <algorithm>
#include <set>

#include "base/option_table.h"
#include "base/text.h"
#include "inventory.h"

namespace dcs::commands {
namespace {

constexpr std::int64_t most_jobs = 65536;

// "" or what is wrong with one login.
std::string take_login(std::string_view login, const std::string &own_name, ListedHost &host) {
    const std::string whole(login);
    if (login[0] == '@') {
        const std::size_t slash = login.find('/');
        if (slash == login.npos) return "`" + whole + "` has no `/` after its groups";
        login.remove_prefix(slash + 1);
    }
    const std::size_t digits = std::min(login.find_first_not_of("0123456789"), login.size());
    if (digits > 0 && digits < login.size() && login[digits] == '/') {
        const auto slots = number_of(login.substr(0, digits), 1, most_jobs);
        if (!slots) return "`" + whole + "` has a number of jobs that is not 1 to 65536";
        host.settings.emplace_back("slots", std::to_string(*slots));
        login.remove_prefix(digits + 1);
    }
    login = trimmed(login);
    const std::size_t blank = login.find_last_of(" \t");  // behind ssh and its options
    std::string name(blank == login.npos ? login : login.substr(blank + 1));
    if (name == ":") {
        host.name = own_name;
        return "";
    }
    name.erase(0, name.find('@') + 1);
    const std::size_t colon = name.find(':');
    const bool port = colon != name.npos && number_of(name.substr(colon + 1), 1, 65535).has_value();
    if (port) name.erase(colon);
    if (!is_name(name)) return "`" + whole + "` is not a valid host name of the host table";
    host.name = name;
    return "";
}

std::string_view name_on(std::string_view line) {
    line = trimmed(line.substr(0, line.find('#')));
    return line.substr(0, line.find_first_of(" \t"));
}

// The line with these settings, its others and its comment as they are.
std::string with_settings(std::string line, const ListedHost &host) {
    const std::size_t hash = line.find('#');
    std::string comment = hash == line.npos ? "" : line.substr(hash);
    line.erase(std::min(hash, line.size()));
    const std::size_t end = line.find_last_not_of(" \t\r");
    const std::string gap = comment.empty() ? "" : line.substr(end + 1);
    line.erase(end + 1);
    for (const auto &[key, value] : host.settings) {
        const std::string word = key + "=" + value;
        std::size_t at = line.find(key + "=");
        while (at != line.npos && line[at - 1] != ' ' && line[at - 1] != '\t') at = line.find(key + "=", at + 1);
        if (at == line.npos) line += " " + word;
        else line.replace(at, std::min(line.find_first_of(" \t", at), line.size()) - at, word);
    }
    return line + gap + comment;
}

}  // namespace

std::string_view trimmed(std::string_view text) {
    const std::size_t from = text.find_first_not_of(" \t\r");
    if (from == text.npos) return "";
    return text.substr(from, text.find_last_not_of(" \t\r") - from + 1);
}

Result<std::vector<ListedHost>> hosts_of_logins(std::string_view text, const std::string &file,
                                                const std::string &own_name) {
    std::vector<ListedHost> hosts;
    std::set<std::string> names;
    for (std::size_t number = 1; !text.empty(); ++number) {
        std::string_view line = take_line(text);
        line = line.substr(0, line.find('#'));
        while (!(line = trimmed(line)).empty()) {
            const std::size_t comma = std::min(line.find(','), line.size());
            const std::string_view login = trimmed(line.substr(0, comma));
            line.remove_prefix(std::min(comma + 1, line.size()));
            if (login.empty()) continue;
            ListedHost host{"", {}, file + ":" + std::to_string(number)};
            std::string wrong = take_login(login, own_name, host);
            if (wrong.empty() && !names.insert(host.name).second) wrong = "host " + host.name + " occurs twice";
            if (!wrong.empty()) return fail(Code::invalid, host.origin + ": " + wrong);
            hosts.push_back(std::move(host));
        }
    }
    return hosts;
}

std::string merged_table(std::string_view table, const std::vector<ListedHost> &hosts,
                         std::vector<TableChange> &changes) {
    std::string merged;
    std::set<std::string> seen;
    while (!table.empty()) {
        const std::string line(take_line(table));
        const std::string name(name_on(line));
        // A host of control programs, or the backup, may have the name of a grain host on a line of its own.
        const bool grain_host = line.find("role=client") == line.npos && line.find("role=backup") == line.npos;
        const auto host = std::find_if(hosts.begin(), hosts.end(), [&](const ListedHost &h) { return h.name == name; });
        std::string now = line;
        if (host != hosts.end() && grain_host && seen.insert(name).second) {
            now = with_settings(line, *host);
            changes.push_back({now == line ? TableChange::What::same : TableChange::What::changed, name, line, now});
        }
        merged += now + "\n";
    }
    for (const ListedHost &host : hosts) {
        if (seen.count(host.name) != 0) continue;
        const std::string line = with_settings(host.name, host);
        changes.push_back({TableChange::What::fresh, host.name, "", line});
        merged += line + "\n";
    }
    return merged;
}

}  // namespace dcs::commands
