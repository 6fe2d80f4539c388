#pragma once
// JSON on one line, written by hand: no library of it links into dcs_lock, which is static and starts at once.
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace dcs {

std::string json_string(std::string_view text);  // quoted; bytes that are no UTF-8 become U+FFFD: always valid
std::string json_number(double value);           // the shortest that reads back; null for what JSON cannot say
std::string json_array(const std::vector<std::string> &documents);

class JsonObject {
public:
    JsonObject() = default;
    explicit JsonObject(std::string_view schema) { add("schema", schema); }
    JsonObject &add(std::string_view name, std::string_view value) { return add_raw(name, json_string(value)); }
    JsonObject &add(std::string_view name, const char *value) { return add_raw(name, json_string(value)); }
    JsonObject &add(std::string_view name, double value) { return add_raw(name, json_number(value)); }
    template <class T>
    requires std::is_integral_v<T> JsonObject &add(std::string_view name, T value) {
        if constexpr (std::is_same_v<T, bool>) return add_raw(name, value ? "true" : "false");
        else return add_raw(name, std::to_string(value));
    }
    JsonObject &add_raw(std::string_view name, std::string_view document);
    // An array of what `document` makes of each.
    template <class Rows, class Document>
    JsonObject &add_list(std::string_view name, const Rows &rows, const Document &document) {
        std::vector<std::string> documents;
        for (const auto &row : rows) documents.push_back(document(row));
        return add_raw(name, json_array(documents));
    }
    // All members of another object's text ("{...}"), in their order.
    JsonObject &add_members(std::string_view object);
    std::string text() const { return "{" + members_ + "}"; }

private:
    std::string members_;
};

}  // namespace dcs
