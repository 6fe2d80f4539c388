#pragma once
// What the archives of this folder accept. They take Boost.Serialization's interface_oarchive and
// interface_iarchive as base and its nvp and serialize() dispatch, but not common_*archive: that
// one puts a class id, a version and a tracking record in front of every struct and keeps tables
// of objects, and those tables are where foreign bytes have hurt the stock archives. A struct here
// is its fields in order and nothing else; the version is the frame's.
#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include <boost/serialization/nvp.hpp>
#include <boost/serialization/serialization.hpp>

namespace dcs::wire {

// Widths that are the same on every machine. `long` and `size_t` as such are not among them.
template <class T>
concept FixedInteger = std::same_as<T, std::int8_t> || std::same_as<T, std::uint8_t> ||
                       std::same_as<T, std::int16_t> || std::same_as<T, std::uint16_t> ||
                       std::same_as<T, std::int32_t> || std::same_as<T, std::uint32_t> ||
                       std::same_as<T, std::int64_t> || std::same_as<T, std::uint64_t>;

template <class T>
concept ByteEnum = std::is_enum_v<T> && std::same_as<std::underlying_type_t<T>, std::uint8_t>;

template <class T> inline constexpr bool is_vector = false;
template <class T> inline constexpr bool is_vector<std::vector<T>> = true;

// A struct with a serialize() of its own. Pointers, references to other objects and classes with
// virtual functions have no meaning in a message, so they do not compile.
template <class T> constexpr void require_plain_struct() {
    static_assert(!std::is_pointer_v<T> && !std::is_member_pointer_v<T>, "no pointers in messages");
    static_assert(!std::is_polymorphic_v<T>, "no polymorphic classes in messages");
    static_assert(std::is_class_v<T>, "this type has no fixed encoding: use the intN_t types");
    static_assert(!requires(T t) { t.operator->(); }, "no smart pointers in messages");
}

// Calls the struct's serialize() the way Boost does. Archives that only look take it by const.
template <class Archive, class T> void walk_fields(Archive &archive, const T &value) {
    require_plain_struct<T>();
    boost::serialization::serialize_adl(archive, const_cast<T &>(value), 0);
}

}  // namespace dcs::wire
