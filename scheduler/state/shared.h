#pragma once
// A value that many entities have in common: copies share one allocation, and none changes it in place. The default
// takes no allocation.
#include <memory>
#include <utility>

namespace dcs::core {

template <class T> class Shared {
public:
    Shared() = default;
    Shared(T value) : value_(value == T() ? nullptr : std::make_shared<const T>(std::move(value))) {}
    // `value`, in the allocation of `near` if that holds the same.
    Shared(T value, const Shared &near) { *this = near.get() == value ? near : Shared(std::move(value)); }

    const T &get() const {
        static const T none{};
        return value_ ? *value_ : none;
    }
    const T &operator*() const { return get(); }
    const T *operator->() const { return &get(); }
    operator const T &() const { return get(); }
    bool operator==(const Shared &other) const { return value_ == other.value_ || get() == other.get(); }

private:
    std::shared_ptr<const T> value_;
};

}  // namespace dcs::core
