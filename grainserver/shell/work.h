#pragma once
// Work that would keep the loop too long if it were done at once: it stops after each slice (co_yield), and
// the server goes on with it between the things that arrive. To drop a Work is to give it up.
#include <coroutine>
#include <exception>
#include <utility>

namespace dcs::server {

struct Slice {};  // what is yielded: nothing but the time

class Work {
public:
    struct promise_type {
        Work get_return_object() { return Work(std::coroutine_handle<promise_type>::from_promise(*this)); }
        std::suspend_always initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        std::suspend_always yield_value(Slice) noexcept { return {}; }
        void return_void() noexcept {}
        void unhandled_exception() { std::terminate(); }
    };

    explicit Work(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
    Work(Work &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    Work &operator=(Work &&other) noexcept {
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~Work() {
        if (handle_) handle_.destroy();
    }
    // One slice; false: it has ended.
    bool go_on() {
        handle_.resume();
        return !handle_.done();
    }

private:
    std::coroutine_handle<promise_type> handle_;
};

}  // namespace dcs::server
