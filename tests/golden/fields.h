#pragma once
// The fields of a struct by name: filled with values that are not their defaults, and told as text. Compiled into the
// tests of this release and into the recorder of an older one (record_0_1.cc), whose lists hold fields of another type.
#include <cctype>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include <boost/archive/detail/interface_oarchive.hpp>

#include "wire/archive_rules.h"

namespace dcs::golden {

inline std::string escaped(const std::string &text) {
    std::string out;
    for (const unsigned char c : text) {
        char hex[4];
        std::snprintf(hex, sizeof hex, "%%%02x", c);
        const bool plain = std::isalnum(c) || c == '.' || c == '_' || c == '-' || c == '/';
        out += plain ? std::string(1, static_cast<char>(c)) : hex;
    }
    return out;
}

// One line "name=value" for each field that release 0.1 has. The fields of `demands` stand among those of its struct,
// as they did there.
template <template <class> class FieldType>
class Told : public boost::archive::detail::interface_oarchive<Told<FieldType>> {
public:
    std::vector<std::string> lines;

    template <class T> void save_override(const FieldType<T> &field) {
        if constexpr (requires { field.since; })
            if (field.since > 8) return;
        const std::string name = field.name();
        tell(place_ + name, field.const_value(), name == "demands" ? place_ : place_ + name + ".");
    }
    template <class T> void save_override(const T &value) { wire::walk_fields(*this, value); }

private:
    template <class T> void tell(const std::string &name, const T &value, const std::string &inside) {
        if constexpr (std::is_same_v<T, std::string>) {
            lines.push_back(name + "=" + escaped(value));
        } else if constexpr (wire::is_vector<T>) {
            lines.push_back(name + ".size=" + std::to_string(value.size()));
            for (std::size_t i = 0; i < value.size(); ++i) {
                const std::string item = name + "[" + std::to_string(i) + "]";
                tell(item, value[i], item + ".");
            }
        } else if constexpr (std::is_same_v<T, double>) {
            char text[40];
            std::snprintf(text, sizeof text, "%.17g", value);
            lines.push_back(name + "=" + text);
        } else if constexpr (std::is_arithmetic_v<T>) {
            lines.push_back(name + "=" + std::to_string(value));
        } else if constexpr (std::is_enum_v<T>) {
            lines.push_back(name + "=" + std::to_string(static_cast<int>(value)));
        } else {
            const std::string before = place_;
            place_ = inside;
            wire::walk_fields(*this, value);
            place_ = before;
        }
    }
    std::string place_;
};

enum class Fill { few, extreme };

// Other values in each field of a struct, and the same ones each time.
template <template <class> class FieldType>
class Filler : public boost::archive::detail::interface_oarchive<Filler<FieldType>> {
public:
    explicit Filler(Fill how) : extreme_(how == Fill::extreme) {}
    template <class T> void save_override(const FieldType<T> &field) { fill(const_cast<T &>(field.const_value())); }
    template <class T> void save_override(const T &value) { wire::walk_fields(*this, value); }

private:
    template <class T> void fill(T &value) {
        ++n_;
        if constexpr (std::is_same_v<T, std::string>) {
            value = extreme_ ? std::string(1 + n_ % 32, '\xff') : "s" + std::to_string(n_) + std::string("\0 \"", 3);
        } else if constexpr (wire::is_vector<T>) {
            value.resize(extreme_ ? 1 : 2);
            for (auto &item : value) fill(item);
        } else if constexpr (std::is_same_v<T, bool>) {
            value = !extreme_ || n_ % 2 == 0;
        } else if constexpr (std::is_same_v<T, double>) {
            value = extreme_ ? -1.5e300 : n_ + 0.5;
        } else if constexpr (std::is_integral_v<T>) {
            using Limits = std::numeric_limits<T>;
            value = static_cast<T>(!extreme_ ? 30 + n_ : std::is_signed_v<T> ? Limits::min() : Limits::max());
        } else if constexpr (std::is_enum_v<T>) {
            const int last = static_cast<int>(last_of(T{}));
            value = static_cast<T>(extreme_ ? n_ % (last + 1) : last);
        } else {
            wire::walk_fields(*this, value);
        }
    }
    bool extreme_;
    int n_ = 0;
};

}  // namespace dcs::golden
