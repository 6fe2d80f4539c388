#pragma once
// What the archives of this folder accept. They take Boost.Serialization's interface_oarchive and
// interface_iarchive as base and its serialize() dispatch, but not common_*archive: that one puts a class id, a version
// and a tracking record in front of every struct and keeps tables of objects, and those tables are where foreign bytes
// have hurt the stock archives.
//
// A struct is the list of its fields in serialize(). The place in that list is the field's number (form.h), so a list
// only grows at its end. Beside a field stand its bounds and the form that it came with.
#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include <boost/serialization/serialization.hpp>

#include "base/bytes.h"
#include "wire/form.h"

namespace dcs::wire {

// Widths that are the same on every machine. `long` and `size_t` as such are not among them.
template <class T>
concept FixedInteger = std::same_as<T, std::int8_t> || std::same_as<T, std::uint8_t> || std::same_as<T, std::int16_t> ||
    std::same_as<T, std::uint16_t> || std::same_as<T, std::int32_t> || std::same_as<T, std::uint32_t> ||
    std::same_as<T, std::int64_t> || std::same_as<T, std::uint64_t>;

template <class T>
concept ByteEnum = std::is_enum_v<T> && std::same_as<std::underlying_type_t<T>, std::uint8_t>;

template <class T> inline constexpr bool is_vector = false;
template <class T> inline constexpr bool is_vector<std::vector<T>> = true;
// A struct whose fields are in texts (JSON, differences) among those of the struct that holds it.
template <class T> inline constexpr bool is_part = false;

// A value of an enum as a peer of that form knows it: the nearest of those that there were. Overloaded by enums that
// have grown.
template <ByteEnum T> constexpr T in_form(T value, Form) { return value; }

// One field of a list, by reference.
template <class T> class FieldOf {
public:
    constexpr FieldOf(const char *name, T &value) : name_(name), value_(&value) {}
    const char *name() const { return name_; }
    T &value() const { return *value_; }
    const T &const_value() const { return *value_; }

    std::size_t most = SIZE_MAX;           // bytes of a string, elements of a vector
    std::int64_t least = 0, greatest = 0;  // of a number, if least < greatest; a Reader takes others too
    Form since = positional_form;          // older forms do not have it
    bool for_people = false;               // a peer of an older form does without
private:
    const char *name_;
    T *value_;
};
template <class T> const FieldOf<T> field_of(const char *name, T &value) { return {name, value}; }
#define DCS_FIELD(name) ::dcs::wire::field_of(#name, x.name)

// A Reader takes no more of it.
template <class T> const FieldOf<T> at_most(std::size_t most, FieldOf<T> field) {
    static_assert(std::is_same_v<T, std::string> || is_vector<T>, "a number of bytes or elements");
    field.most = most;
    return field;
}
// An older form cannot express it: a message in which it differs from its default is not sent in such a form.
template <Form form, class T> const FieldOf<T> since(FieldOf<T> field) {
    static_assert(form > positional_form, "every form has it");
    field.since = form;
    return field;
}
// The same, but the message is sent without the field: rows and texts.
template <Form form, class T> const FieldOf<T> shown_since(FieldOf<T> field) {
    field = since<form>(field);
    field.for_people = true;
    return field;
}

// A struct with a serialize() of its own. Pointers, references to other objects and classes with
// virtual functions have no meaning in a message, so they do not compile.
template <class T> constexpr void require_plain_struct() {
    static_assert(!std::is_pointer_v<T> && !std::is_member_pointer_v<T>, "no pointers in messages");
    static_assert(!std::is_polymorphic_v<T>, "no polymorphic classes in messages");
    static_assert(std::is_class_v<T>, "this type has no fixed encoding: use the intN_t types");
    static_assert(
        !requires(T t) { t.operator->(); }, "no smart pointers in messages");
}

template <class T> constexpr FieldKind kind_of_field() {
    if constexpr (std::is_same_v<T, double>) return FieldKind::real;
    else if constexpr (std::is_same_v<T, std::string>) return FieldKind::bytes;
    else if constexpr (is_vector<T>) return FieldKind::list;
    else if constexpr (FixedInteger<T>) return std::is_signed_v<T> ? FieldKind::integer : FieldKind::natural;
    else if constexpr (std::is_same_v<T, bool> || ByteEnum<T>) return FieldKind::natural;
    else {
        require_plain_struct<T>();
        return FieldKind::fields;
    }
}

// Calls the struct's serialize() the way Boost does. Archives that only look take it by const.
template <class Archive, class T> void walk_fields(Archive &archive, const T &value) {
    require_plain_struct<T>();
    boost::serialization::serialize_adl(archive, const_cast<T &>(value), 0);
}

// The archive writes or reads the fields one after the other, as release 0.1 did.
template <class Archive> bool positional(const Archive &archive) {
    if constexpr (requires { archive.positional(); }) return archive.positional();
    else return false;
}

}  // namespace dcs::wire
