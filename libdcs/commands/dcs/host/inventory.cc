// Ansible's inventories: INI, and what `ansible-inventory --list` prints.
#include "inventory.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include <boost/json.hpp>

#include "base/option_table.h"
#include "base/text.h"

namespace dcs::commands {
namespace {
namespace json = boost::json;

constexpr std::size_t most_hosts = 100'000;
constexpr std::string_view ours = "dcs_";
using Variables = std::map<std::string, std::string>;

struct Group {
    std::vector<std::string> hosts, children;
    Variables variables;
};

struct Inventory {
    std::map<std::string, Group> groups;
    std::map<std::string, Variables> hosts;
    std::map<std::string, std::string> origins;  // of hosts
    std::vector<std::string> order;              // of hosts, as they came

    void add(const std::string &host, const std::string &origin) {
        if (!hosts.try_emplace(host).second) return;
        origins[host] = origin;
        order.push_back(host);
    }
};

// ---- INI ----------------------------------------------------------------------------------------------------------

// As a shell would; a comment ends it. Nothing: a quote is open.
std::optional<std::vector<std::string>> words_of(std::string_view line) {
    std::vector<std::string> words;
    bool within = false;
    char quote = 0;
    for (std::size_t i = 0; i < line.size(); ++i) {
        const char c = line[i];
        const bool blank = quote == 0 && (c == ' ' || c == '\t' || c == '\r');
        if (quote == 0 && !within && (c == '#' || c == ';')) break;
        if (blank) within = false;
        if (blank) continue;
        if (!within) words.emplace_back();
        within = true;
        if (quote == 0 && (c == '"' || c == '\'')) quote = c;
        else if (c == quote) quote = 0;
        else words.back() += c;
    }
    return quote == 0 ? std::optional(words) : std::nullopt;
}

// "web[01:10]" or "[a:c]" at the first bracket; false: it is no range.
bool expand(const std::string &pattern, std::vector<std::string> &names) {
    const std::size_t open = pattern.find('['), close = pattern.find(']', open);
    if (open == pattern.npos) {
        names.push_back(pattern);
        return names.size() <= most_hosts;
    }
    if (close == pattern.npos) return false;
    const std::string before = pattern.substr(0, open), after = pattern.substr(close + 1);
    const std::string range = pattern.substr(open + 1, close - open - 1);
    const std::size_t colon = range.find(':'), second = range.find(':', colon + 1);
    if (colon == range.npos) return false;
    const std::string from = range.substr(0, colon), to = range.substr(colon + 1, second - colon - 1);
    const auto step = second == range.npos ? 1 : number_of(range.substr(second + 1), 1, 1'000'000).value_or(0);
    const bool letters = from.size() == 1 && to.size() == 1 && from[0] >= 'A' && to[0] >= 'A';
    const auto first = letters ? from[0] : number_of(from.empty() ? "0" : from, 0, 1'000'000'000).value_or(-1);
    const auto last = letters ? to[0] : number_of(to, 0, 1'000'000'000).value_or(-1);
    if (step < 1 || first < 0 || last < first || from.find('x') != from.npos) return false;
    for (std::int64_t at = first; at <= last; at += step) {
        std::string middle = letters ? std::string(1, static_cast<char>(at)) : std::to_string(at);
        if (!letters && middle.size() < from.size()) middle.insert(0, from.size() - middle.size(), '0');
        if (!expand(before + middle + after, names)) return false;
    }
    return true;
}

struct IniReader {
    Inventory &inventory;
    const std::string &file;
    std::string group = "ungrouped", kind;

    std::string heading(std::string_view line) {
        if (line.back() != ']') return "the heading does not end in `]`";
        const std::string_view name = trimmed(line.substr(1, line.size() - 2));
        const std::size_t colon = name.find(':');
        group = std::string(name.substr(0, colon));
        kind = colon == name.npos ? "" : std::string(name.substr(colon + 1));
        if (group.empty()) return "the heading names no group";
        inventory.groups.try_emplace(group);
        return kind.empty() || kind == "vars" || kind == "children" ? "" : "[GROUP:" + kind + "] is unknown";
    }

    std::string variable(const std::string &word, Variables &into) const {
        const std::size_t equals = word.find('=');
        if (equals == word.npos || equals == 0) return "`" + word + "` must have the form name=value";
        into[std::string(trimmed(word.substr(0, equals)))] = std::string(trimmed(word.substr(equals + 1)));
        return "";
    }

    std::string take(std::string_view line, const std::string &origin) {
        if (line[0] == '[') return heading(trimmed(line.substr(0, line.find('#'))));
        const auto words = words_of(line);
        if (!words) return "a quote is not closed";
        if (words->empty()) return "";
        Group &in = inventory.groups[group];
        if (kind == "vars") {
            // Blanks may stand around the equals sign.
            std::string joined;
            for (const std::string &word : *words) joined += (joined.empty() ? "" : " ") + word;
            return variable(joined, in.variables);
        }
        if (kind == "children") {
            in.children.push_back((*words)[0]);
            inventory.groups.try_emplace((*words)[0]);
            return words->size() == 1 ? "" : "more than one group on the line";
        }
        std::vector<std::string> names;
        if (!expand((*words)[0], names)) return "`" + (*words)[0] + "` is not a range of hosts such as web[01:10]";
        Variables variables;
        for (std::size_t i = 1; i < words->size(); ++i)
            if (std::string wrong = variable((*words)[i], variables); !wrong.empty()) return wrong;
        for (const std::string &name : names) {
            inventory.add(name, origin);
            in.hosts.push_back(name);
            for (const auto &[key, value] : variables) inventory.hosts[name][key] = value;
        }
        return inventory.order.size() <= most_hosts ? "" : "there are more than 100000 hosts";
    }
};

Status read_ini(std::string_view text, const std::string &file, Inventory &inventory) {
    IniReader reader{inventory, file};
    for (std::size_t number = 1; !text.empty(); ++number) {
        const std::string_view line = trimmed(take_line(text));
        if (line.empty() || line[0] == '#' || line[0] == ';') continue;
        const std::string origin = file + ":" + std::to_string(number);
        if (const std::string wrong = reader.take(line, origin); !wrong.empty())
            return fail(Code::invalid, origin + ": " + wrong);
    }
    return Status::ok();
}

// ---- JSON ---------------------------------------------------------------------------------------------------------

std::string text_of(const json::value &value) {
    return value.is_string() ? std::string(value.get_string()) : json::serialize(value);
}

std::vector<std::string> names_in(const json::object &object, const char *key) {
    std::vector<std::string> names;
    const json::value *list = object.if_contains(key);
    if (list == nullptr || !list->is_array()) return names;
    for (const json::value &name : list->get_array())
        if (name.is_string()) names.emplace_back(name.get_string());
    return names;
}

Variables variables_in(const json::value *value) {
    Variables variables;
    if (value == nullptr || !value->is_object()) return variables;
    for (const auto &[key, of] : value->get_object()) variables[std::string(key)] = text_of(of);
    return variables;
}

Status read_json(std::string_view text, const std::string &file, Inventory &inventory) {
    json::error_code error;
    const json::value parsed = json::parse(text, error);
    if (error) return fail(Code::invalid, file + ": it begins like JSON, but is not valid: " + error.message());
    for (const auto &[name, group] : parsed.get_object()) {
        if (name == "_meta" || !group.is_object()) continue;
        const json::object &object = group.get_object();
        Group &into = inventory.groups[std::string(name)];
        into.hosts = names_in(object, "hosts");
        into.children = names_in(object, "children");
        into.variables = variables_in(object.if_contains("vars"));
        for (const std::string &host : into.hosts) inventory.add(host, file);
    }
    const json::value *meta = parsed.get_object().if_contains("_meta");
    const json::object *known = meta != nullptr ? meta->if_object() : nullptr;
    const json::value *of_hosts = known != nullptr ? known->if_contains("hostvars") : nullptr;
    if (of_hosts == nullptr || !of_hosts->is_object()) return Status::ok();
    for (const auto &[host, variables] : of_hosts->get_object()) {
        inventory.add(std::string(host), file);
        inventory.hosts[std::string(host)] = variables_in(&variables);
    }
    return Status::ok();
}

// ---- what it comes to ---------------------------------------------------------------------------------------------

// Groups may have children in common, so that there are many ways to one: each group is looked at once.
using Depths = std::map<std::string, std::size_t>;

// One of `left`, each of which has a parent there: one that is among its own children.
std::string in_a_circle(const Inventory &inventory, const std::set<std::string> &left) {
    std::map<std::string, std::string> parents;
    for (const std::string &name : left)
        for (const std::string &child : inventory.groups.at(name).children)
            if (left.count(child) != 0) parents[child] = name;
    std::string name = *left.begin();
    for (std::size_t i = 0; i < left.size(); ++i) name = parents.at(name);
    return name;
}

// How far each group is from the outermost ones, and from `all`; or the name of one that is among its own children.
std::string deepen(Inventory &inventory, Depths &depths) {
    std::vector<std::string> order;
    for (const auto &[name, group] : inventory.groups)
        order.insert(order.end(), group.children.begin(), group.children.end());
    for (const std::string &child : order) inventory.groups.try_emplace(child);
    std::map<std::string, std::size_t> parents;
    std::set<std::string> left;
    for (const std::string &child : order) ++parents[child];
    order.clear();
    for (const auto &[name, group] : inventory.groups) {
        left.insert(name);
        depths[name] = name == "all" ? 0 : 1;
        if (parents.count(name) == 0) order.push_back(name);
    }
    for (std::size_t i = 0; i < order.size(); ++i) {
        const std::string name = order[i];
        left.erase(name);
        for (const std::string &child : inventory.groups.at(name).children) {
            depths[child] = std::max(depths[child], depths[name] + 1);
            if (--parents[child] == 0) order.push_back(child);
        }
    }
    return left.empty() ? "" : in_a_circle(inventory, left);
}

std::set<std::string> hosts_below(const Inventory &inventory, const std::string &outermost) {
    std::set<std::string> hosts, seen{outermost};
    std::vector<std::string> ahead{outermost};
    while (!ahead.empty()) {
        const Group &group = inventory.groups.at(ahead.back());
        ahead.pop_back();
        hosts.insert(group.hosts.begin(), group.hosts.end());
        for (const std::string &child : group.children)
            if (seen.insert(child).second) ahead.push_back(child);
    }
    return hosts;
}

// Names and tags of machines may be chosen by others: none brings another setting, or a line of its own.
bool is_one_word(const std::string &text) {
    return std::none_of(text.begin(), text.end(),
                        [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == '#' || c == '\x7f'; });
}

Result<std::vector<ListedHost>> listed(Inventory &inventory, const std::string &file, const std::string &only) {
    Depths depths;
    if (const std::string circle = deepen(inventory, depths); !circle.empty())
        return fail(Code::invalid, file + ": group " + circle + " is among its own children");
    std::vector<std::string> order;
    for (const auto &[name, depth] : depths) order.push_back(name);
    std::stable_sort(order.begin(), order.end(), [&](const auto &a, const auto &b) { return depths[a] < depths[b]; });
    if (!only.empty() && only != "all" && inventory.groups.count(only) == 0)
        return fail(Code::not_found, file + ": there is no group " + only);
    const std::set<std::string> everyone(inventory.order.begin(), inventory.order.end());
    std::map<std::string, Variables> settings;
    for (const std::string &name : order) {
        const std::set<std::string> hosts = name == "all" ? everyone : hosts_below(inventory, name);
        for (const std::string &host : hosts)
            for (const auto &[key, value] : inventory.groups[name].variables) settings[host][key] = value;
    }
    const std::set<std::string> chosen = only.empty() || only == "all" ? everyone : hosts_below(inventory, only);
    std::vector<ListedHost> hosts;
    for (const std::string &name : inventory.order) {
        if (chosen.count(name) == 0) continue;
        for (const auto &[key, value] : inventory.hosts[name]) settings[name][key] = value;
        ListedHost host{name, {}, inventory.origins[name]};
        if (!is_name(name)) return fail(Code::invalid, host.origin + ": `" + name + "` is not a host name");
        for (const auto &[key, value] : settings[name]) {
            if (key.rfind(ours, 0) != 0) continue;
            const auto refused = [&](const std::string &what) {
                return fail(Code::invalid, host.origin + ": " + name + ": " + key + what + ": `" + value + "`");
            };
            if (!is_name(std::string_view(key).substr(ours.size())))
                return refused(" is not a setting of the host table");
            if (!is_one_word(value)) return refused(" is not one word");
            host.settings.emplace_back(key.substr(ours.size()), value);
        }
        hosts.push_back(std::move(host));
    }
    return hosts;
}

}  // namespace

Result<std::vector<ListedHost>> hosts_of_inventory(std::string_view text, const std::string &file,
                                                   const std::string &group) {
    Inventory inventory;
    const std::size_t first = text.find_first_not_of(" \t\r\n");
    const bool is_json = first != text.npos && text[first] == '{';
    if (first != text.npos && text.substr(first, 3) == "---")
        return fail(Code::invalid, file + ": this is YAML; convert it with `ansible-inventory -i " + file +
                                       " --list`, and import that");
    if (Status s = is_json ? read_json(text, file, inventory) : read_ini(text, file, inventory); !s) return s;
    return listed(inventory, file, group);
}

}  // namespace dcs::commands
