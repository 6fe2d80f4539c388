#pragma once
// A value that is rarely anything but its default: a default costs one null pointer, anything else
// lives on the heap. Copies are deep, so an entity that holds one stays a plain value.
#include <memory>

namespace dcs {

template <class T> class Box {
public:
    Box() = default;
    Box(const Box &other) : value_(other.value_ ? std::make_unique<T>(*other.value_) : nullptr) {}
    Box(Box &&) noexcept = default;
    Box &operator=(const Box &other) { return *this = Box(other); }
    Box &operator=(Box &&) noexcept = default;
    Box &operator=(T value) {
        value_ = value == T() ? nullptr : std::make_unique<T>(std::move(value));
        return *this;
    }
    operator const T &() const { return get(); }
    const T &get() const {
        static const T none{};
        return value_ ? *value_ : none;
    }
    const T *operator->() const { return &get(); }
    // Changed in place; stays on the heap even if it becomes the default again.
    T &edit() {
        if (!value_) value_ = std::make_unique<T>();
        return *value_;
    }

private:
    std::unique_ptr<T> value_;
};

}  // namespace dcs
