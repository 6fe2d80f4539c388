#pragma once
// An operation that would block the loop for too long: a coroutine that suspends after each slice (co_yield), and
// which the server resumes between events. Destroying a Work cancels it.
#include <coroutine>
#include <exception>
#include <utility>

namespace dcs::server {

struct Slice {};  // the yielded value; empty

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
    // Runs one slice; false: the work has ended.
    bool go_on() {
        handle_.resume();
        return !handle_.done();
    }

private:
    std::coroutine_handle<promise_type> handle_;
};

}  // namespace dcs::server
