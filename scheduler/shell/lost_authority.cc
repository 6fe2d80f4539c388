#include "scheduler/shell/lost_authority.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/files.h"
#include "daemon/privileges.h"
#include "daemon/side_process.h"
#include "scheduler/record/paths.h"
#include "scheduler/record/rebuild.h"
#include "store/disk_posix.h"

namespace dcs::shell {
namespace {

constexpr std::size_t hosts_named = 3;

// The names of hosts that joined, or nothing.
Result<std::string> joined_hosts(const std::string &state, const store::StoreOptions &options) {
    if (Status s = give_up_capabilities(); !s) return s;
    if (const Result<bool> given_up = give_up_files({state}); !given_up) return given_up.status();
    auto disk = store::open_posix_disk(state, keeps_openat2());
    if (!disk) return disk.status();
    auto store = store::Store::open(**disk, record::forest(), options, nullptr);
    if (!store) return store.status();
    const auto rebuilt = record::rebuild(**store, boot_clock());
    if (!rebuilt) return rebuilt.status();
    const core::Trust &trust = rebuilt->state.trust;
    std::size_t more = 0, shown = 0;
    std::string names;
    for (const auto *joined : {&trust.keys, &trust.backups, &trust.clients})
        for (const auto &[host, key] : *joined)
            if (shown < hosts_named) names += (shown++ > 0 ? ", " : "") + host;
            else ++more;
    return names + (more > 0 ? " and " + std::to_string(more) + " more" : "");
}

[[noreturn]] void tell_joined_hosts(int to, const std::string &state, const store::StoreOptions &options) {
    const auto hosts = joined_hosts(state, options);
    const std::string answer = side_answer({hosts.status(), hosts ? *hosts : ""});
    ::_exit(write_all(to, answer) ? 0 : 1);  // nothing of the scheduler's is undone here
}

Result<std::string> ask_joined_hosts(const std::string &state, const store::StoreOptions &options) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno(Code::limit, "cannot make a pipe", errno);
    const Fd from(ends[0]);
    Fd to(ends[1]);
    const pid_t pid = ::fork();
    if (pid < 0) return fail_errno(Code::limit, "cannot start a process", errno);
    if (pid == 0) tell_joined_hosts(to.get(), state, options);
    to = Fd();
    std::string said;
    (void)read_to_end(from.get(), side_packet_max, said);
    while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {}
    const auto answer = read_side_answer(said);
    if (!answer) return fail(Code::internal, "the process that looks for hosts in the store ended without an answer");
    if (!answer->status) return answer->status;
    return answer->bytes;
}

}  // namespace

Status authority_is_there(const std::string &pki, const std::string &state, const store::StoreOptions &options) {
    if (file_exists(AT_FDCWD, pki)) return Status::ok();
    const auto hosts = ask_joined_hosts(state, options);
    if (!hosts) return hosts.status();
    if (hosts->empty()) return Status::ok();
    return fail(Code::refused, pki + ", the pool's authority, is missing, but hosts have joined under it: " + *hosts +
                                   ". Restore it from your copy of this directory, and if the scheduler has moved, of "
                                   "the old one's; or, for a new authority with which every host must join again, "
                                   "make " +
                                   pki + " as an empty directory (mkdir -m 700)");
}

}  // namespace dcs::shell
