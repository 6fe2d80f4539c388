#pragma once
// `dcs run` while its grain runs: what the grain writes goes to the standard streams as it writes it, and at the end
// what is missing.
#include <atomic>
#include <thread>

#include "commands/dcs/query/live_output.h"

namespace dcs::commands {

class ShownOutput {
public:
    ShownOutput(int session, int grain);
    ~ShownOutput() { stop(); }
    ShownOutput(const ShownOutput &) = delete;
    ShownOutput &operator=(const ShownOutput &) = delete;

    void start();
    void stop();      // after it nothing is written but by finish()
    Status finish();  // of a grain that has ended: the rest

private:
    void follow();
    Result<bool> show_some(LiveOutput &output, std::FILE *to);  // false: there is no more

    LiveOutput out_, err_;
    std::atomic<bool> over_{false};
    std::thread thread_;
};

}  // namespace dcs::commands
