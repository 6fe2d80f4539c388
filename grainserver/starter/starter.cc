#include "grainserver/starter/starter.h"

#include <climits>
#include <csignal>

#include <fcntl.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/planted.h"
#include "grainserver/files/launcher_calls.h"
#include "grainserver/files/owner_rules.h"
#include "grainserver/files/room.h"
#include "grainserver/starter/grain_processes.h"

namespace dcs::starter {
namespace {

constexpr std::size_t name_max = NAME_MAX;

bool is_name(const std::string &name) {
    return !name.empty() && name.size() <= name_max && name[0] != '.' && name.find('/') == std::string::npos &&
           name.find('\0') == std::string::npos;
}

// Each field is used only by the requests that need it.
bool is_one(const Request &r) {
    if (r.ask < Ask::start || r.ask > Ask::last) return false;
    const bool starts = r.ask == Ask::start || r.ask == Ask::prove, orphan = r.ask == Ask::end_orphan;
    const bool leaf = r.ask == Ask::make_leaf || r.ask == Ask::seal_leaf || r.ask == Ask::remove_leaf;
    const bool signals = r.ask == Ask::signal || r.ask == Ask::signal_group;
    const bool process = signals || r.ask == Ask::mark || r.ask == Ask::lower;
    if (starts || r.ask == Ask::disk ? !is_name(r.dir) : !r.dir.empty() && !(orphan && is_name(r.dir))) return false;
    if (leaf ? !is_name(r.leaf) : !r.leaf.empty() && !((starts || orphan) && is_name(r.leaf))) return false;
    if (orphan && r.dir.empty() == r.leaf.empty()) return false;
    if (process ? r.pid <= 1 || r.pid > INT_MAX : r.pid != 0 && r.ask != Ask::clear) return false;
    if (signals && (r.number < 1 || r.number > 64)) return false;
    const bool numbers = starts || signals || r.ask == Ask::make_leaf || r.ask == Ask::disk;
    if (r.number < 0 || r.amount < 0 || (!numbers && r.number != 0)) return false;
    if (r.ask != Ask::signal && r.ask != Ask::make_leaf && r.amount != 0) return false;
    return r.list.empty() || ((starts || r.ask == Ask::disk || r.ask == Ask::make_leaf) && r.list.size() <= list_max);
}

constexpr int orphan_s = 10;           // until an orphan counts as one that cannot be killed
constexpr int names_at_a_time = 2000;  // of files

Status foreign(const std::string &what) {
    return fail(Code::refused, what + " is no grain's of this launcher, and is not touched");
}

}  // namespace

std::string to_packet(const Request &r) {
    ByteWriter w;
    w.u8(static_cast<std::uint8_t>(r.ask));
    w.text(r.dir);
    w.text(r.leaf);
    w.u32(r.pid);
    w.u64(static_cast<std::uint64_t>(r.number));
    w.u64(static_cast<std::uint64_t>(r.amount));
    for (const std::int32_t one : r.list) w.u32(static_cast<std::uint32_t>(one));
    return std::move(w.bytes());
}

std::optional<Request> read_request(std::string_view packet) {
    ByteReader r(packet);
    Request request;
    request.ask = static_cast<Ask>(r.u8());
    request.dir = r.text();
    request.leaf = r.text();
    request.pid = r.u32();
    request.number = static_cast<std::int64_t>(r.u64());
    request.amount = static_cast<std::int64_t>(r.u64());
    while (r.good() && !r.at_end() && request.list.size() <= list_max)
        request.list.push_back(static_cast<std::int32_t>(r.u32()));
    if (!r.at_end() || packet.size() > request_max || !is_one(request)) return {};
    return request;
}

std::string to_packet(const Answer &a) {
    ByteWriter w;
    w.u32(static_cast<std::uint32_t>(a.status.code));
    w.text(std::string_view(a.status ? a.text : a.status.text).substr(0, answer_max / 2));
    w.u64(static_cast<std::uint64_t>(a.value));
    w.u32(a.bits);
    w.u64(a.start_ticks);
    if (a.failure) {
        w.u32(static_cast<std::uint32_t>(a.failure->step));
        w.u32(static_cast<std::uint32_t>(a.failure->error));
        w.u32(static_cast<std::uint32_t>(a.failure->program));
    }
    return std::move(w.bytes());
}

std::optional<Answer> read_answer(std::string_view packet) {
    ByteReader r(packet);
    Answer a;
    const std::uint32_t code = r.u32();
    if (code > static_cast<std::uint32_t>(Code::last)) return {};
    a.status.code = static_cast<Code>(code);
    (a.status ? a.text : a.status.text) = r.text();
    a.value = static_cast<std::int64_t>(r.u64());
    a.bits = r.u32();
    a.start_ticks = r.u64();
    if (r.good() && !r.at_end()) {
        const std::uint32_t step = r.u32(), error = r.u32(), program = r.u32();
        if (step > static_cast<std::uint32_t>(Step::runner) ||
            program > static_cast<std::uint32_t>(There::script_with_cr))
            return {};
        a.failure = Failure{static_cast<Step>(step), static_cast<std::int32_t>(error), static_cast<There>(program)};
    }
    if (!r.at_end()) return {};
    return a;
}

Status Starter::open() {
    boot_id_ = boot_id();
    Result<Fd> base = open_directory(AT_FDCWD, directory_);
    if (!base) return base.status();
    base_ = std::move(*base);
    Result<Fd> grains = open_directory(base_.get(), files::grains_folder);
    if (!grains) return grains.status();
    grains_ = std::move(*grains);
    return Status::ok();
}

Answer Starter::answer(std::string_view packet, Fd &fd) {
    const auto request = read_request(packet);
    if (!request) return {.status = fail(Code::invalid, "the launcher's starter does not accept this request")};
    if (request->ask == Ask::start || request->ask == Ask::prove) return start(*request);
    Answer answer;
    filter_.without([&] { answer = other(*request, fd); });
    return answer;
}

Answer Starter::other(const Request &request, Fd &fd) {
    const auto only = [](const Status &s) { return Answer{.status = s}; };
    switch (request.ask) {
    case Ask::start:
    case Ask::prove: break;
    case Ask::signal: return only(send(request));
    case Ask::signal_group: return only(send_to_group(request));
    case Ask::mark: return mark(static_cast<pid_t>(request.pid));
    case Ask::lower: {
        const pid_t pid = static_cast<pid_t>(request.pid);
        if (!may_touch(pid)) return only(foreign("process " + std::to_string(pid)));
        return {Status::ok(), "", 0, !modest() || lower_session_priority(pid) ? is_lowered : 0, {}};
    }
    case Ask::make_leaf: return make_leaf(request);
    case Ask::seal_leaf: cgroups_.seal(request.leaf); return {};
    case Ask::remove_leaf: return only(remove_leaf(request.leaf));
    case Ask::remove_group: cgroups_.remove_group(); return {};
    case Ask::end_orphan: return only(end_orphan(request));
    case Ask::keeper: return keeper(fd);
    case Ask::clear: return clear(request.pid);
    case Ask::disk: return disk(request);
    }
    return only(fail(Code::invalid, "the launcher's starter does not know this request"));
}

bool Starter::is_account(uid_t uid) {
    const Result<const files::OwnerRules *> rules = prepared_.rules(base_.get());
    if (!rules) return false;
    if (!(*rules)->users) return uid == ::geteuid();
    if (accounts_.count(uid) != 0) return true;
    const files::Logins &logins = files::logins_of_this_host();
    const bool made_up = uid >= (*rules)->first && uid <= (*rules)->last;
    const auto name = logins.name_of(uid);
    const bool login = name && logins.login(**rules, *name);
    if (login || (made_up && !name)) accounts_.insert(uid);
    return login || (made_up && !name);
}

bool Starter::modest() {
    const Result<const files::OwnerRules *> rules = prepared_.rules(base_.get());
    return !rules || !(*rules)->ordinary_priority;
}

// Where grains have the server's account, what is theirs is what that account may touch.
bool Starter::may_touch(pid_t pid) {
    if (planted("starter.any_process")) return true;
    const Result<const files::OwnerRules *> rules = prepared_.rules(base_.get());
    if (!rules) return false;
    if (!(*rules)->users) return true;
    const auto uid = only_uid(pid);
    return uid && accounts_.count(*uid) != 0;
}

Status Starter::send(const Request &request) {
    ProcessStat process;
    process.pid = static_cast<pid_t>(request.pid);
    process.start_time = static_cast<std::uint64_t>(request.amount);
    bool allowed = true;
    signal_exactly(process, static_cast<int>(request.number), [&] { return allowed = may_touch(process.pid); });
    return allowed ? Status::ok() : foreign("process " + std::to_string(process.pid));
}

// The number of a group whose leader is a child of the launcher is not used again before the launcher has collected it.
Status Starter::send_to_group(const Request &request) {
    ProcessStat leader;
    const auto pid = static_cast<pid_t>(request.pid);
    if (!read_stat(pid, leader) || leader.parent != launcher_ || leader.session != pid || !may_touch(pid))
        return foreign("process group " + std::to_string(pid));
    ::kill(-pid, static_cast<int>(request.number));
    return Status::ok();
}

Answer Starter::mark(pid_t pid) {
    Answer answer;
    if (!may_touch(pid)) return answer;
    const std::string environment = environment_of(pid), start = cookie(directory_ + "/" + files::grains_folder);
    const std::string before = start.substr(0, start.rfind('/') + 1), after = std::string("/") + files::room_name;
    answer.bits = environment.empty() ? is_unclear : 0;
    for (std::size_t at = 0; at < environment.size(); at = environment.find('\0', at) + 1) {
        const std::string item = environment.c_str() + at;
        if (item.size() <= before.size() + after.size() || item.compare(0, before.size(), before) != 0) continue;
        if (item.compare(item.size() - after.size(), after.size(), after) != 0) continue;
        answer.text = item.substr(before.size(), item.size() - before.size() - after.size());
        break;
    }
    return answer;
}

Answer Starter::make_leaf(const Request &request) {
    files::Limits limits{.memory_mb = request.amount, .processes = request.number};
    Devices denied;
    for (std::size_t i = 0; i + 1 < request.list.size(); i += 2)
        denied.push_back(
            {static_cast<std::uint32_t>(request.list[i]), static_cast<std::uint32_t>(request.list[i + 1])});
    Leaf leaf = cgroups_.make(request.leaf, limits, denied);
    if (!leaf.there) return {.status = fail(Code::not_found, "there is no control group")};
    Answer answer{.bits = (leaf.memory ? limits_memory : 0) | (leaf.processes ? limits_processes : 0)};
    leaves_[request.leaf] = std::move(leaf);
    return answer;
}

Status Starter::remove_leaf(const std::string &name) {
    leaves_.erase(name);
    return cgroups_.remove(name) ? Status::ok() : fail(Code::refused, "processes are left in it");
}

Status Starter::end_orphan(const Request &request) {
    Orphan orphan{0, 0, directory_ + "/" + files::grains_folder + "/" + request.dir, request.leaf, {}};
    if (!request.dir.empty()) {
        const Result<Fd> grain = open_directory(grains_.get(), request.dir);
        if (!grain) return grain.status();
        orphan.account = account_of(grain->get());
        if (orphan.account && !is_account(*orphan.account))
            return fail(Code::refused, "its room belongs to uid " + std::to_string(*orphan.account) +
                                           ", under which the owner's rules permit no grain");
        const auto text = files::read_record(grain->get(), files::pid_name);
        if (const auto old = text ? files::parse_pid(*text) : Result<files::PidRecord>(text.status())) {
            orphan.pid = old->pid;
            orphan.start_time = old->start_time;
        }
    }
    // Those in a control group of this launcher are grains' under whatever account.
    const auto end = [&](const ProcessStat &process, int number) {
        signal_exactly(process, number, [&] { return !orphan.leaf.empty() || may_touch(process.pid); });
    };
    return kill_orphan(orphan, cgroups_, orphan_s, end) ? Status::ok()
                                                        : fail(Code::refused, "some of its processes cannot be killed");
}

Answer Starter::keeper(Fd &fd) {
    // The launcher may have collected the one before, and its number can be another process's.
    if (keeper_.pid > 0) signal_exactly(keeper_, SIGKILL);
    keeper_ = {};
    const Result<pid_t> pid =
        start_keeper(directory_ + "/" + files::grains_folder, cgroups_, launcher_ != ::getpid(), fd);
    if (!pid) return {.status = pid.status()};
    if (!read_stat(*pid, keeper_)) keeper_ = {};
    return {Status::ok(), "", *pid, 0, {}};
}

Answer Starter::clear(uid_t uid) {
    const Result<const files::OwnerRules *> rules = prepared_.rules(base_.get());
    const bool own = rules && (*rules)->users && uid >= (*rules)->first && uid <= (*rules)->last;
    if ((!own || accounts_.count(uid) == 0) && !planted("starter.clears_any"))
        return {.status = foreign("uid " + std::to_string(uid))};
    return {Status::ok(), "", static_cast<std::int64_t>(leftovers_.go_on(uid)), 0, {}};
}

Answer Starter::disk(const Request &request) {
    const Result<Fd> grain = open_directory(grains_.get(), request.dir);
    const Result<files::Room> room = grain ? files::open_room(grain->get()) : Result<files::Room>(grain.status());
    if (!room) {
        counts_.erase(request.dir);
        return {.status = room.status()};
    }
    std::vector<pid_t> processes;
    for (const std::int32_t pid : request.list)
        if (may_touch(pid)) processes.push_back(pid);
    Answer answer;
    const DiskUse::Nameless nameless = DiskUse::nameless(room->fd.get(), processes, DiskUse::places_max);
    answer.value = nameless.bytes;
    answer.bits = nameless.too_many ? too_many : 0;
    if (request.number != 0) return answer;
    DiskUse &count = counts_[request.dir];
    answer.value += count.look(room->fd.get(), names_at_a_time);
    answer.bits |= (count.too_deep() ? too_deep : 0) | (count.resting() ? 0 : has_more);
    if (count.resting()) counts_.erase(request.dir);
    return answer;
}

}  // namespace dcs::starter
