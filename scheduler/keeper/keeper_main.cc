#include <cerrno>

#include <linux/capability.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/privileges.h"
#include "daemon/log.h"
#include "scheduler/keeper/keeper.h"

namespace dcs::keeper {
namespace {

// Of root's rights: the files of --hosts, --policy and --limits may be anybody's, and echo requests need a raw socket.
constexpr std::uint64_t kept = 1ull << CAP_DAC_OVERRIDE | 1ull << CAP_CHOWN | 1ull << CAP_FOWNER | 1ull << CAP_NET_RAW;

}  // namespace

void run_keeper(int socket, Place place) {
    Status s = settle_side_process(socket, "dcs_keeper");
    if (s) s = give_up_capabilities(kept);
    // What it holds is in no core file, and no process of the same user may look at it.
    if (s && ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) s = fail_errno(Code::io_error, "not to be looked at", errno);
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
