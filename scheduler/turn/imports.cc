#include "scheduler/turn/imports.h"

#include <algorithm>
#include <new>

namespace dcs::turn {
namespace {

// About five milliseconds of work: less than what others wait for a commit.
constexpr std::size_t slice_bytes = 256 * 1024;
// Decoded at the same time: what takes long leaves room beside it.
constexpr std::size_t away_at_once = 4;

}  // namespace

void Imports::begin(core::UserCall call, const wire::ImportSession &order, std::string stream) {
    const std::string user = call.caller.user;
    of_user_[user].push_back(Job{std::move(call), order, std::move(stream), 0, Status::ok(), std::nullopt});
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
        for (const Job &job : jobs) sum += job.stream.size() + (job.reader ? job.reader->held() : 0);
    for (const auto &[id, away] : away_) sum += away.bytes;
    return sum;
}

std::size_t Imports::of(const std::string &user) const {
    const auto found = of_user_.find(user);
    return found == of_user_.end() ? 0 : found->second.size();
}

// One of each user; who drops it and begins another one waits for it all the same.
bool Imports::may_leave(const std::string &user, const Job &job) const {
    return job.id == 0 && away_.size() < away_at_once &&
           std::none_of(away_.begin(), away_.end(), [&](const auto &entry) { return entry.second.user == user; });
}

bool Imports::idle() const {
    return std::none_of(of_user_.begin(), of_user_.end(), [&](const auto &entry) {
        return entry.second.front().came() || may_leave(entry.first, entry.second.front());
    });
}

void Imports::send_out(Outside &outside) {
    for (std::size_t users = of_user_.size(); users > 0; --users) {
        auto entry = of_user_.upper_bound(last_out_);
        if (entry == of_user_.end()) entry = of_user_.begin();
        last_out_ = entry->first;
        Job &job = entry->second.front();
        if (!may_leave(entry->first, job)) continue;
        job.id = ++last_id_;
        away_[job.id] = {entry->first, job.stream.size()};
        if (auto rows = outside.decode_import(job.id, std::exchange(job.stream, {}))) came(last_id_, std::move(*rows));
    }
}

void Imports::came(std::uint64_t id, Result<std::string> rows) {
    const auto found = away_.find(id);
    if (found == away_.end()) return;
    const auto jobs = of_user_.find(found->second.user);
    away_.erase(found);
    if (jobs == of_user_.end() || jobs->second.front().id != id) return;  // dropped in the meantime
    Job &job = jobs->second.front();
    job.status = rows.status();
    if (rows) job.reader.emplace(std::move(*rows), jobs->first);
}

const std::string &Imports::whose() const {
    static const std::string none;
    const auto came = [](const auto &entry) { return entry.second.front().came(); };
    auto next = std::find_if(of_user_.upper_bound(last_), of_user_.end(), came);
    if (next == of_user_.end()) next = std::find_if(of_user_.begin(), of_user_.end(), came);
    return next == of_user_.end() ? none : next->first;
}

Imports::Read Imports::result_of(Job &job, const core::State &state) {
    Read read;
    if (job.status) {
        auto content = job.reader->take(state);
        if (!content) read.status = content.status();
        else job.call.request = core::ImportSession{job.order.number, job.order.replace, std::move(*content)};
    } else {
        read.status = job.status;
    }
    return read;
}

std::optional<Imports::Read> Imports::next(const core::State &state, Contents &contents) {
    const std::string user = whose();
    if (user.empty()) return std::nullopt;
    last_ = user;
    std::deque<Job> &jobs = of_user_[user];
    Job &job = jobs.front();
    Read read;
    const Holder holder{state.stored, user, job.call.caller.privileged};
    try {
        if (job.status && job.reader->step(slice_bytes, holder, contents)) return std::nullopt;
        read = result_of(job, state);
    } catch (const std::bad_alloc &) {
        read.status = fail(Code::limit, "the import is refused: the scheduler has no memory for it");
    }
    read.call = std::move(job.call);
    jobs.pop_front();
    if (jobs.empty()) of_user_.erase(user);
    return read;
}

}  // namespace dcs::turn
