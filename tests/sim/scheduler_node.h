#pragma once
// The scheduler's process and machine: the real store on a simulated disk, the real Turn, and around it
// what the shell does (scheduler/shell/serve.cc): turns, commits elsewhere, idle flush and tidy.
#include <functional>
#include <memory>
#include <optional>

#include "scheduler/record/rebuild.h"
#include "scheduler/turn/turn.h"
#include "sim/links.h"
#include "sim/thread_time.h"

namespace dcs::sim {

// Sees what goes on in the scheduler (checkers/watch.h).
class SchedulerWatch {
public:
    virtual ~SchedulerWatch() = default;
    virtual void started(const core::State &state, store::Store &store) = 0;
    virtual void before_turn(const core::State &state) = 0;
    virtual void after_turn(const core::State &state, store::Store &store) = 0;
    virtual void sends(ConnId conn, const wire::AnyMessage &message, const core::State &state) = 0;
    virtual void hears(ConnId conn, const wire::FrameHeader &header) = 0;
    virtual void lost(const core::State &state, bool in_flight, std::uint64_t turn) = 0;
    virtual void paused(Duration length) = 0;
};

// The disk under it, of either kind.
class Medium {
public:
    virtual ~Medium() = default;
    virtual store::Disk &disk() = 0;
    virtual test::SimDisk *sim() = 0;                      // null: one that never fails
    virtual Duration spent() const { return Duration{}; }  // CPU time that is the simulation's, not the store's
};

class SchedulerNode final : public Handler, public Listener, public turn::Outside {
public:
    using HostTable = std::function<std::vector<core::HostConfig>()>;
    // `reachable`: does the host of this name answer when it is asked?
    using Reachable = std::function<bool(const std::string &name)>;
    SchedulerNode(Clock &clock, Medium &medium, HostTable hosts, Reachable reachable);
    ~SchedulerNode() override;
    void attach(Links &links, SchedulerWatch &watch) {
        links_ = &links;
        watch_ = &watch;
    }

    void start();
    // kill -9, or the machine loses its power; it starts again after `away`.
    void lose(bool power, Duration away);
    void pause(Duration length);
    void fill_disk(bool full);
    void fail_next_sync() { fail_sync_ = true; }
    void reread();
    bool runs() const { return turn_ != nullptr; }
    const core::State *state() const { return turn_ ? &turn_->state() : nullptr; }
    // Nothing is in flight: the store may be read.
    bool quiet() const { return turn_ && !busy() && !turn_->committing(); }
    store::Store *store() { return store_.get(); }
    Instant awake_since() const { return awake_since_; }
    Instant stopped_until() const { return stopped_until_; }
    Instant started_at() const { return started_at_; }

    struct Figures {
        std::uint64_t turns = 0, commits = 0, flushes = 0, starts = 0, frames_in = 0, frames_out = 0, refused = 0,
                      doubts = 0;
        std::uint64_t call_ins = 0, launches = 0;
        Duration cpu{}, commit_cpu{};  // the second one: of what was committed
    };
    Figures figures;

private:
    enum What : std::uint32_t { wake, stored, start_again, go_on, probed, job_done };

    // Handler, Listener
    void happen(std::uint32_t what, std::uint64_t arg) override;
    bool listening() const override;
    void opened(ConnId conn, turn::Door door, const std::string &user) override;
    void frame(ConnId conn, std::string bytes) override;
    void closed(ConnId conn, const std::string &why) override;
    // turn::Outside
    Instant now() override { return clock_.now; }
    std::int64_t wall_s() override { return 1'700'000'000 + clock_.now.ns / 1'000'000'000; }
    Token fresh_token() override;
    void send(ConnId conn, const wire::AnyMessage &message, core::RequestId request) override;
    void close(ConnId conn) override { links_->close_server(conn); }
    void log(turn::Level level, const std::string &line) override;
    void start_commit(std::vector<store::TreeUpdate> updates, store::Room room) override;
    void start_library_job(library::Job job) override;
    void probe(const core::ProbeHost &probe) override;
    void fatal(const std::string &why) override;

    void take(turn::Arrival arrival);
    void step();
    void go_on_working();
    void run_turns();
    void be_idle();
    void storage_answered();
    void library_answered();
    void schedule();
    void sleep_until(Instant at);
    bool busy() const { return job_.has_value() || flushing_; }
    bool may_flush() const;
    void crash_disk(bool power);
    Status recover();

    Clock &clock_;
    Medium &medium_;
    HostTable hosts_;
    Reachable reachable_;
    std::deque<core::ProbeHost> probes_;     // under way, in the order in which they are answered
    std::deque<library::Job> library_jobs_;  // one after the other
    Links *links_ = nullptr;
    SchedulerWatch *watch_ = nullptr;
    Random random_;
    std::unique_ptr<store::Store> store_;
    std::unique_ptr<turn::Turn> turn_;
    std::optional<std::vector<store::TreeUpdate>> job_;
    store::Room room_ = store::Room::ordinary;
    bool flushing_ = false, tidying_ = false, died_ = false, fail_sync_ = false, full_ = false;
    std::uint64_t committed_turn_ = 0;
    std::uint64_t life_ = 0;  // counts processes: what was meant for an earlier one is dropped
    Instant last_activity_{}, last_tidy_{}, flush_not_before_{}, wake_at_ = Instant::never();
    Instant stopped_until_{}, awake_since_{}, started_at_{};
    std::vector<turn::Arrival> inbox_;  // while it is stopped
    int waiting_ = 0;                   // connections among them
};

}  // namespace dcs::sim
