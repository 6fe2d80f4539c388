#pragma once
// What the launcher asks of its starter: one packet with one valid encoding, bounded, and one answer.
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/instant.h"
#include "base/limits.h"
#include "base/status.h"
#include "grainserver/starter/become_grain.h"
#include "grainserver/starter/cgroups.h"
#include "grainserver/starter/disk_use.h"
#include "grainserver/starter/leftovers.h"
#include "grainserver/starter/prepared.h"
#include "process/table.h"

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
    std::uint64_t start_ticks = 0;   // of a start: the process's, as in /proc
};
std::string to_packet(const Answer &answer);
std::optional<Answer> read_answer(std::string_view packet);

// The starter: a process beside the launcher that keeps the privileges of the account that started both. The launcher,
// which reads the records and calls of the grain server, has dropped them, and asks for what needs them.
// Whatever it asks: a grain is started only as the owner's rules permit (DIR/rules), and only
// processes of accounts under which grains were started here, and control groups of this launcher, are touched.
//
// Grains are children of the launcher, which collects their exit statuses. The starter ends with the launcher, and the
// launcher with it.
class Starter {
public:
    // `directory`: the server's; absolute. `launcher`: the parent of the grains; in tests this process.
    Starter(const std::string &directory, Cgroups &cgroups, pid_t launcher)
        : directory_(directory), cgroups_(cgroups), launcher_(launcher) {}
    Status open();
    // `fd` receives a descriptor to send with it.
    Answer answer(std::string_view packet, Fd &fd);

private:
    Answer other(const Request &request, Fd &fd);
    // start.cc
    Answer start(const Request &request);
    Status allowed(const files::LaunchRecord &launch);
    Status blocked(const files::LaunchRecord &launch);
    Status may_try(const files::LaunchRecord &launch);
    struct Forked {
        pid_t pid = -1;
        int error = 0;
        bool took_too_long = false;
    };
    Forked fork(Plan &plan);
    Answer run(const Request &request, const Fd &grain, files::LaunchRecord &launch);  // takes its environment

    bool may_touch(pid_t pid);  // a process of a grain's account
    bool modest();              // whether other processes of the host have priority over grains
    bool is_account(uid_t uid);
    Status send(const Request &request);
    Status send_to_group(const Request &request);
    Answer mark(pid_t pid);
    Answer make_leaf(const Request &request);
    Status remove_leaf(const std::string &name);
    Status end_orphan(const Request &request);
    Answer keeper(Fd &fd);
    Answer clear(uid_t uid);
    Answer disk(const Request &request);

    const std::string directory_;
    Cgroups &cgroups_;
    const pid_t launcher_;
    std::string boot_id_;
    Fd base_, grains_;
    Prepared prepared_;
    Filter filter_;
    ExecLimit limit_;
    bool clock_agrees_ = false;         // /proc has start times by it
    std::map<uid_t, Instant> blocked_;  // accounts whose grains are not started before
    std::map<std::string, Leaf> leaves_;
    std::set<uid_t> accounts_;               // that the rules permitted
    std::map<std::string, DiskUse> counts_;  // that go on
    Leftovers leftovers_;
    ProcessStat keeper_;
};

// Lowers the weight of the session of a process against other sessions, if the kernel groups them (nice alone has no
// effect across sessions then). False: refused for now; repeat after a while.
bool lower_session_priority(pid_t pid);

// keep_slots.cc: the process of the slot keeper (launcher/slot_keeper.h).
// `grains`: path of the directory that contains the grains' directories. `sibling`: a child of the caller's parent.
// `socket` receives the launcher's end.
Result<pid_t> start_keeper(const std::string &grains, const Cgroups &cgroups, bool sibling, Fd &socket);

}  // namespace dcs::starter
