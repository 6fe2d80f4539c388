#pragma once
// What a grain writes, while it writes it: what the scheduler has, and behind that what the grain's host has not
// reported yet. Each byte comes once, as long as the grain runs on. When it begins again, what its host had not
// reported does not count any more, and the next incarnation writes it again.
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>

#include "base/status.h"
#include "wire/message.h"

namespace dcs::commands {

class LiveOutput {
public:
    // user empty: the caller.
    LiveOutput(std::string user, std::int32_t session, std::int32_t grain, wire::Stream stream)
        : user_(std::move(user)), session_(session), grain_(grain), stream_(stream) {}

    // What there is now behind the place, of which the place moves behind it; at most a piece. Empty: nothing yet.
    Result<std::string> next();
    // So many bytes that were given out do not count any more; they come again. Since the last call.
    std::uint64_t take_void() { return std::exchange(void_, 0); }
    // To where the last `lines` lines begin.
    Status go_to_end_but(std::int64_t lines);

private:
    Result<wire::Piece> piece_at(std::uint64_t offset) const;
    Result<std::string> range(std::uint64_t begin, std::uint64_t end) const;

    const std::string user_;
    const std::int32_t session_, grain_;
    const wire::Stream stream_;
    std::uint64_t place_ = 0, void_ = 0;
    std::uint64_t recorded_ = 0;     // of what the incarnation below wrote, or an earlier one
    std::uint32_t incarnation_ = 0;  // 0: not known
};

// "the last 12 bytes above do not count: ..."
std::string void_text(std::uint64_t bytes);

// `dcs run` while its grain runs: what the grain writes goes to the standard streams as it writes it, and at the end
// what is missing.
class ShownOutput {
public:
    // `no_reader`: called when standard output has none any more.
    ShownOutput(int session, int grain, std::function<void()> no_reader);
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
    Status out_lost_, err_lost_;  // why a piece was not written
    const std::function<void()> no_reader_;
    std::atomic<bool> over_{false};
    std::thread thread_;
};

}  // namespace dcs::commands
