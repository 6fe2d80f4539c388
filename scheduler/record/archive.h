#pragma once
// Writes and reads what fields.h lists, as numbered fields (base/bytes.h). A field that has its default is left out.
//
//   unsigned numbers, flags, enumerations   natural
//   signed numbers, durations               integer
//   texts, digests, hosts by name           bytes
//   structs                                 fields
//   vectors                                 list; maps: list of fields, 1 the key, 2 the value
#include <optional>
#include <type_traits>

#include "base/bytes.h"
#include "scheduler/record/fields.h"
#include "wire/archives.h"

namespace dcs::record {

constexpr std::uint64_t last_of(core::RequestId) { return UINT64_MAX; }
constexpr int last_of(core::SessionStatus) { return static_cast<int>(core::SessionStatus::terminated); }
constexpr int last_of(core::MoveReason) { return core::move_reasons - 1; }
constexpr int last_of(core::HostRole) { return static_cast<int>(core::HostRole::backup); }

template <class T> struct Held { using Type = T; };  // without what it is boxed in
template <class T> struct Held<Box<T>> { using Type = T; };
template <class T> struct Held<core::Shared<T>> { using Type = T; };
template <class T> struct Held<std::optional<T>> { using Type = T; };

template <class T> inline constexpr bool is_phase = std::is_same_v<T, core::Phase>;  // its field says which it is
template <class T> inline constexpr bool is_vector = false;
template <class T> inline constexpr bool is_vector<std::vector<T>> = true;
template <class T> inline constexpr bool is_map = false;
template <class K, class V> inline constexpr bool is_map<std::map<K, V>> = true;
template <class T> inline constexpr bool is_bytes = std::is_same_v<T, std::string> || std::is_same_v<T, core::HostId>;
template <std::size_t n> inline constexpr bool is_bytes<std::array<std::uint8_t, n>> = true;

template <class T> constexpr FieldKind kind_of() {
    using Plain = typename Held<T>::Type;
    if constexpr (is_bytes<Plain>) return FieldKind::bytes;
    else if constexpr (std::is_enum_v<Plain> || std::is_unsigned_v<Plain> || is_phase<Plain>) return FieldKind::natural;
    else if constexpr (std::is_integral_v<Plain> || std::is_same_v<Plain, Duration>) return FieldKind::integer;
    else if constexpr (is_vector<Plain> || is_map<Plain>) return FieldKind::list;
    else return FieldKind::fields;
}

template <class T> const T &held(const T &x) { return x; }
template <class T> const T &held(const Box<T> &x) { return x.get(); }
template <class T> const T &held(const core::Shared<T> &x) { return x.get(); }
inline std::size_t held(const core::Phase &x) { return x.index(); }

// The fields of a struct of messages, one after the other; `each(number, value)`.
template <class F> struct WireFields {
    F each;
    std::uint32_t number = 0;
    template <class T> WireFields &operator&(const wire::FieldOf<T> &field) {
        each(++number, field.value());
        return *this;
    }
};
template <class T, class F> void walk_wire_fields(T &x, F each) {
    WireFields<F> fields{std::move(each)};
    wire::walk_fields(fields, x);
}

class Writer {
public:
    Writer(ByteWriter &out, const core::State *state) : out_(out), state_(state) {}

    template <class T> void fields(const T &x) {
        static const T none{};
        List<T> list{*this, x, none};
        Fields<T>::list(list);
        end_fields(out_);
    }
    void fields(const wire::Demands &x) {
        const auto &defaults = wire::Writer::defaults_of<wire::Demands>();
        walk_wire_fields(x, [&](std::uint32_t number, const auto &field) {
            const std::size_t before = out_.size();
            put_tag(out_, number, kind_of<std::remove_cvref_t<decltype(field)>>());
            const std::size_t at = out_.size();
            value(field);
            if (std::string_view(out_.bytes()).substr(at) == defaults[number - 1]) out_.bytes().resize(before);
        });
        end_fields(out_);
    }

private:
    // Each field of one struct.
    template <class T> struct List {
        Writer &w;
        const T &x, &none;
        template <class M>
        void field(std::uint32_t number, const char *, M T::*member, const char *, const char * = "") {
            const auto &now = held(x.*member), &unset = held(none.*member);
            if (&now == &unset || now == unset) return;  // the same one: of a Box that is empty
            put_tag(w.out_, number, kind_of<M>());
            w.value(now);
        }
        // Of a grain's part P: its course, or its phase if it is in it.
        template <class M, class P>
        requires(!std::is_same_v<P, T>) void field(std::uint32_t number, const char *name, M P::*member,
                                                   const char *meaning, const char * = "") {
            static const P none_of_part{};
            const P *part = nullptr;
            if constexpr (std::is_same_v<P, core::Course>) part = &x.course.get();
            else part = std::get_if<P>(&x.phase);
            if (part) List<P>{w, *part, none_of_part}.field(number, name, member, meaning);
        }
    };

    template <class T> void value(const T &x) {
        if constexpr (std::is_same_v<T, core::HostId>) name(x);
        else if constexpr (std::is_enum_v<T> || std::is_unsigned_v<T>) out_.var(static_cast<std::uint64_t>(x));
        else if constexpr (std::is_integral_v<T>) out_.svar(x);
        else if constexpr (std::is_same_v<T, Duration>) out_.svar(x.ns);
        else if constexpr (is_bytes<T>) put_bytes(out_, {reinterpret_cast<const char *>(x.data()), x.size()});
        else fields(x);
    }
    template <class T> void value(const std::optional<T> &x) { value(*x); }
    template <class T> void value(const std::vector<T> &list) {
        head<T>(list.size());
        for (const T &x : list) value(x);
    }
    template <class K, class V> void value(const std::map<K, V> &map) {
        head<core::State>(map.size());
        for (const auto &[key, x] : map) {
            put_tag(out_, 1, kind_of<K>());
            value(key);
            put_tag(out_, 2, kind_of<V>());
            value(x);
            end_fields(out_);
        }
    }
    template <class T> void head(std::size_t count) {
        out_.u8(static_cast<std::uint8_t>(kind_of<T>()));
        out_.var(count);
    }
    void name(core::HostId id) {
        DCS_REQUIRE(state_, "a record with hosts is written with their names");
        put_bytes(out_, state_->host_name(id));
    }

    ByteWriter &out_;
    const core::State *state_;  // gives the names of hosts; null where none is written
};

// A value that is not one of its field's spoils the bytes.
class Reader {
public:
    Reader(ByteReader &in, const HostIds &ids) : in_(in), ids_(ids) {}

    template <class T> void fields(T &x) {
        FieldReader there(in_);
        if constexpr (std::is_same_v<T, wire::Demands>) {
            walk_wire_fields(x, [&](std::uint32_t number, auto &field) {
                if (there.at(number, kind_of<std::remove_cvref_t<decltype(field)>>())) value(field);
            });
        } else {
            List<T> list{*this, there, x};
            Fields<T>::list(list);
        }
        there.finish();
        if constexpr (requires { Fields<T>::valid(x); })
            if (!Fields<T>::valid(x)) in_.spoil();
    }

private:
    template <class T> struct List {
        Reader &r;
        FieldReader &there;
        T &x;
        template <class M>
        [[gnu::always_inline]] void field(std::uint32_t number, const char *, M T::*member, const char *,
                                          const char * = "") {
            if (there.at(number, kind_of<M>())) r.value(x.*member);
        }
        template <class M, class P>
        requires(!std::is_same_v<P, T>)
            [[gnu::always_inline]] void field(std::uint32_t number, const char *name, M P::*member, const char *meaning,
                                              const char * = "") {
            if constexpr (std::is_same_v<P, core::Course>) {
                if (there.at(number, kind_of<M>())) r.value(x.course.edit().*member);
            } else if (P *phase = std::get_if<P>(&x.phase)) {
                List<P>{r, there, *phase}.field(number, name, member, meaning);
            }
        }
    };

    template <class T> [[gnu::always_inline]] void value(T &x) {
        if constexpr (std::is_same_v<T, core::HostId>) {
            const std::string_view name = get_bytes(in_);
            x = name.empty() ? core::no_host : ids_(std::string(name));
        } else if constexpr (std::is_enum_v<T>) {
            const std::uint64_t read = in_.var();
            if (read > static_cast<std::uint64_t>(last_of(T{}))) return in_.spoil();
            x = static_cast<T>(read);
        } else if constexpr (std::is_integral_v<T>) {
            const auto read = [&] {
                if constexpr (std::is_unsigned_v<T>) return in_.var();
                else return in_.svar();
            }();
            x = static_cast<T>(read);
            if (x != read) in_.spoil();
        } else if constexpr (std::is_same_v<T, Duration>) {
            x.ns = in_.svar();
        } else if constexpr (std::is_same_v<T, std::string>) {
            x = get_bytes(in_);
        } else {
            fields(x);
        }
    }
    void value(core::Phase &x) {
        const std::uint64_t read = in_.var();
        if (read >= std::variant_size_v<core::Phase>) return in_.spoil();
        x = core::phase_of(static_cast<core::GrainStatus>(read));
    }
    template <std::size_t n> void value(std::array<std::uint8_t, n> &x) {
        const std::string_view bytes = get_bytes(in_);
        if (bytes.size() != n) return in_.spoil();
        std::copy(bytes.begin(), bytes.end(), x.begin());
    }
    template <class T> void value(Box<T> &x) { value(x.edit()); }
    template <class T> void value(core::Shared<T> &x) {
        T read;
        value(read);
        x = std::move(read);
    }
    template <class T> void value(std::optional<T> &x) { value(x.emplace()); }
    template <class T> void value(std::vector<T> &list) {
        for (std::uint64_t left = head<T>(); left > 0 && in_.good(); --left) value(list.emplace_back());
    }
    template <class K, class V> void value(std::map<K, V> &map) {
        for (std::uint64_t left = head<core::State>(); left > 0 && in_.good(); --left) {
            FieldReader there(in_);
            K key{};
            V x{};
            if (there.at(1, kind_of<K>())) value(key);
            if (there.at(2, kind_of<V>())) value(x);
            there.finish();
            if (!map.emplace(std::move(key), std::move(x)).second) in_.spoil();
        }
    }
    // Of a list, whose elements are like T: how many there are. Each takes a byte at least.
    template <class T> std::uint64_t head() {
        const std::uint8_t kind = in_.u8();
        const std::uint64_t count = in_.var();
        if (kind == static_cast<std::uint8_t>(kind_of<T>()) && count <= in_.left()) return count;
        in_.spoil();
        return 0;
    }

    ByteReader &in_;
    const HostIds &ids_;
};

}  // namespace dcs::record
