#pragma once
// Pieces of the lines that describe.cc and describe_input.cc write.
#include <string>

#include "scheduler/state/state.h"

namespace dcs::core {

// "name value" pairs; what is zero or empty is left out.
class Line {
public:
    explicit Line(std::string begin) : text_(std::move(begin)) {}
    Line &add(const char *name, std::int64_t value) {
        if (value != 0) text_ += std::string(" ") + name + " " + std::to_string(value);
        return *this;
    }
    Line &number(const char *name, std::uint64_t value) { return add(name, static_cast<std::int64_t>(value)); }
    Line &add(const char *name, const std::string &value) {
        if (!value.empty()) text_ += std::string(" ") + name + " " + value;
        return *this;
    }
    Line &flag(const char *name, bool set) {
        if (set) text_ += std::string(" ") + name;
        return *this;
    }
    operator std::string() const { return text_; }

private:
    std::string text_;
};

inline std::string text_of(const wire::WireGrain &key) { return to_text(wire::key_of(key)); }

inline std::string host_name(const State &state, HostId id) {
    const Host *host = state.host(id);
    return host ? host->config->name : id == no_host ? "" : "host" + std::to_string(static_cast<int>(id));
}

inline std::string hex(std::uint32_t mask) {
    if (mask == 0) return "";
    std::string digits;
    for (; mask != 0; mask >>= 4) digits.insert(digits.begin(), "0123456789abcdef"[mask & 15]);
    return "0x" + digits;
}

}  // namespace dcs::core
