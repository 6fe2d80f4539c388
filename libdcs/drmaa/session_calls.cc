// The calls about the session and its jobs.
#include <memory>
#include <mutex>

#include "call.h"
#include "session.h"

namespace dcs::drmaa {
namespace {

std::mutex session_mutex;
std::shared_ptr<Session> session_now;

std::shared_ptr<Session> session_of_program() {
    std::lock_guard lock(session_mutex);
    return session_now;
}

// f(session); a call that waits goes on with its session when another thread leaves it, and then ends.
template <class F> int session_call(char *diagnosis, std::size_t length, F &&f) {
    return call(diagnosis, length, [&]() -> Outcome {
        if (Outcome o = in_session(); !o.good()) return o;
        const auto session = session_of_program();
        return session ? f(*session) : in_session();
    });
}

// One figure, in the caller's place for it.
int answer(int value, int *place, char *diagnosis, std::size_t length) {
    return call(diagnosis, length, [&]() -> Outcome {
        if (!place) return missing("the place of the answer");
        *place = value;
        return {};
    });
}

// The end of a job in one number: its exit code, signal, and whether it was aborted.
constexpr int signal_shift = 8, aborted_bit = 1 << 16;
int packed(const Facts &facts) {
    return (facts.code & 0xff) | (facts.signal & 0x7f) << signal_shift | (facts.aborted ? aborted_bit : 0);
}

Outcome bulk_indexes(int start, int end, int incr, std::vector<long> &indexes) {
    constexpr long most = 1000000;
    if (start < 1 || incr == 0 || (incr > 0 ? end < start : end > start || end < 1))
        return {DRMAA_ERRNO_INVALID_ARGUMENT, "from " + std::to_string(start) + " to " + std::to_string(end) + " by " +
                                                  std::to_string(incr) +
                                                  ": there is no such range of numbers from 1 on"};
    if ((static_cast<long>(end) - start) / incr >= most)
        return {DRMAA_ERRNO_INVALID_ARGUMENT, "more than " + std::to_string(most) + " jobs in one call"};
    for (long i = start; incr > 0 ? i <= end : i >= end; i += incr) indexes.push_back(i);
    return {};
}

Outcome check_timeout(long timeout) {
    if (timeout >= DRMAA_TIMEOUT_WAIT_FOREVER) return {};
    return {DRMAA_ERRNO_INVALID_ARGUMENT, "the timeout is " + std::to_string(timeout) +
                                              ": it must be DRMAA_TIMEOUT_WAIT_FOREVER or a number of seconds"};
}

}  // namespace

Outcome in_session() {
    if (session_of_program()) return {};
    return {DRMAA_ERRNO_NO_ACTIVE_SESSION, "there is no session: call drmaa_init first"};
}

}  // namespace dcs::drmaa

using namespace dcs::drmaa;

extern "C" {

int drmaa_init(const char *contact, char *diagnosis, size_t length) {
    return call(diagnosis, length, [&]() -> Outcome {
        std::lock_guard lock(session_mutex);
        if (session_now)
            return {DRMAA_ERRNO_ALREADY_ACTIVE_SESSION, "the session " + session_now->contact() + " is active"};
        return Session::open(contact ? contact : "", session_now);
    });
}

int drmaa_exit(char *diagnosis, size_t length) {
    return session_call(diagnosis, length, [&](Session &session) -> Outcome {
        if (Outcome o = session.leave(); !o.good()) return o;
        std::lock_guard lock(session_mutex);
        session_now.reset();
        return {};
    });
}

int drmaa_run_job(char *job_id, size_t job_id_len, const drmaa_job_template_t *jt, char *diagnosis, size_t length) {
    return session_call(diagnosis, length, [&](Session &session) -> Outcome {
        if (!jt || !job_id) return missing("the template or the place of the job's id");
        std::vector<std::string> ids;
        if (Outcome o = session.run(*jt, {}, ids); !o.good()) return o;
        copy_text(ids[0], job_id, job_id_len);
        return {};
    });
}

int drmaa_run_bulk_jobs(drmaa_job_ids_t **jobids, const drmaa_job_template_t *jt, int start, int end, int incr,
                        char *diagnosis, size_t length) {
    return session_call(diagnosis, length, [&](Session &session) -> Outcome {
        if (!jt || !jobids) return missing("the template or the place of the jobs' ids");
        std::vector<long> indexes;
        if (Outcome o = bulk_indexes(start, end, incr, indexes); !o.good()) return o;
        auto list = std::make_unique<drmaa_job_ids_t>();
        if (Outcome o = session.run(*jt, indexes, list->texts); !o.good()) return o;
        *jobids = list.release();
        return {};
    });
}

int drmaa_control(const char *jobid, int action, char *diagnosis, size_t length) {
    return session_call(diagnosis, length, [&](Session &session) -> Outcome {
        return jobid ? session.control(jobid, action) : missing("the job's id");
    });
}

int drmaa_job_ps(const char *job_id, int *remote_ps, char *diagnosis, size_t length) {
    return session_call(diagnosis, length, [&](Session &session) -> Outcome {
        if (!job_id || !remote_ps) return missing("the job's id or the place of its state");
        Facts facts;
        const Outcome outcome = session.look(job_id, facts);
        if (outcome.good()) *remote_ps = facts.state;
        return outcome;
    });
}

int drmaa_synchronize(const char *job_ids[], signed long timeout, int dispose, char *diagnosis, size_t length) {
    return session_call(diagnosis, length, [&](Session &session) -> Outcome {
        if (!job_ids) return missing("the list of jobs");
        if (Outcome o = check_timeout(timeout); !o.good()) return o;
        std::vector<std::string> ids;
        for (const char **id = job_ids; *id; ++id) ids.emplace_back(*id);
        return session.synchronize(ids, timeout, dispose != 0);
    });
}

int drmaa_wait(const char *job_id, char *job_id_out, size_t job_id_out_len, int *stat, signed long timeout,
               drmaa_attr_values_t **rusage, char *diagnosis, size_t length) {
    return session_call(diagnosis, length, [&](Session &session) -> Outcome {
        if (!job_id) return missing("the job's id");
        if (Outcome o = check_timeout(timeout); !o.good()) return o;
        Facts facts;
        if (Outcome o = session.wait(job_id, timeout, facts); !o.good()) return o;
        copy_text(facts.id, job_id_out, job_id_out_len);
        if (stat) *stat = packed(facts);
        if (rusage) {
            *rusage = new drmaa_attr_values_t;
            (*rusage)->texts = facts.usage;
        }
        return {};
    });
}

int drmaa_get_contact(char *contact, size_t contact_len, char *diagnosis, size_t length) {
    return call(diagnosis, length, [&]() -> Outcome {
        if (!contact) return missing("the place of the contact");
        const auto session = session_of_program();
        copy_text(session ? session->contact() : "", contact, contact_len);
        return {};
    });
}

int drmaa_wifexited(int *exited, int stat, char *diagnosis, size_t length) {
    return answer(!(stat & aborted_bit) && !(stat >> signal_shift & 0x7f), exited, diagnosis, length);
}

int drmaa_wexitstatus(int *exit_status, int stat, char *diagnosis, size_t length) {
    return answer(stat & 0xff, exit_status, diagnosis, length);
}

int drmaa_wifsignaled(int *signaled, int stat, char *diagnosis, size_t length) {
    return answer((stat >> signal_shift & 0x7f) != 0, signaled, diagnosis, length);
}

int drmaa_wtermsig(char *signal, size_t signal_len, int stat, char *diagnosis, size_t length) {
    return call(diagnosis, length, [&]() -> Outcome {
        if (!signal) return missing("the place of the answer");
        const int number = stat >> signal_shift & 0x7f;
        if (number == 0) return {DRMAA_ERRNO_INVALID_ARGUMENT, "no signal ended this job"};
        const char *name = sigabbrev_np(number);
        copy_text("SIG" + (name ? std::string(name) : std::to_string(number)), signal, signal_len);
        return {};
    });
}

int drmaa_wcoredump(int *core_dumped, int, char *diagnosis, size_t length) {
    return answer(0, core_dumped, diagnosis, length);  // grains leave none
}

int drmaa_wifaborted(int *aborted, int stat, char *diagnosis, size_t length) {
    return answer((stat & aborted_bit) != 0, aborted, diagnosis, length);
}

}  // extern "C"
