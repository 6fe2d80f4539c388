#include <cerrno>
#include <cstdlib>

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "daemon/privileges.h"
#include "daemon/log.h"
#include "scheduler/keeper/keeper.h"

namespace dcs::keeper {
namespace {

// Of root's rights: files of --hosts, --policy and --limits may belong to any user; echo requests need a raw socket.
constexpr std::uint64_t kept = 1ull << CAP_DAC_OVERRIDE | 1ull << CAP_CHOWN | 1ull << CAP_FOWNER | 1ull << CAP_NET_RAW;

// Of the user database: files, and what its modules keep elsewhere.
const std::vector<std::string> users_of_this_host = {
    "/etc",        "/run", "/var/run", "/var/lib/sss", "/var/lib/extrausers", "/var/lib/misc", "/var/cache/nscd",
    "/var/db/nscd"};

std::string above(const std::string &path) {
    const std::size_t slash = path.rfind('/');
    return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

// The directory in which the file lies, and that of what it links to.
void add_folders_of(const std::string &file, std::vector<std::string> &folders) {
    if (file.empty()) return;
    folders.push_back(above(file));
    char *real = ::realpath(file.c_str(), nullptr);
    if (real != nullptr && above(real) != folders.back()) folders.push_back(above(real));
    ::free(real);
}

}  // namespace

Result<bool> fence_keeper(const Place &place) {
    // The authority is made when it is first asked for.
    std::vector<std::string> folders = {file_exists(AT_FDCWD, place.pki) ? place.pki : above(place.pki)};
    for (const std::string *file : {&place.hosts, &place.policy, &place.limits}) add_folders_of(*file, folders);
    return give_up_files(folders, users_of_this_host);
}

void run_keeper(int socket, Place place) {
    Status s = settle_side_process(socket, "dcs_keeper");
    if (s) s = give_up_capabilities(kept);
    const Result<bool> fenced = s ? fence_keeper(place) : Result<bool>(s);
    s = fenced.status();
    // What it holds is in no core file, and no process of the same user may look at it.
    if (s && ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) s = fail_errno(Code::io_error, "prctl PR_SET_DUMPABLE", errno);
    // Some hosts look up users over sockets.
    if (s) s = give_up_calls({.unix_sockets = true, .owners = true}).status();
    if (!s) log_error(s.text);
    Keeper keeper(std::move(place));
    const auto answer = [&](std::string_view packet, int *fd) {
        const Reply reply = keeper.answer(packet, wall_clock_s(), fd);
        if (!reply.status) log_debug(reply.status.text);
        return side_answer(reply.status, reply.bytes);
    };
    if (s) serve_side_process(socket, patience_s, answer);
    ::_exit(s ? 0 : 1);  // nothing of the scheduler's is undone here
}

}  // namespace dcs::keeper
