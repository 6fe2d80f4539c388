#pragma once
// The session of the program. A job is a grain, and its id is SESSION:GRAIN, as `dcs grain show` takes it.
//
// A session with a name is one that can be repeated: its jobs have the numbers 1, 2, ... in the order of submission. A
// program that was killed and runs again submits the same jobs under the same numbers, which changes nothing in the
// pool, and gets the results in the order of the first time. All others submit new jobs behind those that there are.
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "dcs.h"
#include "order.h"
#include "call.h"

namespace dcs::drmaa {

// How a job ended, or how it is.
struct Facts {
    std::string id;
    int state = DRMAA_PS_UNDETERMINED;
    bool over = false, aborted = false;  // aborted: it ended without having run
    int code = 0, signal = 0;
    std::vector<std::string> usage;  // NAME=VALUE
};

using JobId = std::pair<int, int>;  // session, grain
std::optional<JobId> job_of(const std::string &id);
std::string id_of(JobId job);
std::string user_name();

class Session {
public:
    static Outcome open(const std::string &contact, std::shared_ptr<Session> &opened);
    ~Session();

    const std::string &contact() const { return contact_; }
    // With `indexes` a job for each. All or none of them.
    Outcome run(const Template &job, const std::vector<long> &indexes, std::vector<std::string> &ids);
    Outcome control(const std::string &id, int action);
    Outcome look(const std::string &id, Facts &facts);
    // Seconds, or DRMAA_TIMEOUT_WAIT_FOREVER. The job is not one of the session's afterwards.
    Outcome wait(const std::string &id, long timeout, Facts &facts);
    Outcome synchronize(const std::vector<std::string> &ids, long timeout, bool dispose);
    // Jobs go on. A session that has nothing left to do is closed.
    Outcome leave();

private:
    explicit Session(d_pool *pool) : pool_(pool) {}
    Outcome find(const std::string &contact);
    Outcome begin(const std::string &ident, int number);
    Outcome take_over(const std::string &ident, int number, bool closed);
    bool was_left(int number);
    Outcome know_jobs();
    Outcome number_orders(const Template &job, const std::vector<long> &indexes, std::vector<Order> &orders);
    Outcome send(const std::vector<Order> &orders, bool &taken_by_others);
    Outcome act(JobId job, int action);
    Outcome terminate(JobId job);
    Outcome facts_of(JobId job, Facts &facts);
    Outcome take_results();
    Outcome take_killed();
    void ended(int number);
    void reap(JobId job);
    Outcome end_of(JobId job, bool &done, Facts &facts);
    Outcome is_over(JobId job, bool &over);
    Outcome wait_any(bool &done, Facts &facts);
    bool is_mine(JobId job) const { return job.first == number_ && job.second < next_; }
    template <class Step> Outcome until(long timeout, Step step);

    d_pool *pool_;
    std::mutex mutex_;
    std::string contact_;
    bool repeats_ = false;  // the session has a name
    bool left_ = false;
    int number_ = 0, next_ = 1;
    std::set<int> unreaped_;     // of 1 to next_ - 1
    std::set<int> over_;         // have ended; also jobs that a repeated program has yet to submit
    std::deque<int> order_;      // the same in the order of their ends, until they are reaped
    std::map<int, Order> held_;  // drmaa_hold: not in the pool yet
    std::set<int> aborted_;      // held jobs that were terminated
    std::set<JobId> reaped_others_;
    double killed_asked_ = 0;
};

}  // namespace dcs::drmaa
