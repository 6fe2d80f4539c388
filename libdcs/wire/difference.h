#pragma once
// FieldList: the fields of a struct as a flat list of name and value, by its serialize(). Two lists
// of the same struct, compared, name what differs.
#include <string>
#include <string_view>
#include <vector>

#include <boost/archive/detail/interface_oarchive.hpp>

#include "wire/archive_rules.h"
#include "wire/content_calls.h"

namespace dcs::wire {

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
            Field f;
            f.name = field.name();
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

// One line per field that differs: `argv[2]: recorded "x", now "y"`. Long strings are shown by their
// lengths, the offset of the first difference and an excerpt there. The text stays below 4 KiB.
std::string compare(const std::vector<Field> &recorded, const std::vector<Field> &now, std::string_view ignored_field);

}  // namespace dcs::wire
