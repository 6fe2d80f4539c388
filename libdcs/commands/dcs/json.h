#pragma once
// The little JSON that the commands write themselves; rows come from wire/.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dcs::commands {

// With quotes. Bytes that are not UTF-8 become U+FFFD: the document is always valid.
std::string json_string(std::string_view text);
std::string json_number(double value);  // null for what JSON cannot say
std::string json_array(const std::vector<std::string> &documents);

class JsonObject {
public:
    JsonObject &add(std::string_view name, std::string_view value) {
        return add_raw(name, json_string(value));
    }
    JsonObject &add(std::string_view name, const char *value) {
        return add_raw(name, json_string(value));
    }
    JsonObject &add(std::string_view name, double value) {
        return add_raw(name, json_number(value));
    }
    JsonObject &add(std::string_view name, bool value) {
        return add_raw(name, value ? "true" : "false");
    }
    JsonObject &add(std::string_view name, std::int64_t value) {
        return add_raw(name, std::to_string(value));
    }
    JsonObject &add(std::string_view name, int value) {
        return add_raw(name, std::to_string(value));
    }
    JsonObject &add(std::string_view name, std::uint64_t value) {
        return add_raw(name, std::to_string(value));
    }
    JsonObject &add_raw(std::string_view name, std::string_view document);
    // All members of another object's text ("{...}"), in their order.
    JsonObject &add_members(std::string_view object);
    std::string text() const { return "{" + members_ + "}"; }

private:
    std::string members_;
};

// Prints {"schema":SCHEMA,NAME:DOCUMENT} as one line on stdout.
void print_document(const char *schema, const char *name, const std::string &document);

}  // namespace dcs::commands
