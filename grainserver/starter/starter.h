#pragma once
// The starter: a process beside the launcher that keeps the privileges of the account that started both. The launcher,
// which reads the records and calls of the grain server, has dropped them, and asks for what needs them
// (starter_calls.h). Whatever it asks: a grain is started only as the owner's rules permit (DIR/rules), and only
// processes of accounts under which grains were started here, and control groups of this launcher, are touched.
//
// Grains are children of the launcher, which collects their exit statuses. The starter ends with the launcher, and the
// launcher with it.
#include <map>
#include <set>
#include <string>

#include "base/instant.h"
#include "grainserver/starter/cgroups.h"
#include "grainserver/starter/disk_use.h"
#include "grainserver/starter/prepared.h"
#include "grainserver/starter/leftovers.h"
#include "grainserver/starter/starter_calls.h"
#include "process/table.h"

namespace dcs::starter {

class Starter {
public:
    // `directory`: the server's; absolute. `launcher`: the parent of the grains; in tests this process.
    Starter(const std::string &directory, const Cgroups &cgroups, pid_t launcher)
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
    Answer run(const Request &request, const Fd &grain, const files::LaunchRecord &launch);

    bool may_touch(pid_t pid);  // a process of a grain's account
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
    const Cgroups &cgroups_;
    const pid_t launcher_;
    std::string boot_id_;
    Fd base_, grains_;
    Prepared prepared_;
    Filter filter_;
    ExecLimit limit_;
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
