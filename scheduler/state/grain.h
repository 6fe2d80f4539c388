#pragma once
// What the scheduler knows of one grain. A plain value, like all entities of State.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/box.h"
#include "base/ids.h"
#include "base/instant.h"
#include "base/require.h"
#include "scheduler/state/shared.h"
#include "scheduler/state/statuses.h"
#include "wire/demands.h"
#include "wire/form.h"
#include "wire/user_calls.h"
#include "scheduler/state/grain_queue.h"

namespace dcs::core {

enum class HostId : std::int32_t {};  // index into State::hosts(); stable while the process lives
inline constexpr HostId no_host{-1};
enum class RequestId : std::uint64_t {};   // that a control program gave its call; its frame's
inline constexpr RequestId no_request{0};  // of what answers no call

struct Move {
    MoveReason reason = MoveReason::failed;
    HostId host = no_host;
    Incarnation incarnation = 0;
    std::string detail;  // at most limits::move_detail_bytes
    bool operator==(const Move &) const = default;
};

// A lease that was taken from a host which was not heard of: its copy may have run longer.
struct OldLease {
    HostId host = no_host;
    Incarnation lease = 0;
    bool operator==(const OldLease &) const = default;
};

// Of a grain's files, what is needed without reading its parameters. Names of contents are SHA-256.
struct GrainFiles {
    std::vector<std::string> digests;         // of its submission, ascending
    std::vector<std::string> binary_classes;  // for which it has a program, ascending; empty: it may run anywhere
    std::vector<wire::GrainFile> outputs;     // that it brings back; without a digest as long as they were not made
    bool lacks_output() const {
        return std::ranges::any_of(outputs, [](const wire::GrainFile &output) { return output.digest.empty(); });
    }
    bool names(const std::string &digest) const { return std::binary_search(digests.begin(), digests.end(), digest); }
    bool operator==(const GrainFiles &) const = default;
};

// What decides where a grain may run, but for what is its own (nogo). The ready grains of one shape
// are in one queue, so that a host looks at one of each. Memory is rounded down to a power of
// two, and programs fall into a few groups, so that no user can make many shapes of one class.
struct Shape {
    std::uint32_t host_class = 0;
    std::uint8_t thrash_bits = 0, memory_bits = 0, program_group = 0;
    wire::Form form = wire::positional_form;  // the oldest in which its demands can be said
    std::int32_t cores = 0;
    std::string resources;                    // as demanded
    std::vector<std::string> binary_classes;  // empty: any
    auto operator<=>(const Shape &) const = default;
};

// What checkpoints hold: of a grain that wrote one. Processor time in microseconds; and, once it has failed, how far
// its streams had come at the newest one, where it goes on if it is submitted again.
struct Kept {
    std::int64_t held = 0;    // that the newest checkpoint holds, from the grain's beginning on
    std::int64_t start = 0;   // that the present or last incarnation began with
    std::int64_t before = 0;  // that the incarnation before it began with
    std::int64_t saved = 0;   // summed over the incarnations that did not begin at nothing
    std::uint64_t out_length = 0, err_length = 0;
    std::uint32_t out_sum = 0, err_sum = 0;
    bool goes_on = false;  // the four before are known
    bool operator==(const Kept &) const = default;
};

// The phase of a grain, with the fields of that phase only. In the order of GrainStatus.
struct Ready {
    std::int64_t queue_position = 0;  // order in the session's queue, smaller first
    bool operator==(const Ready &) const = default;
};
struct Running {
    bool operator==(const Running &) const = default;
};
struct Finished {
    std::int32_t result_index = -1;  // place in the session's order of finishing
    std::int32_t exit_code = 0, signal = 0;
    bool operator==(const Finished &) const = default;
};
struct Killed {
    std::int32_t after = 0;  // how far the results had been handed out, see SessionInfo::shown
    bool operator==(const Killed &) const = default;
};
using Phase = std::variant<Ready, Running, Finished, Killed>;
Phase phase_of(GrainStatus status);  // with nothing in it yet

// What a grain has only once a host had it: a million queued grains do without.
struct Course {
    std::uint64_t input_position = 0;              // first byte of the original input that a restart still needs
    std::uint64_t checkpoint_length = 0;           // 0: none
    std::uint64_t out_length = 0, err_length = 0;  // taken in so far (own tree), or final
    std::uint64_t result_offset = 0;  // over, without own tree: in the session's results lie from here on its out, err,
                                      // checkpoint, message
    std::uint32_t message_length = 0;
    std::uint32_t other_checkpoint = 0;  // own tree: bytes of the file that has its checkpoint before this one
    std::uint32_t checkpoint_sum = 0, message_sum = 0, out_sum = 0, err_sum = 0;  // CRC-32C of what lies on disk
    Incarnation skipped = 0;     // numbers under which it never ran: starts that failed, and Host::fence
    std::uint32_t sequence = 0;  // last increment taken in
    std::uint32_t told = 0;      // as of which increment the control program was last shown something of it
    wire::Usage current;         // of this incarnation; nearly all have some
    Box<wire::Usage> past;       // of earlier ones
    Box<wire::Usage> before;     // part of `past`: of the incarnation before this one
    Box<Kept> kept;
    Box<std::vector<HostId>> nogo;   // must not be tried there
    Box<std::vector<Move>> moves;    // the latest limits::moves_kept, oldest first
    OldLease old_lease;              // while the present lease has committed nothing
    std::uint8_t failures = 0;       // non-innocent ends so far
    std::uint8_t returns = 0;        // innocent ends of its own in a row, without a new checkpoint between them
    bool second_checkpoint = false;  // own tree: which of the two files has its checkpoint; record/plan.h changes it
};

// What a grain's record holds. A session may have a million of them: the fields stand by size, what most grains never
// have is boxed, and what the grains of a map have in common is shared.
struct DurableGrain {
    Fingerprint fingerprint{};        // of the packed spec without its label
    RequestId request{};              // of the d_gexec that made it
    std::uint64_t params_offset = 0;  // in the session's inputs
    std::uint64_t input_length = 0;   // original input
    Shared<wire::Demands> demands;
    Box<GrainFiles> files;
    Box<Course> course;
    Phase phase;
    std::uint32_t params_length = 0, params_sum = 0;  // CRC-32C of what lies on disk
    std::uint32_t program = 0;                        // digest of argv[0]; 0: not known
    Incarnation incarnation = 0;                      // highest that was ever leased
    Incarnation lease = 0;         // of the lease that counts; smaller only when an older one was taken back
    HostId lessee = no_host;       // who has that lease: running: where; ready: it may still be forgiven, else
                                   // no_host; over: the last one
    std::int32_t known = 0;        // how far the results had been handed out when it was submitted
    bool own_tree = false;         // files of its own (big parameters, or a checkpoint): see record/
    bool params_own_file = false;  // packed spec lies in the grain's tree, not in the session's inputs

    GrainStatus status() const { return static_cast<GrainStatus>(phase.index()); }
    bool is_over() const { return status() == GrainStatus::finished || status() == GrainStatus::killed; }
    bool has_failed() const {  // finished with a signal or a code, or without an output
        const auto *end = std::get_if<Finished>(&phase);
        return end != nullptr && (end->signal != 0 || end->exit_code != 0 || files->lacks_output());
    }
    template <class P> const P &as() const {
        DCS_REQUIRE(std::holds_alternative<P>(phase), "a grain is asked for the fields of its phase");
        return std::get<P>(phase);
    }
    template <class P> P &as() { return const_cast<P &>(std::as_const(*this).template as<P>()); }
    // Where it runs; of no other grain can that be asked.
    HostId runs_on() const {
        DCS_REQUIRE(status() == GrainStatus::running, "only a running grain is on a host");
        return lessee;
    }
};

// Of a grain that a host had, as long as the scheduler lives.
struct Recent {
    Instant checkpoint_time{};
    HostId failed_on = no_host;
    std::uint8_t failures_there = 0;  // in a row, where it failed last: tried there first
    std::uint8_t refusals = 0;        // starts in a row that failed for a reason of the host's
    Instant rest_until{};             // ready: not before that anywhere, see give_back.cc
    std::vector<Instant> moved;       // when it made the latest of its moves
    Instant started{}, used_at{};     // running: its process; when its server last said what that used
    bool operator==(const Recent &) const = default;
};

// With what is forgotten when the scheduler ends: records are written of DurableGrains, so none of this gets into one.
struct Grain : DurableGrain {
    Grain() = default;
    explicit Grain(DurableGrain recorded) : DurableGrain(std::move(recorded)) {}

    // Enters a phase.
    void become(Phase next) {
        phase = next;
        launched = ahead = false;
        if (is_over() && recent->moved.empty()) recent = Recent();
        else if (recent->rest_until != Instant{}) recent.edit().rest_until = Instant{};
    }

    bool launched = false;  // running: the server confirmed the start
    bool ahead = false;     // running: leased ahead of a free slot, and not known to have started
    Box<Recent> recent;
};

Shape shape_of(const Grain &g);
MemoryNeed need_of(const Grain &g);

// Of all that it was submitted with and says of itself; for weights, not exact.
inline std::uint64_t detail_bytes(const Grain &g) {
    return g.params_length + g.course->message_length + 128 * g.files->outputs.size();
}

// Settled, with a tree of its own that it no longer needs.
bool packable(const Grain &g);

}  // namespace dcs::core
