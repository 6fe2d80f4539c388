#pragma once
// JsonText: a struct as one JSON object, by its serialize(); names as in the struct. Bytes that are
// not UTF-8 (a grain's message may hold any) become U+FFFD, so that the text is always valid.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <boost/archive/detail/interface_oarchive.hpp>

#include "base/text.h"
#include "base/json.h"
#include "wire/archive_rules.h"
#include "wire/content_calls.h"

namespace dcs::wire {

class JsonText : public boost::archive::detail::interface_oarchive<JsonText> {
public:
    // Where a row is published otherwise than its struct has it.
    struct Rules {
        std::vector<std::string_view> unknown;  // fields whose value is not known now: null
        std::string_view field, name;           // a field that has another name
    };
    template <class T> static std::string of(const T &value, Rules rules = {}) {
        JsonText json;
        json.rules_ = std::move(rules);
        walk_fields(json, value);
        return "{" + json.text_ + "}";
    }
    template <class T> void save_override(const FieldOf<T> &field) {
        if constexpr (is_part<T>) return walk_fields(*this, field.const_value());
        if (!text_.empty()) text_ += ',';
        text_ += '"';
        text_ += rules_.field == field.name() ? rules_.name : field.name();
        text_ += "\":";
        if (std::find(rules_.unknown.begin(), rules_.unknown.end(), field.name()) != rules_.unknown.end()) {
            text_ += "null";
            return;
        }
        if constexpr (std::is_same_v<T, std::string>)
            if (std::string_view(field.name()) == "digest") {
                text_ += json_string(hex_of(field.const_value()));
                return;
            }
        text_ += value_of(field.const_value());
    }

private:
    template <class T> static std::string value_of(const T &value) {
        if constexpr (std::is_same_v<T, bool>) {
            return value ? "true" : "false";
        } else if constexpr (std::is_same_v<T, double>) {
            return json_number(value);
        } else if constexpr (FixedInteger<T>) {
            return std::to_string(value);
        } else if constexpr (std::is_same_v<T, std::string>) {
            return json_string(value);
        } else if constexpr (std::is_same_v<T, FileRole>) {
            return json_string(name_of(value));
        } else if constexpr (is_vector<T>) {
            std::string list;
            for (const auto &item : value) list += (list.empty() ? "" : ",") + value_of(item);
            return "[" + list + "]";
        } else {
            return of(value);
        }
    }
    std::string text_;
    Rules rules_;
};

}  // namespace dcs::wire
