#pragma once
// Reader: a struct from untrusted bytes, in the layouts of writer.h. It never reads past the end,
// never makes elements that take much more memory than the bytes that announced them, and takes no value that the type
// does not have. The first violation spoils it: what follows is zero and empty, and status() says which field it was.
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include <boost/archive/detail/interface_iarchive.hpp>

#include "base/bytes.h"
#include "base/status.h"
#include "wire/archive_rules.h"

namespace dcs::wire {

class Reader : public boost::archive::detail::interface_iarchive<Reader> {
public:
    Reader(std::string_view in, Form form) : Reader(in, form, form > positional_form) {}
    // What Writer::stored() made. A field that the bytes do not reach has its default.
    template <class T> static Status stored(std::string_view in, T &value) {
        Reader reader(in, newest_form, false);
        reader.may_end_early_ = true;
        reader.load_override(value);
        if (reader.good() && !reader.at_end()) {
            reader.tagged_ = true;
            reader.load_override(value);
        }
        return reader.status();
    }

    bool good() const { return in_.good(); }
    bool at_end() const { return in_.at_end(); }
    bool positional() const { return !tagged_; }
    // ok only if everything was read and nothing is left over.
    Status status() const {
        if (!good()) return fail(Code::protocol, "field " + field_ + ": " + why_);
        if (!at_end()) return fail(Code::protocol, std::to_string(in_.left()) + " bytes too many");
        return Status::ok();
    }

    template <class T> void load_override(const FieldOf<T> &field) {
        if (!good()) return;  // keep the name of the field that was bad
        field_ = field.name();
        ++number_;
        if (tagged_ ? !fields_->at(number_, kind_of_field<T>())
                    : field.since > positional_form || (may_end_early_ && at_end()))
            return;
        cap_ = field.most;
        load_override(field.value());
    }
    template <class T> void load_override(T &value) {
        if constexpr (std::is_same_v<T, bool>) {
            const std::uint64_t v = tagged_ ? in_.var() : in_.u8();
            if (v > 1) spoil("a boolean that is neither 0 nor 1");
            value = v == 1;
        } else if constexpr (std::is_same_v<T, double>) {
            value = std::bit_cast<double>(in_.u64());
            if (!std::isfinite(value)) spoil("not a finite number"), value = 0;
        } else if constexpr (ByteEnum<T>) {
            const std::uint64_t v = tagged_ ? in_.var() : in_.u8();
            const bool known = v <= static_cast<std::uint8_t>(last_of(T{}));
            value = known ? static_cast<T>(v) : T{};
            if (!known || in_form(value, form_) != value) spoil("a value that is not of this type");
        } else if constexpr (FixedInteger<T>) {
            if (tagged_) tagged_integer(value);
            else integer(value);
        } else if constexpr (std::is_same_v<T, std::string>) {
            value = in_.raw(count(cap_));
        } else if constexpr (is_vector<T>) {
            elements(value);
        } else if (tagged_) {
            fields(value);
        } else {
            walk_fields(*this, value);
        }
    }

private:
    // Elements may take so much more memory than bytes: an empty string is 32 of them.
    static constexpr std::size_t memory_factor = 32, memory_spare = 4096;

    Reader(std::string_view in, Form form, bool tagged)
        : in_(in),
          form_(form),
          memory_left_(in.size() * memory_factor + memory_spare),
          why_(tagged ? "the bytes end too early, or are of another kind" : "the bytes end too early"),
          tagged_(tagged) {}

    template <class T> void fields(T &value) {
        FieldReader here(in_);
        FieldReader *const outer = std::exchange(fields_, &here);
        const std::uint32_t number = std::exchange(number_, 0);
        walk_fields(*this, value);
        here.finish();
        fields_ = outer;
        number_ = number;
    }
    template <class T> void integer(T &value) {
        if constexpr (sizeof(T) == 1) value = static_cast<T>(in_.u8());
        else if constexpr (sizeof(T) == 2) value = static_cast<T>(in_.u16());
        else if constexpr (sizeof(T) == 4) value = static_cast<T>(in_.u32());
        else value = static_cast<T>(in_.u64());
    }
    template <class T> void tagged_integer(T &value) {
        using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
        Wide v = 0;
        if constexpr (std::is_signed_v<T>) v = in_.svar();
        else v = in_.var();
        const bool fits = v >= Wide{std::numeric_limits<T>::min()} && v <= Wide{std::numeric_limits<T>::max()};
        if (!fits) spoil("a number that is not of this type");
        value = fits ? static_cast<T>(v) : T{};
    }
    template <class T> void elements(std::vector<T> &value) {
        if (tagged_ && in_.u8() != static_cast<std::uint8_t>(kind_of_field<T>())) spoil("elements of another kind");
        const std::size_t n = count(cap_);
        if (n > memory_left_ / sizeof(T))
            return spoil("has " + std::to_string(n) + " elements, too many for the memory");
        memory_left_ -= n * sizeof(T);
        cap_ = SIZE_MAX;  // the field's cap is on the vector, not on its strings
        value.clear();
        value.reserve(n);
        for (std::size_t i = 0; i < n && good(); ++i) load_override(value.emplace_back());
        if (!good()) value.clear();
    }
    // Of elements that take a byte at least, checked before anything is allocated for them.
    std::size_t count(std::size_t cap) {
        const std::uint64_t n = tagged_ ? in_.var() : in_.u32();
        if (n > in_.left()) {
            spoil("claims " + std::to_string(n) + " elements, more than its bytes can hold");
            return 0;
        }
        if (n > cap) {
            spoil("has " + std::to_string(n) + " elements, the limit is " + std::to_string(cap));
            return 0;
        }
        return static_cast<std::size_t>(n);
    }
    void spoil(std::string why) {
        if (in_.good()) why_ = std::move(why);
        in_.spoil();
    }

    ByteReader in_;
    Form form_;
    std::size_t memory_left_;
    std::string field_ = "?", why_;
    std::size_t cap_ = SIZE_MAX;
    FieldReader *fields_ = nullptr;  // tagged: of the struct at hand
    std::uint32_t number_ = 0;       // of the field at hand
    bool tagged_, may_end_early_ = false;
};

}  // namespace dcs::wire
