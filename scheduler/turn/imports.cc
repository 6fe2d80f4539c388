#include "scheduler/turn/imports.h"

#include <new>

namespace dcs::turn {
namespace {

// About five milliseconds of work: less than what others wait for a commit.
constexpr std::size_t slice_bytes = 256 * 1024;

}  // namespace

void Imports::begin(core::UserCall call, const wire::ImportSession &order, std::string stream) {
    const std::string user = call.caller.user;
    of_user_[user].push_back(Job{std::move(call), order, ImportReader(std::move(stream), user)});
}

void Imports::drop(ConnId conn) {
    for (auto it = of_user_.begin(); it != of_user_.end();) {
        std::erase_if(it->second, [&](const Job &job) { return job.call.caller.conn == conn; });
        it = it->second.empty() ? of_user_.erase(it) : std::next(it);
    }
}

std::uint64_t Imports::held() const {
    std::uint64_t sum = 0;
    for (const auto &[user, jobs] : of_user_)
        for (const Job &job : jobs) sum += job.reader.held();
    return sum;
}

const std::string &Imports::whose() const {
    static const std::string nobody;
    if (of_user_.empty()) return nobody;
    const auto next = of_user_.upper_bound(last_);
    return next == of_user_.end() ? of_user_.begin()->first : next->first;
}

std::optional<Imports::Read> Imports::next(const core::State &state, Contents &contents) {
    if (of_user_.empty()) return std::nullopt;
    last_ = whose();
    std::deque<Job> &jobs = of_user_[last_];
    Job &job = jobs.front();
    Read read;
    const Holder holder{state.stored, job.call.caller.user, job.call.caller.privileged};
    try {
        if (job.reader.step(slice_bytes, holder, contents)) return std::nullopt;
        auto content = job.reader.take(state);
        if (!content) read.status = content.status();
        else job.call.request = core::ImportSession{job.order.number, job.order.replace, std::move(*content)};
    } catch (const std::bad_alloc &) {
        read.status = fail(Code::limit, "the import is refused: the scheduler has no memory for it");
    }
    read.call = std::move(job.call);
    jobs.pop_front();
    if (jobs.empty()) of_user_.erase(last_);
    return read;
}

}  // namespace dcs::turn
