#pragma once
// A limit on the time from the fork of a grain to its exec, while which the starter is suspended. What belongs to the
// grain's account can hold it up: a lease on the program, a file system that does not answer.
#include <condition_variable>
#include <mutex>
#include <thread>

#include "grainserver/starter/become_grain.h"

namespace dcs::starter {

inline constexpr int exec_seconds = 10;  // in which the child is blocked all the time; waiting for a processor is not

class ExecLimit {
public:
    ExecLimit();
    ~ExecLimit();
    ExecLimit(const ExecLimit &) = delete;
    ExecLimit &operator=(const ExecLimit &) = delete;

    // Before the fork; the child writes to what this returns. Null: the system has no memory for it.
    Told *begin();
    // After it. True: the child was ended by SIGKILL, because it was blocked for too long.
    bool end();

private:
    void watch();
    bool look();  // whether a start is in progress

    Told *told_ = nullptr;
    std::mutex mutex_;
    std::condition_variable wake_;
    bool starting_ = false, killed_ = false, idle_ = true, leave_ = false;
    int blocked_ = 0;  // how many looks in succession
    std::thread thread_;
};

}  // namespace dcs::starter
