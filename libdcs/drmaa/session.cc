#include "session.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <thread>

namespace dcs::drmaa {
namespace {

constexpr int at_a_time = 256;        // results of one request
constexpr double killed_every_s = 1;  // jobs that were killed have no results: the pool is asked for them
constexpr double shortest_pause_s = 0.02, longest_pause_s = 0.5;

double seconds_now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Outcome no_session() { return {DRMAA_ERRNO_NO_ACTIVE_SESSION, "drmaa_init was not called, or drmaa_exit was"}; }
Outcome no_job(const std::string &id) {
    return {DRMAA_ERRNO_INVALID_JOB, "there is no job \"" + id + "\" to wait for or to ask about"};
}

Facts facts_in(const d_grain_row &row) {
    Facts facts;
    const std::string state = row.state;
    facts.code = row.exit_code;
    facts.signal = row.signal;
    if (state == "ready") facts.state = DRMAA_PS_QUEUED_ACTIVE;
    if (state == "running") facts.state = DRMAA_PS_RUNNING;
    if (state == "finished") facts.state = row.exit_code == 0 && row.signal == 0 ? DRMAA_PS_DONE : DRMAA_PS_FAILED;
    if (state == "killed") {
        facts.state = DRMAA_PS_FAILED;
        facts.aborted = row.starts == 0;
        facts.signal = facts.aborted ? 0 : SIGKILL;
    }
    facts.over = facts.state == DRMAA_PS_DONE || facts.state == DRMAA_PS_FAILED;
    const auto add = [&facts](const char *name, const std::string &value) {
        facts.usage.push_back(std::string(name) + "=" + value);
    };
    add("exit_status", std::to_string(facts.code));
    add("signal", std::to_string(facts.signal));
    add("ru_utime", std::to_string(row.user_s));
    add("ru_stime", std::to_string(row.system_s));
    add("cpu", std::to_string(row.user_s + row.system_s));
    add("ru_maxrss", std::to_string(row.max_rss_kb));
    add("ru_minflt", std::to_string(row.minor_faults));
    add("ru_majflt", std::to_string(row.major_faults));
    add("ru_inblock", std::to_string(row.in_blocks));
    add("ru_oublock", std::to_string(row.out_blocks));
    add("starts", std::to_string(row.starts));
    add("host", *row.host || row.move_count == 0 ? row.host : row.moves[row.move_count - 1].host);
    return facts;
}

Facts facts_of_unsent(bool aborted) {
    Facts facts;
    facts.state = aborted ? DRMAA_PS_FAILED : DRMAA_PS_USER_ON_HOLD;
    facts.over = facts.aborted = aborted;
    return facts;
}

}  // namespace

std::optional<JobId> job_of(const std::string &id) {
    const std::size_t colon = id.find(':');
    if (colon == std::string::npos) return {};
    int numbers[2];
    const std::string parts[] = {id.substr(0, colon), id.substr(colon + 1)};
    for (int i = 0; i < 2; ++i) {
        const bool digits = std::all_of(parts[i].begin(), parts[i].end(), [](char c) { return c >= '0' && c <= '9'; });
        if (!digits || parts[i].empty() || parts[i].size() > 9) return {};
        numbers[i] = std::stoi(parts[i]);
    }
    return JobId(numbers[0], numbers[1]);
}

std::string id_of(JobId job) { return std::to_string(job.first) + ":" + std::to_string(job.second); }

Outcome Session::number_orders(const Template &job, const std::vector<long> &indexes, std::vector<Order> &orders) {
    const Place place = this_place();
    unsigned mask = 0;
    orders.assign(std::max<std::size_t>(1, indexes.size()), {});
    for (std::size_t i = 0; i < orders.size(); ++i) {
        orders[i].number = next_ + static_cast<int>(i);
        const std::string id = id_of({number_, orders[i].number});
        if (Outcome o = make_order(job, place, id, indexes.empty() ? -1 : indexes[i], orders[i]); !o.good()) return o;
        if (i == 0 && !orders[i].native.classes.empty())
            if (const int e = d_pool_host_class(pool_, orders[i].native.classes.c_str(), &mask); e != D_OK)
                return of_dcs(e);
        orders[i].host_class = mask;
    }
    return {};
}

// After an error none of the jobs is left in the pool, unless the session repeats: then the next try changes nothing
// about those that are.
Outcome Session::send(const std::vector<Order> &orders, bool &taken_by_others) {
    std::size_t taken = 0;
    const int error = submit(pool_, number_, orders, taken);
    if (error == D_OK) return {};
    Outcome outcome = of_dcs(error);
    taken_by_others = !repeats_ && (error == D_E_GRAIN_DIFFERS || error == D_E_GRAIN_EXISTS);
    if (repeats_ && error == D_E_GRAIN_DIFFERS)
        outcome.text += "; the session " + contact_ +
                        " repeats the jobs of a program that did not reach drmaa_exit: "
                        "another name begins a new one, and so does `dcs session close " +
                        std::to_string(number_) + "`";
    if (!repeats_)
        for (std::size_t i = 0; i < taken; ++i) d_pool_gkill(pool_, number_, orders[i].number);
    return outcome;
}

Outcome Session::run(const Template &job, const std::vector<long> &indexes, std::vector<std::string> &ids) {
    std::lock_guard lock(mutex_);
    if (left_) return no_session();
    std::vector<Order> orders;
    for (bool again = true; again;) {
        again = false;
        if (Outcome o = number_orders(job, indexes, orders); !o.good()) return o;
        if (value_of(job, DRMAA_JS_STATE) == DRMAA_SUBMISSION_STATE_HOLD) {
            for (const Order &order : orders) held_[order.number] = order;
            break;
        }
        const Outcome sent = send(orders, again);
        if (sent.good()) break;
        if (!again) return sent;
        const int before = next_;
        if (Outcome o = know_jobs(); !o.good()) return o;
        if (next_ == before) return sent;
    }
    for (const Order &order : orders) {
        unreaped_.insert(order.number);
        ids.push_back(id_of({number_, order.number}));
    }
    next_ = orders.back().number + 1;
    return {};
}

Outcome Session::facts_of(JobId job, Facts &facts) {
    const bool mine = job.first == number_;
    if (mine && (held_.count(job.second) || aborted_.count(job.second))) {
        facts = facts_of_unsent(aborted_.count(job.second) > 0);
    } else {
        d_info *info = nullptr;
        const int e = d_pool_query(pool_, D_Q_GRAIN, nullptr, job.first, job.second, &info);
        if (e == D_E_SESSION_UNKNOWN || e == D_E_GRAIN_UNKNOWN) return no_job(id_of(job));
        if (e != D_OK) return of_dcs(e);
        facts = facts_in(info->grains[0]);
        d_query_free(info);
    }
    facts.id = id_of(job);
    return {};
}

Outcome Session::look(const std::string &id, Facts &facts) {
    std::lock_guard lock(mutex_);
    if (left_) return no_session();
    const auto job = job_of(id);
    return job ? facts_of(*job, facts) : no_job(id);
}

Outcome Session::control(const std::string &id, int action) {
    std::lock_guard lock(mutex_);
    if (left_) return no_session();
    if (action < DRMAA_CONTROL_SUSPEND || action > DRMAA_CONTROL_TERMINATE)
        return {DRMAA_ERRNO_INVALID_ARGUMENT, "there is no action " + std::to_string(action)};
    if (id != DRMAA_JOB_IDS_SESSION_ALL) {
        const auto job = job_of(id);
        return job ? act(*job, action) : no_job(id);
    }
    if (Outcome o = take_results(); !o.good()) return o;
    for (const int number : std::vector<int>(unreaped_.begin(), unreaped_.end()))
        if (!over_.count(number) && (action != DRMAA_CONTROL_RELEASE || held_.count(number)))
            if (Outcome o = act({number_, number}, action); !o.good()) return o;
    return {};
}

Outcome Session::act(JobId job, int action) {
    Facts facts;
    if (Outcome o = facts_of(job, facts); !o.good()) return o;
    const bool held = job.first == number_ && held_.count(job.second);
    switch (action) {
    case DRMAA_CONTROL_SUSPEND: return {DRMAA_ERRNO_SUSPEND_INCONSISTENT_STATE, "DCS does not suspend jobs"};
    case DRMAA_CONTROL_RESUME: return {DRMAA_ERRNO_RESUME_INCONSISTENT_STATE, "DCS does not suspend jobs"};
    case DRMAA_CONTROL_HOLD:
        if (held) return {};
        return {DRMAA_ERRNO_HOLD_INCONSISTENT_STATE, "job " + facts.id +
                                                         " is in the pool already: a job is put on hold by " +
                                                         DRMAA_JS_STATE + " when it is submitted"};
    case DRMAA_CONTROL_RELEASE: {
        if (!held) return {DRMAA_ERRNO_RELEASE_INCONSISTENT_STATE, "job " + facts.id + " is not on hold"};
        bool taken_by_others = false;
        if (Outcome o = send({held_[job.second]}, taken_by_others); !o.good()) return o;
        held_.erase(job.second);
        return {};
    }
    default: return facts.over ? Outcome{} : terminate(job);
    }
}

Outcome Session::terminate(JobId job) {
    const bool mine = job.first == number_;
    if (mine && held_.erase(job.second)) aborted_.insert(job.second);
    else if (const int e = d_pool_gkill_of(pool_, user_name().c_str(), job.first, job.second); e != D_OK)
        return of_dcs(e);
    if (mine) ended(job.second);
    return {};
}

Outcome Session::take_results() {
    std::vector<d_result> results(at_a_time);
    for (;;) {
        d_result_init(results.data(), results.size());
        int count = 0;
        const int e = d_pool_gwait_many(pool_, D_NO_BLOCK, number_, at_a_time, results.data(), &count);
        if (e == D_E_NOTHING_YET || e == D_E_NOTHING_LEFT || e == D_E_CANNOT_RUN) return take_killed();
        if (e != D_OK) return of_dcs(e);
        for (int i = 0; i < count; ++i) ended(results[static_cast<std::size_t>(i)].grain_num);
    }
}

Outcome Session::take_killed() {
    const double now = seconds_now();
    if (now - killed_asked_ < killed_every_s) return {};
    d_info *info = nullptr;
    if (const int e = d_pool_query(pool_, D_Q_KILLED, nullptr, number_, -1, &info); e != D_OK) return of_dcs(e);
    killed_asked_ = now;
    for (std::size_t i = 0; i < info->grain_count; ++i) ended(info->grains[i].grain);
    d_query_free(info);
    return {};
}

void Session::ended(int number) {
    if (over_.insert(number).second) order_.push_back(number);
}

void Session::reap(JobId job) {
    if (is_mine(job)) unreaped_.erase(job.second);
    else reaped_others_.insert(job);
}

Outcome Session::is_over(JobId job, bool &over) {
    if (is_mine(job)) {
        over = !unreaped_.count(job.second) || over_.count(job.second);
        return {};
    }
    Facts facts;
    const Outcome o = facts_of(job, facts);
    over = facts.over;
    return o;
}

// step(done) until it is done, fails, or the time is over. A scheduler that is away for a while is no failure.
template <class Step> Outcome Session::until(long timeout, Step step) {
    const double begun = seconds_now();
    double pause = shortest_pause_s;
    for (;;) {
        Outcome outcome;
        {
            std::lock_guard lock(mutex_);
            if (left_) return no_session();
            bool done = false;
            outcome = step(done);
            const bool away = outcome.code == DRMAA_ERRNO_DRM_COMMUNICATION_FAILURE;
            if (done || (!outcome.good() && !away)) return outcome;
        }
        const double left = timeout < 0 ? pause : static_cast<double>(timeout) - (seconds_now() - begun);
        if (left <= 0)
            return outcome.good() ? Outcome{DRMAA_ERRNO_EXIT_TIMEOUT, "not all has ended in the time given"} : outcome;
        std::this_thread::sleep_for(std::chrono::duration<double>(std::min(pause, left)));
        pause = std::min(longest_pause_s, pause * 1.5);
    }
}

Outcome Session::wait_any(bool &done, Facts &facts) {
    if (unreaped_.empty())
        return {DRMAA_ERRNO_INVALID_JOB, "the session " + contact_ + " has no job that was not waited for"};
    if (Outcome o = take_results(); !o.good()) return o;
    std::erase_if(order_, [this](int number) { return number < next_ && !unreaped_.count(number); });
    const auto first =
        std::find_if(order_.begin(), order_.end(), [this](int number) { return unreaped_.count(number) > 0; });
    return first == order_.end() ? Outcome{} : end_of({number_, *first}, done, facts);
}

Outcome Session::end_of(JobId job, bool &done, Facts &facts) {
    const Outcome outcome = facts_of(job, facts);
    done = outcome.good();
    if (done) reap(job);
    return outcome;
}

Outcome Session::wait(const std::string &id, long timeout, Facts &facts) {
    if (id == DRMAA_JOB_IDS_SESSION_ANY) return until(timeout, [&](bool &done) { return wait_any(done, facts); });
    const auto job = job_of(id);
    if (!job) return no_job(id);
    return until(timeout, [&](bool &done) -> Outcome {
        if (is_mine(*job) ? !unreaped_.count(job->second) : reaped_others_.count(*job) > 0) return no_job(id);
        if (is_mine(*job))
            if (Outcome o = take_results(); !o.good()) return o;
        bool over = false;
        if (Outcome o = is_over(*job, over); !o.good() || !over) return o;
        return end_of(*job, done, facts);
    });
}

Outcome Session::synchronize(const std::vector<std::string> &ids, long timeout, bool dispose) {
    std::vector<JobId> jobs;
    {
        std::lock_guard lock(mutex_);
        if (left_) return no_session();
        for (const std::string &id : ids) {
            if (id == DRMAA_JOB_IDS_SESSION_ALL) {
                for (const int number : unreaped_) jobs.emplace_back(number_, number);
                continue;
            }
            const auto job = job_of(id);
            if (!job) return no_job(id);
            jobs.push_back(*job);
        }
    }
    std::size_t at = 0;  // all before it have ended
    const Outcome outcome = until(timeout, [&](bool &done) -> Outcome {
        if (Outcome o = take_results(); !o.good()) return o;
        for (bool over = true; at < jobs.size(); ++at) {
            if (Outcome o = is_over(jobs[at], over); !o.good()) return o;
            if (!over) return {};
        }
        done = true;
        return {};
    });
    if (!outcome.good() || !dispose) return outcome;
    std::lock_guard lock(mutex_);
    for (const JobId &job : jobs) reap(job);
    return {};
}

}  // namespace dcs::drmaa
