#pragma once
// JsonText: a struct as one JSON object, by its serialize(); names as in the struct. Bytes that are
// not UTF-8 (a grain's message may hold any) become U+FFFD, so that the text is always valid.
#include <string>
#include <string_view>

#include <boost/archive/detail/interface_oarchive.hpp>

#include "wire/archive_rules.h"
#include "wire/content.h"

namespace dcs::wire {

bool valid_utf8(std::string_view bytes);
std::string in_hex(std::string_view bytes);
std::string json_string(std::string_view bytes);  // quoted and escaped
std::string json_number(double value);            // shortest that reads back; null if not finite

class JsonText : public boost::archive::detail::interface_oarchive<JsonText> {
public:
    template <class T> static std::string of(const T &value) {
        JsonText json;
        walk_fields(json, value);
        return "{" + json.text_ + "}";
    }
    template <class T> void save_override(const boost::serialization::nvp<T> &field) {
        if (!text_.empty()) text_ += ',';
        text_ += '"';
        text_ += field.name();
        text_ += "\":";
        if constexpr (std::is_same_v<T, std::string>)
            if (std::string_view(field.name()) == "digest") {
                text_ += json_string(in_hex(field.const_value()));
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
};

}  // namespace dcs::wire
