#pragma once
// What is made when it is first needed, by any thread, and never destroyed.
#include <atomic>
#include <memory>

namespace dcs {

// A static object of a function would be made under a lock, which the child of a fork can find held by a thread that it
// does not have: it would wait for ever. Here two threads may both make one, and the first is kept.
template <class T, class Make> const T &first_made(std::atomic<const T *> &kept, const Make &make) {
    if (const T *made = kept.load()) return *made;
    std::unique_ptr<const T> made(new T(make()));
    const T *first = nullptr;
    return kept.compare_exchange_strong(first, made.get()) ? *made.release() : *first;
}

}  // namespace dcs
