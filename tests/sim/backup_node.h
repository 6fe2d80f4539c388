#pragma once
// The passive backup's process and machine: its real turn and store, on a simulated disk. Servers come through Links of
// its own, so that each pair of scheduler, backup and host can be parted; to the scheduler it is one more peer.
#include <memory>
#include <optional>

#include "backupd/turn/turn.h"
#include "sim/links.h"
#include "sim/scheduler_node.h"
#include "support/sim_disk.h"

namespace dcs::sim {

class BackupNode final : public Handler, public Listener, public Peer, public backup::Outside {
public:
    BackupNode(Clock &clock, Links &to_scheduler, int site);
    void attach(Links &servers) { servers_ = &servers; }

    void start();
    // kill -9, or its machine loses its power; with `wipe` its disk is a new one. It starts again after `away`.
    void lose(bool power, bool wipe, Duration away);
    void fill_disk(bool full);
    const backup::State *state() const { return turn_ ? &turn_->state() : nullptr; }
    const backup::State *committed() const { return turn_ && !turn_->committing() ? &turn_->state() : nullptr; }
    int site() const { return site_; }

    std::uint64_t handed_over() const { return before_ + (turn_ ? turn_->state().counters.handed_over : 0); }

private:
    enum What : std::uint32_t { wake, stored, start_again };
    // Handler, Listener, Peer
    void happen(std::uint32_t what, std::uint64_t arg) override;
    bool listening() const override { return turn_ != nullptr; }
    void opened(ConnId conn, turn::Door door, const std::string &user) override;
    void frame(ConnId conn, std::string bytes) override { take_frame(conn, std::move(bytes)); }
    void closed(ConnId conn, const std::string &why) override;
    void link_opened(ConnId conn) override;
    void link_frame(ConnId conn, std::string bytes) override;
    void link_closed(ConnId conn, const std::string &why) override;
    // backup::Outside
    Instant now() override { return clock_.now; }
    double jitter() override { return static_cast<double>(random_.below(1000)) / 1000.0; }
    void send(ConnId conn, const wire::AnyMessage &message, std::uint64_t request) override;
    void close(ConnId conn) override;
    Result<ConnId> connect() override;
    void save(const backup::Members &) override {}  // all are on one host here
    void renewed(const wire::Renewed &) override {}
    void log(backup::Level level, const std::string &line) override;
    void start_commit(std::vector<store::TreeUpdate> updates, store::Room room) override;
    void fatal(const std::string &why) override;

    Status recover();
    void take(backup::Arrival arrival);
    void take_frame(ConnId conn, std::string bytes);
    void go_on();
    void storage_answered();
    void crash_disk(bool power);

    Clock &clock_;
    Links &up_;
    Links *servers_ = nullptr;
    const int site_;
    Random random_;
    test::SimDisk disk_;
    std::unique_ptr<store::Store> store_;
    std::unique_ptr<backup::Turn> turn_;
    std::optional<std::vector<store::TreeUpdate>> job_;
    store::Room room_ = store::Room::ordinary;
    ConnId scheduler_{};
    std::uint64_t before_ = 0;  // handed over by earlier processes
    bool full_ = false;
    std::uint64_t life_ = 0;
    Instant wake_at_ = Instant::never();
};

}  // namespace dcs::sim
