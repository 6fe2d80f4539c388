#pragma once
// One line of JSON, built by hand: dcs_lock is linked statically and starts in half a millisecond.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dcs::lock_command {

std::string quoted(std::string_view text);  // bytes that are no UTF-8 become U+FFFD

class JsonObject {
public:
    JsonObject() = default;
    explicit JsonObject(std::string_view schema) { text("schema", schema); }
    JsonObject &text(std::string_view name, std::string_view value) { return raw(name, quoted(value)); }
    JsonObject &number(std::string_view name, std::int64_t value) { return raw(name, std::to_string(value)); }
    JsonObject &count(std::string_view name, std::uint64_t value) { return raw(name, std::to_string(value)); }
    JsonObject &flag(std::string_view name, bool value) { return raw(name, value ? "true" : "false"); }
    JsonObject &seconds(std::string_view name, std::int64_t nanoseconds);  // null for "never" and for -1
    JsonObject &raw(std::string_view name, std::string_view json);
    std::string done() const { return "{" + fields_ + "}"; }

private:
    std::string fields_;
};

std::string array_of(const std::vector<std::string> &items);  // of JSON texts

}  // namespace dcs::lock_command
