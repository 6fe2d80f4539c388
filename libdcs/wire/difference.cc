// What differs between two structs, by the lists of their fields that their serialize() gives.
#include <algorithm>
#include <map>

#include <boost/archive/detail/interface_oarchive.hpp>

#include "base/text.h"
#include "wire/message.h"

namespace dcs::wire {
namespace {

// Strings are views into the struct, which must outlive the list.
struct Field {
    std::string name;
    bool is_list = false;
    std::vector<std::string_view> items;  // a list of strings, or one string
    std::string number;                   // anything else, as text
    std::vector<std::string> made;        // what `items` look at, if the struct has no such text
};

class FieldList : public boost::archive::detail::interface_oarchive<FieldList> {
public:
    std::vector<Field> fields;

    template <class T> void save_override(const FieldOf<T> &field) {
        if constexpr (is_part<T>) {
            walk_fields(*this, field.const_value());
        } else {
            Field f{.name = field.name()};
            put(f, field.const_value());
            fields.push_back(std::move(f));
        }
    }

private:
    static void put(Field &f, bool value) { f.number = value ? "true" : "false"; }
    static void put(Field &f, const std::string &value) { f.items = {value}; }
    static void put(Field &f, const std::vector<std::string> &value) {
        f.is_list = true;
        f.items.assign(value.begin(), value.end());
    }
    static void put(Field &f, const std::vector<GrainFile> &value) {
        f.is_list = true;
        for (const GrainFile &file : value) f.made.push_back(to_text(file));
        f.items.assign(f.made.begin(), f.made.end());
    }
    template <FixedInteger T> static void put(Field &f, T value) { f.number = std::to_string(value); }
};

constexpr std::size_t whole_string = 100;  // longer ones are shown as an excerpt
constexpr std::size_t excerpt = 24;
constexpr std::size_t text_limit = 4000;

std::string quoted(std::string_view s) {
    std::string r = "\"";
    for (const char c : s) {
        const auto u = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            r += '\\';
            r += c;
        } else if (c == '\n') {
            r += "\\n";
        } else if (u < 0x20 || u >= 0x7f) {
            r += "\\x" + hex_of({&c, 1});
        } else {
            r += c;
        }
    }
    return r + "\"";
}

std::string length_text(std::string_view s) { return std::to_string(s.size()) + " bytes"; }

std::string string_line(const std::string &name, std::string_view a, std::string_view b) {
    if (a.size() <= whole_string && b.size() <= whole_string)
        return name + ": recorded " + quoted(a) + ", now " + quoted(b);
    const auto at = static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
    const std::size_t from = at - std::min<std::size_t>(at, 8);
    return name + ": recorded " + length_text(a) + ", now " + length_text(b) + ", first difference at offset " +
           std::to_string(at) + ": recorded " + quoted(a.substr(from, excerpt)) + ", now " +
           quoted(b.substr(from, excerpt));
}

std::string list_lines(const Field &a, const Field &b) {
    std::string r;
    if (a.items.size() != b.items.size())
        r += a.name + ": recorded " + std::to_string(a.items.size()) + " items, now " + std::to_string(b.items.size()) +
             "\n";
    const std::size_t common = std::min(a.items.size(), b.items.size());
    for (std::size_t i = 0; i < common && r.size() < text_limit; ++i)
        if (a.items[i] != b.items[i])
            r += string_line(a.name + "[" + std::to_string(i) + "]", a.items[i], b.items[i]) + "\n";
    const Field &longer = a.items.size() > common ? a : b;
    if (longer.items.size() > common)
        r += a.name + "[" + std::to_string(common) + "]: " + (&longer == &a ? "recorded " : "now ") +
             quoted(longer.items[common].substr(0, whole_string)) + ", " + (&longer == &a ? "now" : "recorded") +
             " nothing\n";
    return r;
}

// By their names, and without values, which may be secrets.
std::string variable_lines(const Field &a, const Field &b) {
    std::map<std::string_view, std::pair<std::string_view, std::string_view>> variables;
    for (const std::string_view item : a.items) variables[item.substr(0, item.find('='))].first = item;
    for (const std::string_view item : b.items) variables[item.substr(0, item.find('='))].second = item;
    std::string r;
    for (const auto &[name, entries] : variables) {
        const auto &[recorded, now] = entries;
        if (recorded == now || r.size() >= text_limit) continue;
        r += a.name + " " + std::string(name.substr(0, whole_string)) + ": " +
             (recorded.empty() ? "recorded without, now with it"
              : now.empty()    ? "recorded with it, now without"
                               : "recorded with another value") +
             "\n";
    }
    return r.empty() ? a.name + ": recorded in another order\n" : r;
}

std::string field_lines(const Field &a, const Field &b) {
    if (a.items == b.items && a.number == b.number) return {};
    if (a.name == "env") return variable_lines(a, b);
    if (a.is_list) return list_lines(a, b);
    if (!a.items.empty()) return string_line(a.name, a.items[0], b.items[0]) + "\n";
    return a.name + ": recorded " + a.number + ", now " + b.number + "\n";
}

}  // namespace

// One line per field or variable that differs: `argv[2]: recorded "x", now "y"`. Long strings are shown by their
// lengths, the offset of the first difference and an excerpt there. The text stays below 4 KiB.
std::string difference(const GrainSpec &recorded, const GrainSpec &now) {
    FieldList before, after;
    walk_fields(before, recorded);
    walk_fields(after, now);
    std::string r;
    for (std::size_t i = 0; i < before.fields.size(); ++i) {
        if (before.fields[i].name == "label") continue;
        r += field_lines(before.fields[i], after.fields[i]);
        if (r.size() > text_limit) {
            r.resize(r.rfind('\n', text_limit) + 1);
            r += "and more";
            break;
        }
    }
    if (!r.empty() && r.back() == '\n') r.pop_back();
    return r;
}

}  // namespace dcs::wire
