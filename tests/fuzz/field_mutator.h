#pragma once
// Changes one field of a message, found by its serialize(): any message has this from its fields alone.
#include <algorithm>
#include <array>
#include <limits>
#include <variant>

#include <boost/archive/detail/interface_iarchive.hpp>

#include "wire/archive_rules.h"
#include "wire/message.h"

namespace dcs::fuzz {

class Random {
public:
    explicit Random(std::uint64_t seed) : state_(seed) {}
    std::uint64_t next() {  // splitmix64
        state_ += 0x9e3779b97f4a7c15ull;
        std::uint64_t z = state_;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
        return z ^ (z >> 31);
    }
    std::uint64_t below(std::uint64_t n) { return n == 0 ? 0 : next() % n; }

private:
    std::uint64_t state_;
};

class FieldMutator : public boost::archive::detail::interface_iarchive<FieldMutator> {
public:
    // Walks without a change: how many places there are.
    explicit FieldMutator(Random &random) : random_(random) {}
    void choose(std::uint64_t place) { chosen_ = place, at_ = 0; }
    std::uint64_t places() const { return at_; }

    template <class T> void load_override(const wire::FieldOf<T> &field) { load_override(field.value()); }
    template <class T> void load_override(T &value) {
        if constexpr (wire::is_vector<T>) {
            if (here()) return resize(value);
            for (auto &item : value) load_override(item);
        } else if constexpr (std::is_same_v<T, bool>) {
            if (here()) value = !value;
        } else if constexpr (std::is_same_v<T, double>) {
            if (here()) value = some_real(value);
        } else if constexpr (wire::ByteEnum<T>) {
            if (here()) value = static_cast<T>(random_.below(static_cast<std::uint64_t>(last_of(T{})) + 1));
        } else if constexpr (wire::FixedInteger<T>) {
            if (here()) value = some_number(value);
        } else if constexpr (std::is_same_v<T, std::string>) {
            if (here()) change(value);
        } else {
            wire::walk_fields(*this, value);
        }
    }

private:
    bool here() { return at_++ == chosen_; }

    template <class T> T some_number(T value) {
        using Limits = std::numeric_limits<T>;
        switch (random_.below(8)) {
        case 0: return Limits::max();
        case 1: return Limits::min();
        case 2: return static_cast<T>(static_cast<std::uint64_t>(value) + 1);
        case 3: return static_cast<T>(static_cast<std::uint64_t>(value) - 1);
        case 4: return static_cast<T>(random_.next() >> random_.below(64));
        case 5: return static_cast<T>(Limits::max() - static_cast<T>(random_.below(3)));
        default: return static_cast<T>(random_.below(10));  // numbers of sessions, grains, leases
        }
    }
    double some_real(double value) {
        constexpr std::array reals{0.0, -1.0, 0.5, 1e-300, 1e300, -1e300, 9.3e18, 1e9};
        return random_.below(4) == 0 ? value * 2 + 1 : reals[random_.below(reals.size())];
    }
    void change(std::string &value) {
        // What the seeds and the pools of the targets know, and what no peer knows.
        static const std::array<std::string, 14> words{"",
                                                       "ann",
                                                       "bob",
                                                       "h1",
                                                       "h2",
                                                       "prog",
                                                       "/bin/x",
                                                       "out/result",
                                                       "../x",
                                                       "running",
                                                       std::string(32, '\1'),
                                                       std::string(32, 'd'),
                                                       std::string(70, 'n'),
                                                       std::string(5000, 'b')};
        switch (random_.below(5)) {
        case 0: value.resize(random_.below(value.size() + 1)); break;
        case 1:
            value.insert(random_.below(value.size() + 1), 1 + random_.below(8), static_cast<char>(random_.next()));
            break;
        case 2:
            if (!value.empty()) value[random_.below(value.size())] = static_cast<char>(random_.next());
            break;
        default: value = words[random_.below(words.size())];
        }
    }
    template <class T> void resize(std::vector<T> &value) {
        switch (random_.below(4)) {
        case 0: value.emplace_back(); break;
        case 1:
            if (!value.empty()) value.erase(value.begin() + static_cast<std::ptrdiff_t>(random_.below(value.size())));
            break;
        case 2:
            if (!value.empty()) value.push_back(T(value[random_.below(value.size())]));
            break;
        default: std::reverse(value.begin(), value.end());
        }
    }

    Random &random_;
    std::uint64_t at_ = 0, chosen_ = std::numeric_limits<std::uint64_t>::max();
};

inline void mutate_field(wire::AnyMessage &message, Random &random) {
    FieldMutator mutator(random);
    const auto walk = [&] { std::visit([&](auto &m) { wire::walk_fields(mutator, m); }, message); };
    walk();
    mutator.choose(random.below(mutator.places()));
    walk();
}

}  // namespace dcs::fuzz
