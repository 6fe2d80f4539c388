// What is asked and changed of a session of an earlier run.
#include <ctime>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "client/call.h"
#include "client/remote.h"
#include "dcs.h"
#include "commands/dcs/frame/pool_directory.h"
#include "commands/dcs/query/grains.h"
#include "commands/dcs/run/caller_environment.h"
#include "process/table.h"
#include "session.h"

namespace dcs::commands {

std::string since_text(pid_t pid) {
    ProcessStat stat;
    if (pid <= 0 || !read_stat(pid, stat)) return "";
    const double age = static_cast<double>(boot_clock().ns) / 1e9 -
                       static_cast<double>(stat.start_time) / static_cast<double>(::sysconf(_SC_CLK_TCK));
    const char *format = age < 43'200 ? " since %H:%M:%S" : " since %Y-%m-%d %H:%M";
    return moment_text(format, std::time(nullptr) - static_cast<std::time_t>(age));
}

std::optional<locks::SessionClaims> claims_at_door(const std::string &directory) {
    constexpr std::int64_t patience_s = 20;
    const auto elsewhere = client::adopt_remote(this_pool()) ? this_pool().remote() : nullptr;
    struct stat st = {};
    const bool own = ::stat(directory.c_str(), &st) == 0 && st.st_uid == ::geteuid();
    auto claims = elsewhere ? locks::SessionClaims::open_for(elsewhere->address)
                  : own     ? locks::SessionClaims::open_in(directory)
                            : locks::SessionClaims::open_for(directory);
    if (!claims) return std::nullopt;
    (void)claims->enter({(boot_clock() + seconds(patience_s)).ns});
    return std::move(*claims);
}

std::string ran_before(const Session &session, const std::string &what) {
    const std::string number = std::to_string(session.session);
    const bool left = session.ready + session.running > 0;
    return "session " + number + (left ? " still runs " : " ran ") + what + ", so all run" +
           (left ? " (`dcs session close " + number + "` ends it)" : "");
}

std::optional<Failure> failed_grains(const Session &session, std::vector<int> &grains, std::string &from) {
    Info info;
    if (const Status s = info.ask(wire::QueryType::grains, session.user, session.session); !s)
        return call_failure("session " + std::to_string(session.session), s);
    for (const wire::GrainRow &row : info.grains) {
        if (row.state != "killed" && !is_failed(row)) continue;
        grains.push_back(row.grain);
        if (row.state != "killed" && row.checkpoint_length > 0) from = ", from the last checkpoint where there is one";
    }
    return std::nullopt;
}

RunEnd end_of_run(const Session &session) {
    const bool over = session.terminated() && session.ready + session.running == 0 && session.sent >= session.finished;
    return over ? RunEnd::complete : RunEnd::interrupted;
}

bool all_ended_some_failed(const Session &session) {
    return session.ready + session.running == 0 && session.failed + session.killed > 0;
}

std::optional<Failure> submit_again(const Session &session, std::vector<int> failed, const GrainsNow &now,
                                    bool from_start) {
    Info info;
    if (session.terminated()) {
        const Status s = info.ask(wire::QueryType::grains, session.user, session.session, -1, "ready");
        if (!s) return call_failure("session " + std::to_string(session.session), s);
    }
    for (const wire::GrainRow &row : info.grains) failed.push_back(row.grain);
    if (failed.empty()) return std::nullopt;
    if (const int error = d_pool_get_auth(&this_pool(), session.ident.c_str()); error != NO_ERROR)
        return call_failure("the authorization", error);
    if (const int error = d_pool_resume_ses(&this_pool(), session.session, TRUE); error != NO_ERROR)
        return call_failure("session " + std::to_string(session.session), error);
    this_pool().again = true;
    this_pool().from_start = from_start;
    auto wrong = now.submit(session.session, failed);
    this_pool().again = this_pool().from_start = false;
    return wrong;
}

const std::string what_runs_takes_it =
    "grains that run again or have not started take the new one, the others keep theirs";

std::string other_environment(const Session &session, int grain, const GrainsNow &now, const std::string &then) {
    const auto row = grain_now(session.user, session.session, grain);
    if (row && row->env.empty()) return "";  // a scheduler of release 0.1 does not say
    const std::string names = row ? variables_that_differ(row->env, now.environment(grain)) : "";
    if (names.empty()) return "";
    return "the environment differs from the earlier run's (" + names + "): " + then;
}

}  // namespace dcs::commands
