#pragma once
// What the launcher asks of its starter (starter.h): one packet with one valid encoding, bounded, and one answer.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/limits.h"
#include "base/status.h"
#include "grainserver/starter/become_grain.h"

namespace dcs::starter {

enum class Ask : std::uint8_t {
    start = 1,  // the grain in `dir`, in the control group `leaf` if that is not empty, with the indices `list` of its
                // resources; number: slots of the host. Answer: its pid
    prove,      // whether that could be: the kernel stops the process right after its exec, and it is killed
    signal,     // `number` to the process `pid` that started at `amount`
    signal_group,  // `number` to the grain with the first process `pid`, a child of the launcher: its process group
    mark,          // the grain by whose environment process `pid` says that it is of it. Answer: its `text`
    lower,         // the weight of the session of process `pid`
    make_leaf,     // a control group; number: processes, amount: MB of memory; 0: no limit. `list`: major and minor
                   // numbers of devices that it denies
    seal_leaf,     // its processes start no others, and are killed if the kernel can
    remove_leaf,
    remove_group,  // of all leaves
    end_orphan,    // all processes of a grain of a dead launcher: in `leaf` if `dir` is empty
    keeper,        // of slots, instead of the one before. Answer: its pid, and a socket to it
    clear,         // a part of what the anonymous uid `pid` has left on the host. Answer: Leftovers::Left
    disk,  // how much of it the room of `dir` takes, with what its processes `list` hold open; number 1: only that
    last = disk
};

// The indices of a grain; of its processes, the first.
inline constexpr std::size_t list_max = limits::grain_resources * limits::resource_indices;
inline constexpr std::size_t request_max = list_max * 4 + 1024, answer_max = 8192;

struct Request {
    Ask ask = Ask::start;
    std::string dir, leaf;  // plain names
    std::uint32_t pid = 0;
    std::int64_t number = 0, amount = 0;
    std::vector<std::int32_t> list;
    bool operator==(const Request &) const = default;
};
std::string to_packet(const Request &request);
// Nothing unless it is exactly the packet of a request.
std::optional<Request> read_request(std::string_view packet);

// Bits of an answer.
inline constexpr std::uint32_t is_lowered = 1;                            // start, lower
inline constexpr std::uint32_t limits_memory = 1, limits_processes = 2;   // make_leaf: limits that the kernel enforces
inline constexpr std::uint32_t is_unclear = 1;                            // mark: its environment is not visible
inline constexpr std::uint32_t has_more = 1, too_deep = 2, too_many = 4;  // disk

struct Answer {
    Status status;     // its text is cut
    std::string text;  // only with Code::ok
    std::int64_t value = 0;
    std::uint32_t bits = 0;
    std::optional<Failure> failure;  // of a start: the step that failed
};
std::string to_packet(const Answer &answer);
std::optional<Answer> read_answer(std::string_view packet);

}  // namespace dcs::starter
