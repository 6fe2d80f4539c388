#pragma once
// A machine of the pool: the grains' directories (data that outlives everything but the removal), the
// launcher with its processes, and what the owner, the disk and the power supply do.
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "base/resources.h"
#include "grainserver/core/step.h"
#include "sim/clock.h"
#include "sim/grain_model.h"

namespace dcs::sim {

// What lies in the directory of one lease.
struct Directory {
    wire::Launch launch;  // without its input
    std::string input;
    std::uint64_t boot = 0;  // in which it was made
    bool has_pid = false, announced = false;
    Instant started{};
    std::uint32_t acked = 0;
    server::Ending ending = server::Ending::none;
    std::string reason;
    std::int32_t limit_signal = 0;
    wire::GivenBack given_back = wire::GivenBack::no;
    std::optional<server::ExitFacts> exit;
    std::map<std::uint32_t, Written> increments;
    std::map<std::uint32_t, std::string> checkpoints;
    bool placed = true;                                   // its files are in their places
    std::optional<std::vector<wire::GrainFile>> outputs;  // kept in the library
};

struct Process {
    std::uint64_t number = 0;
    server::GrainId id;
    Model model;
    Run run;
    int first_step = 0, end_step = 0;
    int code = 0, signal = 0;  // how it will end
    std::uint32_t sequence = 1;
    std::int64_t cpu_ns = 0, signalled_ns = -1;
    Instant since{}, begun{};
    bool orphan = false;  // its launcher is dead
    GivenResources resources;
};

// Sees processes begin (checkers/leases.h).
class ProcessWatch {
public:
    virtual ~ProcessWatch() = default;
    virtual void process_begins(int host, const Process &process, const std::map<server::GrainId, Process> &on_host,
                                std::int32_t slots) = 0;
};

class Host final : public Handler {
public:
    // What the launcher says, in order.
    struct Answer {
        enum class Kind : std::uint8_t { up, proved, started, have, failed, recalled, exited, down } kind = Kind::up;
        server::GrainId id;
        Code code = Code::ok;
        bool again = false;
        std::string text;
    };
    class Listener {
    public:
        virtual ~Listener() = default;
        virtual void launcher_says(Answer answer) = 0;
    };

    Host(Clock &clock, ProcessWatch &watch, int number, int site, std::int32_t cpus);
    void attach(Listener *server) { server_ = server; }

    // ---- calls of the server to the launcher ----
    void prove(const server::GrainId &id);  // could it be started?
    void start(const server::GrainId &id, std::int32_t slots);
    // As a launcher with a queue: it starts when there is a slot, or is given back.
    void queue(const server::GrainId &id, bool first, std::int32_t slots);
    void recall(const server::GrainId &id);
    void forget_queue() { waiting_.clear(); }  // the server that filled it has ended
    void signal(const server::GrainId &id);
    void terminate(const server::GrainId &id);
    void kill(const server::GrainId &id);

    // ---- faults ----
    void kill_launcher();
    void power_off();  // processes end without a trace
    void power_on() {
        on_ = true;
        ++boot_;
        launcher_ = true;
    }
    void stop(bool on);  // the whole machine is suspended
    // A little, so that grains are slow; on all cores; or with all the memory.
    enum class Owner : std::uint8_t { works, takes_cores, takes_memory };
    void owner_comes(Owner how);
    void owner_leaves(Owner how);
    void fill_disk(bool on);
    void hide_programs(bool on) { hidden_ += on ? 1 : -1; }
    void make_bad(bool on) { bad_ += on ? 1 : -1; }

    // Brings a directory up to this moment.
    void bring_up(const server::GrainId &id);
    wire::Usage usage(const server::GrainId &id) const;
    // What the server sees of the machine and of a grain when it watches.
    server::HostSample host_sample();
    server::GrainSample grain_sample(const server::GrainId &id) const;
    double load() const;
    static constexpr std::int64_t memory_kb = 4 * 1024 * 1024;
    std::int64_t free_memory_kb() const;
    bool on() const { return on_; }
    bool stopped() const { return stopped_ > 0; }
    bool launcher_up() const { return launcher_; }
    bool disk_full() const { return full_ > 0; }
    std::uint64_t boot() const { return boot_; }
    const std::map<server::GrainId, Process> &processes() const { return processes_; }

    const int number, site;
    const std::string name;
    std::map<server::GrainId, Directory> directories;
    std::map<std::string, std::string> library;  // contents by digest; survives the server

private:
    enum What : std::uint32_t { due, bury };
    void happen(std::uint32_t what, std::uint64_t arg) override;
    void answer(Answer answer);
    void start_waiting();
    Result<GivenResources> given_to(const Directory &dir) const;
    // The directory from which it can be started; otherwise the answer says why not.
    Directory *ready(Answer &answer);
    void run_to_now(Process &p);
    void take_step(Process &p, Directory &dir);
    void take_checkpoint(Process &p, Directory &dir, std::int64_t at_ns);
    void plan_end(const Process &p);
    void end(const server::GrainId &id, int code, int signal);
    void bury_the_dead();
    void all_to_now();
    void plan_all();
    std::int64_t speed() const;  // thousandths of a CPU for each process
    void count_owner();
    bool owner_is_here() const { return owner_[0] + owner_[1] + owner_[2] > 0; }
    bool cannot_write(const Process &p) const { return full_ > 0 && p.run.step < p.end_step; }

    Clock &clock_;
    ProcessWatch &watch_;
    Listener *server_ = nullptr;
    std::int32_t cpus_;
    std::deque<server::GrainId> waiting_;
    std::int32_t slots_ = 0;  // as of the last grain that was queued
    bool on_ = true, launcher_ = true;
    int stopped_ = 0, full_ = 0, hidden_ = 0, bad_ = 0;
    int owner_[3] = {0, 0, 0};                  // by how
    std::int64_t owner_ns_ = 0, ended_ns_ = 0;  // processor time: the owner's; of grains that ended
    Instant owner_since_{};
    std::uint64_t boot_ = 1, next_number_ = 1;
    std::map<server::GrainId, Process> processes_;
};

std::string host_name(int number);

}  // namespace dcs::sim
