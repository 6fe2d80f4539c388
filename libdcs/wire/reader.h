#pragma once
// Reader: a struct from bytes that anybody may have written. It never reads past the end, never
// allocates for more elements than the bytes that are left could hold, and takes no value that
// the type does not have. The first violation spoils it: what follows is zero and empty, and
// status() says which field it was.
#include <bit>
#include <cmath>

#include <boost/archive/detail/interface_iarchive.hpp>

#include "base/bytes.h"
#include "base/status.h"
#include "wire/archive_rules.h"
#include "wire/writer.h"

namespace dcs::wire {

// Hard caps of fields by name, in bytes of a string or elements of a vector; SIZE_MAX where the
// frame's own limit is all there is.
std::size_t cap_of_field(const char *name);

class Reader : public boost::archive::detail::interface_iarchive<Reader> {
public:
    explicit Reader(std::string_view in) : in_(in) {}

    bool good() const { return in_.good(); }
    bool at_end() const { return in_.at_end(); }
    // ok only if everything was read and nothing is left over.
    Status status() const {
        if (!good()) return fail(Code::protocol, "field " + field_ + ": " + why_);
        if (!at_end()) return fail(Code::protocol, std::to_string(in_.left()) + " bytes too many");
        return Status::ok();
    }

    template <class T> void load_override(const boost::serialization::nvp<T> &field) {
        if (!good()) return;  // keep the name of the field that was bad
        field_ = field.name();
        if constexpr (std::is_same_v<T, std::string> || is_vector<T>)
            cap_ = cap_of_field(field.name());
        load_override(field.value());
    }
    template <class T> void load_override(T &value) {
        if constexpr (std::is_same_v<T, bool>) {
            const std::uint8_t v = in_.u8();
            if (v > 1) spoil("a truth value that is neither 0 nor 1");
            value = v == 1;
        } else if constexpr (std::is_same_v<T, double>) {
            value = std::bit_cast<double>(in_.u64());
            if (!std::isfinite(value)) spoil("not a finite number"), value = 0;
        } else if constexpr (ByteEnum<T>) {
            const std::uint8_t v = in_.u8();
            const bool valid = v <= static_cast<std::uint8_t>(last_of(T{}));
            if (!valid) spoil("a value that this type does not have");
            value = valid ? static_cast<T>(v) : T{};
        } else if constexpr (FixedInteger<T>) {
            integer(value);
        } else if constexpr (std::is_same_v<T, std::string>) {
            value = in_.raw(count(1, cap_));
        } else if constexpr (is_vector<T>) {
            elements(value);
        } else {
            walk_fields(*this, value);
        }
    }

private:
    template <class T> void integer(T &value) {
        if constexpr (sizeof(T) == 1) value = static_cast<T>(in_.u8());
        else if constexpr (sizeof(T) == 2) value = static_cast<T>(in_.u16());
        else if constexpr (sizeof(T) == 4) value = static_cast<T>(in_.u32());
        else value = static_cast<T>(in_.u64());
    }
    template <class T> void elements(std::vector<T> &value) {
        const std::size_t n = count(smallest<T>(), cap_);
        cap_ = SIZE_MAX;  // the field's cap is on the vector, not on its strings
        value.clear();
        value.reserve(n);
        for (std::size_t i = 0; i < n && good(); ++i) load_override(value.emplace_back());
        if (!good()) value.clear();
    }
    // How many bytes the smallest element takes: every count in a default one is zero.
    template <class T> static std::size_t smallest() {
        static const std::size_t size = [] {
            Writer w;
            w << T{};
            DCS_REQUIRE(!w.bytes().empty(), "elements without bytes could be claimed in any number");
            return w.bytes().size();
        }();
        return size;
    }
    // A count, checked before anything is allocated for it.
    std::size_t count(std::size_t smallest_element, std::size_t cap) {
        const std::size_t n = in_.u32();
        if (n > in_.left() / smallest_element) {
            spoil("claims " + std::to_string(n) + " elements, more than there are bytes for");
            return 0;
        }
        if (n > cap) {
            spoil("has " + std::to_string(n) + " elements, the limit is " + std::to_string(cap));
            return 0;
        }
        return n;
    }
    void spoil(std::string why) {
        if (in_.good()) why_ = std::move(why);
        in_.spoil();
    }

    ByteReader in_;
    std::string field_ = "?", why_ = "the bytes end too early";
    std::size_t cap_ = SIZE_MAX;
};

}  // namespace dcs::wire
