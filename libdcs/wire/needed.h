#pragma once
// The parts of a message that older forms cannot express.
#include <string>
#include <utility>

#include <boost/archive/detail/interface_oarchive.hpp>

#include "wire/writer.h"

namespace dcs::wire {

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

}  // namespace dcs::wire
