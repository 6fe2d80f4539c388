#pragma once
// Structs as bytes, by their serialize(), in one of two layouts (form.h). Tagged: base/bytes.h. Positional: integers
// little-endian in their own width, bool and enums one byte, double as the 64 bits of IEEE 754, strings and vectors a
// 32-bit count and then their content.
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include <boost/archive/detail/interface_iarchive.hpp>
#include <boost/archive/detail/interface_oarchive.hpp>

#include "base/bytes.h"
#include "base/first_made.h"
#include "base/require.h"
#include "base/status.h"
#include "wire/archive_rules.h"

namespace dcs::wire {

class Writer : public boost::archive::detail::interface_oarchive<Writer> {
public:
    using Values = std::vector<std::string>;  // of the fields of a struct, tagged

    // For a peer that reads `form`. `head_room` zero bytes come first: a frame's header is patched in there later.
    explicit Writer(Form form, std::size_t head_room = 0) : form_(form), tagged_(form > positional_form) {
        out_.bytes().assign(head_room, '\0');
    }
    // For this release and later ones, beginning with the bytes that release 0.1 wrote. What it did not know follows
    // as tagged fields, if there is any; in elements of lists there cannot be.
    template <class T> static std::string stored(const T &value) {
        Writer writer(every_form);
        writer.bytes().reserve(256);  // a small grain's, without growing four times
        writer.tagged_ = false;
        writer.save_override(value);
        const std::size_t known = writer.out_.size();
        writer.tagged_ = true;
        writer.after_ = positional_form;
        writer.fields(value);
        if (writer.out_.size() == known + 1) writer.bytes().resize(known);  // the 0 alone
        return std::move(writer.bytes());
    }

    std::string &bytes() { return out_.bytes(); }
    bool positional() const { return !tagged_; }

    template <class T> void save_override(const FieldOf<T> &field) {
        ++number_;
        if (!tagged_) {
            if (field.since == positional_form) save_override(field.const_value());
            return;
        }
        constexpr FieldKind kind = kind_of_field<T>();
        if (field.since > form_ || (field.since <= after_ && kind != FieldKind::fields)) return;
        const std::size_t before = out_.size();
        put_tag(out_, number_, kind);
        const std::size_t at = out_.size();
        save_override(field.const_value());
        const std::string_view value = std::string_view(bytes()).substr(at);
        if (recorded_) recorded_->emplace_back(value);
        if (recorded_ || value == (*defaults_)[number_ - 1]) bytes().resize(before);
    }
    template <class T> void save_override(const T &value) {
        if constexpr (std::is_same_v<T, double>) {
            out_.u64(std::bit_cast<std::uint64_t>(value));
        } else if constexpr (FixedInteger<T> || ByteEnum<T> || std::is_same_v<T, bool>) {
            number(value);
        } else if constexpr (std::is_same_v<T, std::string>) {
            count(value.size());
            // With room for what follows: a long text is not copied once more for the last bytes of its message.
            if (value.size() > long_text) bytes().reserve(bytes().size() + value.size() + long_text / 4);
            out_.raw(value);
        } else if constexpr (is_vector<T>) {
            if (tagged_) out_.u8(static_cast<std::uint8_t>(kind_of_field<typename T::value_type>()));
            count(value.size());
            for (const auto &item : value) save_override(item);
        } else if (tagged_) {
            fields(value);
        } else {
            walk_fields(*this, value);
        }
    }

    template <class T> static std::string value_bytes(const T &value) {
        Writer writer(every_form);
        writer.save_override(value);
        return std::move(writer.bytes());
    }
    // Of a struct as it is made. A struct in a struct has its own defaults there.
    template <class T> static const Values &defaults_of() {
        static std::atomic<const Values *> values{nullptr};
        return first_made(values, [] {
            Values made;
            Writer writer(every_form);
            writer.recorded_ = &made;
            walk_fields(writer, T{});
            return made;
        });
    }

private:
    static constexpr Form every_form = UINT16_MAX;  // with all fields that there are
    static constexpr std::size_t long_text = 4096;

    template <class T> void fields(const T &value) {
        const std::uint32_t number = std::exchange(number_, 0);
        const Values *const defaults = std::exchange(defaults_, &defaults_of<T>());
        Values *const recorded = std::exchange(recorded_, nullptr);
        walk_fields(*this, value);
        end_fields(out_);
        number_ = number;
        defaults_ = defaults;
        recorded_ = recorded;
    }
    template <class T> void number(T value) {
        if constexpr (std::is_same_v<T, bool>) {
            out_.u8(value ? 1 : 0);
        } else if constexpr (ByteEnum<T>) {
            const auto known = static_cast<std::uint8_t>(in_form(value, form_));
            if (tagged_) out_.var(known);
            else out_.u8(known);
        } else if (tagged_) {
            if constexpr (std::is_signed_v<T>) out_.svar(value);
            else out_.var(value);
        } else if constexpr (sizeof(T) == 1) {
            out_.u8(static_cast<std::uint8_t>(value));
        } else if constexpr (sizeof(T) == 2) {
            out_.u16(static_cast<std::uint16_t>(value));
        } else if constexpr (sizeof(T) == 4) {
            out_.u32(static_cast<std::uint32_t>(value));
        } else {
            out_.u64(static_cast<std::uint64_t>(value));
        }
    }
    void count(std::size_t n) {
        DCS_REQUIRE(n <= UINT32_MAX, "a count does not fit into a message");
        if (tagged_) out_.var(n);
        else out_.u32(static_cast<std::uint32_t>(n));
    }

    ByteWriter out_;
    Form form_, after_ = 0;  // after_: fields of that form and older ones are left out
    bool tagged_;
    std::uint32_t number_ = 0;          // of the field at hand, in its struct
    const Values *defaults_ = nullptr;  // of its struct
    Values *recorded_ = nullptr;        // the values go there, and nowhere else
};

// The parts of a message that older forms cannot express.
struct Needed {
    Form form = positional_form;
    std::string what;  // the field because of which it is not older
};

class NeededForm : public boost::archive::detail::interface_oarchive<NeededForm> {
public:
    Needed needed;

    template <class T> void save_override(const FieldOf<T> &field) {
        ++number_;
        if (field.for_people) return;
        const T &value = field.const_value();
        if (field.since > needed.form && Writer::value_bytes(value) != (*defaults_)[number_ - 1])
            needed = {field.since, field.name()};
        if constexpr (is_vector<T>) {
            if constexpr (kind_of_field<typename T::value_type>() == FieldKind::fields)
                for (const auto &item : value) fields(item);
        } else if constexpr (kind_of_field<T>() == FieldKind::fields) {
            fields(value);
        }
    }
    template <class T> void fields(const T &value) {
        const std::size_t number = std::exchange(number_, 0);
        const auto *const defaults = std::exchange(defaults_, &Writer::defaults_of<T>());
        walk_fields(*this, value);
        number_ = number;
        defaults_ = defaults;
    }

private:
    std::size_t number_ = 0;
    const Writer::Values *defaults_ = nullptr;
};

template <class T> Needed needed_for(const T &value) {
    NeededForm look;
    look.fields(value);
    return look.needed;
}

// Reader: a struct from untrusted bytes, in both layouts. It never reads past the end,
// never makes elements that take much more memory than the bytes that announced them, and takes no value that the type
// does not have. The first violation spoils it: what follows is zero and empty, and status() says which field it was.
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
