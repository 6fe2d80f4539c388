#pragma once
// A message with as many of the smallest elements as it has room for: what reading it allocates shows at once if that
// is more than a constant for each of its bytes. Found by serialize(), so each new message and field is among them.
#include <boost/archive/detail/interface_iarchive.hpp>

#include "wire/archive_rules.h"
#include "wire/message.h"

namespace dcs::fuzz {

class Crowd : public boost::archive::detail::interface_iarchive<Crowd> {
public:
    // Elements of each list, and of the lists in elements.
    Crowd(std::size_t outer, std::size_t inner) : many_(outer), inner_(inner) {}
    template <class T> void load_override(const wire::FieldOf<T> &field) {
        most_ = field.most;
        load_override(field.value());
    }
    template <class T> void load_override(T &value) {
        if constexpr (wire::is_vector<T>) {
            value.clear();
            value.resize(std::min(many_, most_));
            const std::size_t many = std::exchange(many_, inner_);
            for (auto &item : value) load_override(item);
            many_ = many;
        } else if constexpr (std::is_class_v<T> && !std::is_same_v<T, std::string>) {
            wire::walk_fields(*this, value);
        }
    }

private:
    std::size_t many_, inner_, most_ = SIZE_MAX;
};

inline void crowd(wire::AnyMessage &message, std::size_t outer, std::size_t inner) {
    Crowd archive(outer, inner);
    std::visit([&](auto &m) { wire::walk_fields(archive, m); }, message);
}

}  // namespace dcs::fuzz
