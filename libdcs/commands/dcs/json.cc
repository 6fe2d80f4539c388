#include "json.h"

#include <cstdio>

#include "wire/json.h"

namespace dcs::commands {

std::string json_string(std::string_view text) { return wire::json_string(text); }
std::string json_number(double value) { return wire::json_number(value); }

std::string json_array(const std::vector<std::string> &documents) {
    std::string out = "[";
    for (const std::string &document : documents) {
        if (out.size() > 1) out += ",";
        out += document;
    }
    return out + "]";
}

JsonObject &JsonObject::add_raw(std::string_view name, std::string_view document) {
    if (!members_.empty()) members_ += ",";
    members_ += json_string(name);
    members_ += ":";
    members_ += document;
    return *this;
}

JsonObject &JsonObject::add_members(std::string_view object) {
    if (object.size() <= 2) return *this;
    if (!members_.empty()) members_ += ",";
    members_ += object.substr(1, object.size() - 2);
    return *this;
}

void print_document(const char *schema, const char *name, const std::string &document) {
    JsonObject json;
    json.add("schema", schema).add_raw(name, document);
    std::printf("%s\n", json.text().c_str());
}

}  // namespace dcs::commands
