#pragma once
// The launcher's side of its starter. Each call waits for the answer; when the starter has ended, all fail with
// `unreachable` from then on.
#include <string>
#include <vector>

#include <sys/types.h>

#include "grainserver/files/grain_record.h"
#include "grainserver/starter/starter.h"
#include "process/table.h"

namespace dcs::starter {

class StarterClient {
public:
    StarterClient() = default;
    // Forks the starter, as who this process is now. `directory`: the server's; absolute.
    Status start(const std::string &directory, Cgroups &cgroups);
    // Works in this process instead, for tests.
    void use(Starter &starter) { within_ = &starter; }

    pid_t pid() const { return pid_; }
    int fd() const { return socket_.get(); }  // readable: the starter has ended
    bool lost() const { return lost_; }
    void lose() { lost_ = true; }
    std::string how_it_ended();  // "was killed by signal 9"; once

    Answer start_grain(const std::string &dir, const std::string &leaf, int slots, std::vector<std::int32_t> indices);
    Answer prove_grain(const std::string &dir);
    // False: not permitted, or there is no such process any more.
    bool signal(const ProcessStat &process, int number);
    bool signal(pid_t pid, int number);
    bool signal_group(pid_t leader, int number);
    // The grain whose cookie a process carries. Code::not_found: none; Code::limit: its environment is not visible.
    Result<std::string> mark(pid_t pid);
    bool lower(pid_t pid);
    Leaf make_leaf(const Cgroups &cgroups, const std::string &name, const files::Limits &limits,
                   const Devices &denied = {});
    void seal_leaf(const std::string &name);
    bool remove_leaf(const std::string &name);
    void remove_group();
    Status end_orphan(const std::string &dir, const std::string &leaf);
    Result<pid_t> keeper(Fd &socket);
    Leftovers::Left clear(uid_t uid);
    // Bytes of the room as far as counted, with those of files without a name that the processes hold open.
    struct Disk {
        std::int64_t bytes = 0;
        bool too_deep = false, too_many = false;
    };
    Result<Disk> disk(const std::string &dir, const std::vector<pid_t> &processes, bool only_open);

private:
    Answer ask(const Request &request, Fd *fd = nullptr);

    Fd socket_;
    pid_t pid_ = 0;
    bool lost_ = false;
    Starter *within_ = nullptr;
};

}  // namespace dcs::starter
