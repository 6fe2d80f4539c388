#pragma once
// A real scheduler turn over the real store on a simulated disk, and around it control programs,
// grain servers and a clock that are a few lines each. The world can be copied onto what a crash
// left of the disk: its inhabitants notice a broken link, call again and repeat what was not
// answered.
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "crash/scheduler/ledger.h"
#include "scheduler/record/rebuild.h"
#include "scheduler/turn/turn.h"
#include "support/sim_disk.h"

namespace dcs::test {

struct Control {
    std::string user, ident;
    ConnId conn{};
    std::string token;
    std::map<std::uint64_t, wire::AnyMessage> unanswered;
};

struct Server {
    struct Held {
        Incarnation incarnation = 0;
        std::uint32_t sequence = 0;               // last increment that was acknowledged
        std::uint64_t position = 0, end = 0;      // in the original input
        std::optional<wire::GrainReport> report;  // not acknowledged yet
    };
    std::string name;
    ConnId conn{};
    std::map<GrainKey, Held> held;
};

// Hands over reports of servers one after the other: each again, under its number, until it is taken.
struct Backup {
    ConnId conn{};
    std::map<std::string, std::uint64_t> numbers;  // the last one of each host
    std::optional<wire::HandOver> unanswered;
};

// Each caller but the scheduler.
struct Inhabitants {
    std::vector<Control> controls;
    std::vector<Server> servers;
    Backup backup;
    std::set<std::string> unlisted;  // hosts read out of the host table
    std::uint64_t next_request = 1;
    std::uint64_t next_conn = 1;
    std::uint8_t tokens = 0;
    Instant clock{seconds(1000).ns};
    Ledger ledger;
};

// What happened, to know that the workload is worth something.
struct Counts {
    std::uint64_t turns = 0, flushes = 0, compactions = 0, own_trees = 0, removed = 0, big_nodes = 0, in_flight = 0,
                  refused = 0, doubts = 0, restarts = 0, results = 0, kills = 0, launches = 0, packed = 0,
                  with_reserve = 0, batches = 0, handed_over = 0;
    std::map<std::string, std::uint64_t> trees;  // updates by template
    void add(const Counts &other);
};

class World final : public turn::Outside {
public:
    World(store::StoreOptions options, std::uint64_t seed);
    // The process was lost at some point of `from`, whose durable State was `known`; `disk` is what is
    // left, recovered or not.
    World(const World &from, SimDisk disk, SnapshotPtr known, std::uint64_t seed);
    World(const World &) = delete;

    // Starts the scheduler on the disk, which must be at `low` or `high`. False: `wrong` says why not.
    bool start();
    // Something arrives; one turn, its commit, and what it sends.
    void step();
    // The process is killed, or the power fails and nothing unsynced is left; then it starts again.
    void restart(bool power_failure);
    // One session's log is made so long that it is renewed soon.
    void grow_a_log();

    SimDisk disk;
    std::function<void()> watch;  // called at every crash point
    // The durable State after the last acknowledged turn, and after the one that is being committed.
    SnapshotPtr low, high;
    Inhabitants people;
    Counts counts;
    std::string wrong;
    const store::StoreOptions options;

private:
    friend class Workload;
    // turn::Outside
    Instant now() override { return people.clock; }
    TlsDoor tls_door() override { return {"pool:7001", std::string(64, 'a')}; }
    std::int64_t wall_s() override { return 1'000'000'000; }
    Token fresh_token() override;
    void send(ConnId conn, const wire::AnyMessage &message, core::RequestId request) override;
    void close(ConnId conn) override;
    void log(turn::Level, const std::string &) override {}
    void start_commit(std::vector<store::TreeUpdate> updates, store::Room room) override {
        job_ = std::move(updates);
        room_ = room;
    }
    void start_library_job(library::Job) override { complain("a job of the library, though there are no contents"); }
    void fatal(const std::string &) override { died_ = true; }

    void complain(const std::string &what);
    void look();
    void run_turns();
    void commit();
    void count(const std::vector<store::TreeUpdate> &updates);
    bool make_trouble();
    void die(const std::vector<store::TreeUpdate> &updates, const store::CommitResult &result, bool trouble);
    void lose_scheduler();

    // What the inhabitants do (clients.cc).
    ConnId connect(turn::Door door, const std::string &user);
    void post(ConnId conn, const std::string &who, const wire::AnyMessage &message, std::uint64_t request);
    void connect_control(Control &control);
    void connect_server(Server &server);
    void forget(Server &server);
    void hang_up(ConnId &conn);
    void call(Control &control, const wire::AnyMessage &message);
    void report(Server &server, const GrainKey &key, Server::Held &held, wire::GrainReport report);
    // The server's report goes by the backup; and whatever the backup has not got rid of, again.
    void hand_over(Server &server, const Server::Held &held);
    void read_taken(const wire::HandOverTaken &taken);
    void deliver();
    void read_reply(Control &control, std::uint64_t request, const wire::AnyMessage &message);
    void read_message(Server &server, const wire::AnyMessage &message);
    void read_ack(Server &server, const wire::ReportAck &ack);
    void read_launch(Server &server, const wire::Launch &launch);
    std::vector<core::HostConfig> host_table() const;

    struct Sent {
        ConnId conn{};
        std::uint64_t request = 0;
        wire::AnyMessage message;
    };
    Random random_;
    std::unique_ptr<store::Store> store_;
    std::unique_ptr<turn::Turn> turn_;
    std::optional<std::vector<store::TreeUpdate>> job_;
    store::Room room_ = store::Room::ordinary;
    std::deque<Sent> sent_;
    bool died_ = false;
    bool trouble_lasts_ = false;  // the disk is still full for the commit that follows a refused one
    bool quiet_ = false;          // nothing happens by chance
    bool forgetful_ = false;      // h3 goes on forgetting
};

// What the inhabitants want next: one action drawn from all that the system offers.
class Workload {
public:
    explicit Workload(World &world) : w_(world), random_(world.random_) {}
    void act();

private:
    void control_acts();
    void operator_acts(Control &control);
    void wait(Control &control, std::int32_t session);
    void submit(Control &control, std::int32_t session, GrainNumber first);
    void server_acts();
    void time_passes();
    void change_host_table();
    wire::GrainSpec spec(const Control &control, std::int32_t session, GrainNumber number);
    wire::GrainReport progress(const GrainKey &key, const Server::Held &held);
    void end(Server &server, const GrainKey &key, Server::Held &held);

    World &w_;
    Random &random_;
};

}  // namespace dcs::test
