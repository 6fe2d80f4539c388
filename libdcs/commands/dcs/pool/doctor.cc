// dcs doctor: what is damaged, set aside, missing or nearly full, and what to do about it.
#include <cstdio>
#include <unistd.h>

#include "commands/dcs/frame/call.h"
#include "client/call.h"
#include "commands/dcs/frame/json.h"
#include "commands/dcs/frame/start_hint.h"
#include "commands/dcs/frame/table.h"
#include "commands/dcs/frame/this_pool.h"
#include "commands/dcs/pool/copy_state.h"
#include "wire/message.h"

namespace dcs::commands {
namespace {

void print(const std::vector<wire::ProblemRow> &problems) {
    for (const wire::ProblemRow &p : problems) {
        std::printf("%s%s%s: %s\n", p.entity.c_str(), p.file.empty() ? "" : ", ", p.file.c_str(), p.problem.c_str());
        if (!p.affects.empty()) std::printf("  affects: %s\n", p.affects.c_str());
        if (!p.advice.empty()) std::printf("  do:      %s\n", p.advice.c_str());
    }
    if (problems.empty()) std::printf("all is well\n");
    else std::printf("\n%s\n", counted(static_cast<std::int64_t>(problems.size()), "problem").c_str());
}

int doctor(const Call &call) {
    auto reply = client::ask<wire::DoctorReply>(this_pool(), wire::Doctor{}, client::How{client::With::any});
    if (!reply) {
        Failure failure = failure_of("the scheduler does not answer", reply.status());
        if (failure.exit == exits::unreachable) {
            if (const auto waits = waits_for_copy(call.directory)) return call.fail(*waits);
            const std::string log = call.directory + "/scheduler/log";  // not where it goes to the journal
            failure.hint = start_hint(call.directory);
            if (::access(log.c_str(), R_OK) == 0)
                failure.hint = "`dcs status` shows which daemons run, " + failure.hint +
                               "; the reason why the scheduler ended is in " + log;
        }
        return call.fail(failure);
    }
    const auto &problems = reply->problems;
    if (call.format == Format::json) {
        std::vector<std::string> rows;
        for (const wire::ProblemRow &p : problems) rows.push_back(wire::to_json(p));
        print_document("dcs.doctor/1", "problems", json_array(rows));
    } else if (call.format == Format::name) {
        for (const wire::ProblemRow &p : problems) std::printf("%s\n", p.entity.c_str());
    } else {
        print(problems);
    }
    return problems.empty() ? exits::ok : exits::error;
}

}  // namespace

extern const Verb doctor_verb = {
    .noun = "",
    .name = "doctor",
    .summary = "list problems of the pool, and what to do",
    .about = R"(Lists problems that the scheduler knows: sessions that were set aside because their files are damaged,
other damage of the backing store, a disk that is nearly full, hosts that are late, dead or have never called,
and your grains that no host can take or that come back from hosts repeatedly.

Examples:
  dcs doctor
  dcs doctor -o json | jq -r '.problems[] | .entity + ": " + .problem'
)",
    .notes = R"(Exit code 0 when all is well, 1 when there is a problem, 5 when the scheduler does not answer.
)",
    .run = doctor};

}  // namespace dcs::commands
