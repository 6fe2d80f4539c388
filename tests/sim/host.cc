#include "sim/host.h"

#include <algorithm>

namespace dcs::sim {
namespace {

constexpr std::uint32_t host_mark = 0x4854;
constexpr int exit_write_error = 74;  // D_EXIT_WRITE_ERROR of grainlib.h
constexpr Duration launcher_restart = seconds(2);
constexpr std::int64_t process_kb = 100 * 1024;

}  // namespace

std::string host_name(int number) {
    std::string digits = std::to_string(number);
    return "h" + std::string(digits.size() < 5 ? 5 - digits.size() : 0, '0') + digits;
}

Host::Host(Clock &clock, ProcessWatch &watch, int n, int at, std::int32_t cpus)
    : number(n), site(at), name(host_name(n)), clock_(clock), watch_(watch), cpus_(cpus) {}

// ---- processes ----------------------------------------------------------------------------

std::int64_t Host::speed() const {
    if (stopped_ > 0) return 0;
    const auto n = static_cast<std::int64_t>(processes_.size());
    const std::int64_t each = n <= cpus_ ? 1000 : 1000 * cpus_ / n;
    if (owner_[static_cast<int>(Owner::takes_cores)] > 0) return std::max<std::int64_t>(each / 50, 1);
    return owner_is_here() ? each / 4 : each;
}

void Host::run_to_now(Process &p) {
    const auto dir = directories.find(p.id);
    if (dir == directories.end()) return;  // removed under it: it writes into nothing
    p.cpu_ns += (clock_.now - p.since).ns * speed() / 1000;
    p.since = clock_.now;
    const std::int64_t step_ns = p.model.step_us * 1000;
    while (p.run.step < p.end_step && full_ == 0) {
        const std::int64_t boundary = (p.run.step - p.first_step + 1) * step_ns;
        if (boundary > p.cpu_ns) return;
        take_step(p, dir->second);
        const bool own = p.model.own_checkpoint_every > 0 && p.run.step % p.model.own_checkpoint_every == 0;
        const bool asked = p.signalled_ns >= 0 && p.signalled_ns <= boundary;
        if (p.model.announces && (own || (asked && !p.model.deaf)) && p.run.step < p.end_step)
            take_checkpoint(p, dir->second, boundary);
    }
}

void Host::take_step(Process &p, Directory &dir) {
    Written &w = dir.increments[p.sequence];
    advance(p.model, dir.input, p.run, w.out, w.err);
}

void Host::take_checkpoint(Process &p, Directory &dir, std::int64_t at_ns) {
    p.signalled_ns = -1;
    while (!dir.checkpoints.empty() && dir.checkpoints.begin()->first + 1 < p.sequence)
        dir.checkpoints.erase(dir.checkpoints.begin());
    dir.checkpoints[p.sequence] = checkpoint_file(mark(p.model, dir.input, p.run), at_ns / 1000);
    dir.increments[++p.sequence];
}

// When nothing changes until then, it ends there.
void Host::plan_end(const Process &p) {
    const std::int64_t now_speed = speed();
    if (now_speed == 0) return;
    if (cannot_write(p) && !p.model.announces) return;
    const int last = cannot_write(p) ? p.run.step + 1 : p.end_step;
    const std::int64_t needed = std::int64_t{last - p.first_step} * p.model.step_us * 1000 - p.cpu_ns;
    const std::int64_t wait = needed <= 0 ? 0 : (needed * 1000 + now_speed - 1) / now_speed;
    clock_.put(clock_.now + Duration{wait + 1'000'000}, this, host_mark, due, p.number);
}

void Host::all_to_now() {
    for (auto &[id, p] : processes_) run_to_now(p);
}

void Host::plan_all() {
    for (const auto &[id, p] : processes_) plan_end(p);
}

void Host::happen(std::uint32_t what, std::uint64_t arg) {
    if (what == bury) {  // the next launcher ends what the dead one left
        if (!on_ || launcher_ || arg != boot_) return;
        bury_the_dead();
        launcher_ = true;
        if (clock_.tracing) clock_.note(name + ": a new launcher has buried the dead");
        return answer(Answer{});
    }
    const auto p = std::find_if(processes_.begin(), processes_.end(),
                                [&](const auto &entry) { return entry.second.number == arg; });
    if (p == processes_.end() || stopped_ > 0) return;
    run_to_now(p->second);
    const Process &process = p->second;
    const server::GrainId id = process.id;
    if (cannot_write(process)) {
        if (!process.model.announces) return;  // tries until there is room: 74 would be its own result
        const std::int64_t next = (process.run.step - process.first_step + 1) * process.model.step_us * 1000;
        if (process.cpu_ns >= next) return end(id, exit_write_error, 0);
        return;
    }
    if (process.run.step >= process.end_step &&
        process.cpu_ns >= std::int64_t{process.end_step - process.first_step} * process.model.step_us * 1000)
        return end(id, process.code, process.signal);
    const std::int64_t left =
        std::int64_t{process.end_step - process.first_step} * process.model.step_us * 1000 - process.cpu_ns;
    if (left < 1'000'000) plan_end(process);  // what rounding took
}

void Host::bury_the_dead() {
    processes_.clear();
    for (auto &[id, dir] : directories) {
        if (!dir.has_pid || dir.exit || dir.boot != boot_) continue;
        dir.exit.emplace();
        dir.exit->innocent = true;
        dir.exit->reason = "the launcher of this host died while the grain ran";
    }
}

void Host::end(const server::GrainId &id, int code, int signal) {
    const auto p = processes_.find(id);
    if (p == processes_.end()) return;
    all_to_now();
    const std::int64_t cpu_us = p->second.cpu_ns / 1000;
    ended_ns_ += p->second.cpu_ns;
    const bool orphan = p->second.orphan;
    processes_.erase(p);
    plan_all();
    if (clock_.tracing)
        clock_.note(name + ": " + server::to_text(id) + " ended, code " + std::to_string(code) + ", signal " +
                    std::to_string(signal));
    const auto dir = directories.find(id);
    if (dir != directories.end() && !orphan) {
        server::ExitFacts exit;
        exit.known = true;
        exit.code = code;
        exit.signal = signal;
        exit.usage.user_us = cpu_us;
        dir->second.exit = exit;
    }
    if (!orphan) answer(Answer{Answer::Kind::exited, id, Code::ok, false, {}});
    start_waiting();
}

void Host::answer(Answer a) {
    if (server_) server_->launcher_says(std::move(a));
}

// ---- calls --------------------------------------------------------------------------------

Directory *Host::ready(Answer &a) {
    a.kind = Answer::Kind::failed;
    a.code = Code::io_error;
    const auto found = directories.find(a.id);
    if (found == directories.end()) {
        a.text = "no directory";
        return nullptr;
    }
    if (found->second.has_pid || found->second.exit) {
        a.kind = Answer::Kind::have;
        return nullptr;
    }
    return &found->second;
}

void Host::prove(const server::GrainId &id) {
    if (!launcher_) return;
    Answer a;
    a.id = id;
    if (ready(a)) {
        a.kind = hidden_ > 0 ? Answer::Kind::failed : Answer::Kind::proved;
        a.code = hidden_ > 0 ? Code::not_found : Code::ok;
    }
    if (a.kind == Answer::Kind::have) a.kind = Answer::Kind::proved;  // as the launcher answers
    answer(std::move(a));
}

void Host::start(const server::GrainId &id, std::int32_t slots) {
    if (!launcher_) return;
    Answer a;
    a.id = id;
    Directory *found = ready(a);
    if (!found) return answer(std::move(a));
    Directory &dir = *found;
    a.kind = Answer::Kind::failed;
    if (processes_.size() >= static_cast<std::size_t>(std::max(slots, 0))) {
        a.code = Code::limit;
        a.again = true;
        a.text = "no slot is free";
        return answer(std::move(a));
    }
    if (hidden_ > 0) {
        a.code = Code::not_found;
        a.text = "no such program";
        return answer(std::move(a));
    }
    Result<GivenResources> given = given_to(dir);
    if (!given) {
        a.code = Code::limit;
        a.again = true;
        a.text = given.status().text;
        return answer(std::move(a));
    }
    all_to_now();
    Process p;
    p.resources = std::move(*given);
    p.number = next_number_++;
    p.id = id;
    p.model = model_of(dir.launch.argv.size() > 1 ? dir.launch.argv[1] : std::string());
    p.run = begin(p.model, dir.input);
    p.first_step = p.run.step;
    p.end_step = p.model.fail_at >= 0 ? p.model.fail_at : p.model.steps;
    p.code = p.model.fail_at >= 0 ? p.model.fail_code : 0;
    p.signal = p.model.fail_at >= 0 ? p.model.fail_signal : 0;
    const int bad_end = p.first_step + static_cast<int>(mix(p.model.seed, boot_) % 3);
    if (bad_ > 0 && bad_end < p.end_step) {
        p.end_step = bad_end;
        p.code = exit_bad_host;
        p.signal = 0;
    }
    p.sequence = dir.launch.next_seq;
    p.since = p.begun = clock_.now;
    dir.has_pid = true;
    dir.started = clock_.now;
    dir.announced = p.model.announces;
    dir.increments[p.sequence];
    const Process &running = processes_.emplace(id, std::move(p)).first->second;
    watch_.process_begins(number, running, processes_, slots);
    if (clock_.tracing)
        clock_.note(name + ": " + server::to_text(id) + " runs from step " + std::to_string(running.run.step));
    plan_all();
    a.kind = Answer::Kind::started;
    a.code = Code::ok;
    answer(std::move(a));
}

void Host::queue(const server::GrainId &id, bool first, std::int32_t slots) {
    if (!launcher_) return;
    slots_ = slots;
    const bool waits = std::count(waiting_.begin(), waiting_.end(), id) != 0;
    if (!waits && first) waiting_.push_front(id);
    if (!waits && !first) waiting_.push_back(id);
    start_waiting();
}

void Host::start_waiting() {
    for (std::size_t i = 0; launcher_ && i < waiting_.size();) {
        if (processes_.size() >= static_cast<std::size_t>(std::max(slots_, 0))) return;
        const server::GrainId next = waiting_[i];
        const auto dir = directories.find(next);
        if (dir != directories.end() && !given_to(dir->second)) {  // it keeps its place
            ++i;
            continue;
        }
        waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
        start(next, slots_);
    }
}

Result<GivenResources> Host::given_to(const Directory &dir) const {
    std::vector<const Indices *> taken;
    for (const auto &[id, process] : processes_) taken.push_back(&process.resources.indices);
    return given_of(dir.launch.demands.resources, dir.launch.offers, taken);
}

void Host::recall(const server::GrainId &id) {
    if (!launcher_) return;
    Answer a;
    a.id = id;
    const auto found = directories.find(id);
    const bool waits = std::erase(waiting_, id) != 0;
    const bool has_run = found != directories.end() && (found->second.has_pid || found->second.exit);
    a.kind = !waits && has_run ? Answer::Kind::have : Answer::Kind::recalled;
    answer(std::move(a));
}

void Host::signal(const server::GrainId &id) {
    const auto p = processes_.find(id);
    if (!launcher_ || p == processes_.end()) return;
    run_to_now(p->second);
    if (p->second.signalled_ns < 0) p->second.signalled_ns = p->second.cpu_ns;
}

void Host::terminate(const server::GrainId &id) {
    const auto p = processes_.find(id);
    if (launcher_ && p != processes_.end() && !p->second.model.stubborn) end(id, 0, 15);
}

void Host::kill(const server::GrainId &id) {
    if (launcher_) end(id, 0, 9);
}

void Host::bring_up(const server::GrainId &id) {
    if (const auto p = processes_.find(id); p != processes_.end()) run_to_now(p->second);
}

wire::Usage Host::usage(const server::GrainId &id) const {
    wire::Usage usage;
    if (const auto p = processes_.find(id); p != processes_.end()) usage.user_us = p->second.cpu_ns / 1000;
    return usage;
}

double Host::load() const { return static_cast<double>(processes_.size()) + (owner_is_here() ? 8.0 : 0.0); }

std::int64_t Host::free_memory_kb() const {
    // On every other host so much that there is no time for a checkpoint.
    if (owner_[static_cast<int>(Owner::takes_memory)] > 0) return (number % 2 == 0 ? 200 : 100) * 1024;
    return (owner_is_here() ? 2 : 4) * 1024 * 1024 - process_kb * static_cast<std::int64_t>(processes_.size());
}

void Host::count_owner() {
    if (owner_[static_cast<int>(Owner::takes_cores)] > 0) owner_ns_ += (clock_.now - owner_since_).ns * cpus_;
    owner_since_ = clock_.now;
}

server::HostSample Host::host_sample() {
    count_owner();
    server::HostSample sample;
    sample.cores = cpus_;
    sample.total_us = clock_.now.ns / 1000 * cpus_;
    std::int64_t grains_ns = ended_ns_;
    for (const auto &[id, p] : processes_) grains_ns += p.cpu_ns;
    sample.busy_us = (owner_ns_ + grains_ns) / 1000;
    sample.yielding_us = grains_ns / 1000;
    sample.stalled_us = 0;
    sample.memory_kb = memory_kb;
    sample.free_kb = free_memory_kb();
    return sample;
}

// Programs of the simulation always want a processor.
server::GrainSample Host::grain_sample(const server::GrainId &id) const {
    server::GrainSample sample;
    const auto p = processes_.find(id);
    if (p == processes_.end()) return sample;
    sample.cpu_us = p->second.cpu_ns / 1000;
    sample.waited_us = (clock_.now - p->second.begun).ns / 1000 - sample.cpu_us;
    sample.ready = true;
    sample.memory_kb = process_kb;
    return sample;
}

// ---- faults -------------------------------------------------------------------------------

void Host::kill_launcher() {
    if (!on_ || !launcher_) return;
    launcher_ = false;
    waiting_.clear();
    for (auto &[id, p] : processes_) p.orphan = true;
    if (server_) server_->launcher_says(Answer{Answer::Kind::down, {}, Code::ok, false, {}});
    clock_.put(clock_.now + launcher_restart, this, host_mark, bury, boot_);
}

void Host::power_off() {
    on_ = launcher_ = false;
    waiting_.clear();
    all_to_now();
    processes_.clear();
}

void Host::stop(bool on) {
    all_to_now();
    stopped_ += on ? 1 : -1;
    if (stopped_ == 0) plan_all();
}

void Host::owner_comes(Owner how) {
    all_to_now();
    count_owner();
    owner_[static_cast<int>(how)] += 1;
    plan_all();
}

void Host::owner_leaves(Owner how) {
    all_to_now();
    count_owner();
    owner_[static_cast<int>(how)] -= 1;
    plan_all();
}

void Host::fill_disk(bool on) {
    all_to_now();
    full_ += on ? 1 : -1;
    plan_all();
}

}  // namespace dcs::sim
