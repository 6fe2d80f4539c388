#include "sim/backup_node.h"

#include <algorithm>

#include "base/limits.h"

namespace dcs::sim {
namespace {
constexpr std::uint32_t backup_mark = 0x424b;
}

BackupNode::BackupNode(Clock &clock, Links &to_scheduler, int site)
    : clock_(clock), up_(to_scheduler), site_(site), random_(random_for(clock.plan.seed, "backup")) {}

Status BackupNode::recover() {
    store::RecoveryReport report;
    auto opened = store::Store::open(disk_, backup::record::forest(), clock_.plan.store, &report);
    if (!opened) return opened.status();
    store_ = std::move(*opened);
    if (!report.damaged.empty()) return fail(Code::io_error, report.damaged[0].path + ": " + report.damaged[0].what);
    auto rebuilt = backup::record::rebuild(*store_);
    if (!rebuilt) return rebuilt.status();
    if (!rebuilt->reports.empty()) return fail(Code::io_error, rebuilt->reports[0]);
    backup::State state = std::move(rebuilt->state);
    state.started = clock_.now;
    state.most_bytes = clock_.plan.backup_bytes;
    if (state.store == 0) {
        state.store = random_.next() | 1;
        const auto named = store_->commit({backup::record::name_store(state.store)});
        if (named.answer != store::Answer::done) return named.status;
    }
    turn_ = std::make_unique<backup::Turn>(std::move(state), *store_, *this);
    return Status::ok();
}

void BackupNode::start() {
    ++life_;
    wake_at_ = Instant::never();
    disk_.set_capacity(~0ull);  // on a full disk it may not come up; that it says so is not of interest here
    if (Status s = recover(); !s) return clock_.complain("backup's recovery", s.text);
    fill_disk(full_);
    if (clock_.tracing) clock_.note("backup starts with " + std::to_string(turn_->state().reports) + " reports");
    go_on();
}

void BackupNode::lose(bool power, bool wipe, Duration away) {
    if (!turn_) return;
    const char *how = wipe ? "backup is lost with its disk" : power ? "backup loses its power" : "backup is killed";
    if (clock_.tracing) clock_.note(how);
    before_ = handed_over();
    crash_disk(power);
    if (wipe) disk_ = test::SimDisk();
    turn_.reset();
    store_.reset();
    job_.reset();
    ++life_;
    if (servers_) servers_->lose_listener(power);
    if (scheduler_ != no_connection) {
        if (power) up_.lose_client(scheduler_);
        else up_.close_client(scheduler_);
    }
    scheduler_ = no_connection;
    clock_.put(clock_.now + away, this, backup_mark, start_again, life_);
}

// A commit under way ends somewhere in its middle.
void BackupNode::crash_disk(bool power) {
    if (job_ && random_.chance(70)) {
        std::uint64_t left = random_.below(random_.chance(70) ? 12 : 40);
        std::optional<test::SimDisk> frozen;
        disk_.after_operation = [&] {
            if (left-- == 0) frozen.emplace(disk_);
        };
        (void)store_->commit(*job_, room_);
        disk_.after_operation = nullptr;
        if (frozen) disk_ = std::move(*frozen);
    }
    disk_.after_operation = nullptr;
    test::SimDisk left = power ? disk_.crashed() : disk_.killed();
    if (power) {
        const auto model = random_.chance(50) ? test::CrashModel::weak : test::CrashModel::journal;
        const std::uint64_t wanted = random_.below(6);
        std::uint64_t seen = 0;
        disk_.each_crash(
            model, 6, random_.next(), [&](std::uint64_t) { return seen++ == wanted; },
            [&](test::SimDisk &state) { left = std::move(state); });
    }
    disk_ = left.killed();
}

void BackupNode::fill_disk(bool full) {
    full_ = full;
    disk_.set_capacity(full ? disk_.used_bytes() + random_.below(64 * 1024) : ~0ull);
}

void BackupNode::fatal(const std::string &why) { clock_.complain("backup", why); }

// ---- what its shell does ------------------------------------------------------------------

void BackupNode::happen(std::uint32_t what, std::uint64_t arg) {
    if (arg != life_) return;
    if (what == start_again) return start();
    if (what == stored) return storage_answered();
    if (clock_.now < wake_at_) return;
    wake_at_ = Instant::never();
    go_on();
}

void BackupNode::go_on() {
    if (!turn_ || !clock_.fine()) return;
    if (!job_) turn_->run();
    if (job_) return;
    if (const std::string wrong = backup::check(turn_->state()); !wrong.empty())
        return clock_.complain("backup's state", wrong);
    if (store_->pending_bytes() > clock_.plan.store.flush_bytes / 2) (void)store_->flush();
    const Instant at = std::max(turn_->next_wakeup(), clock_.now + Duration{1000});
    if (at >= wake_at_ || turn_->next_wakeup() == Instant::never()) return;
    wake_at_ = at;
    clock_.put(at, this, backup_mark, wake, life_);
}

void BackupNode::start_commit(std::vector<store::TreeUpdate> updates, store::Room room) {
    job_ = std::move(updates);
    room_ = room;
    const Duration takes = between(random_, clock_.plan.commit_min, clock_.plan.commit_max);
    clock_.put(clock_.now + takes, this, backup_mark, stored, life_);
}

void BackupNode::storage_answered() {
    const std::vector<store::TreeUpdate> updates = std::move(*job_);
    job_.reset();
    const store::CommitResult result = store_->commit(updates, room_);
    if (result.answer == store::Answer::unknown || (result.answer == store::Answer::nothing && !full_))
        return clock_.complain("backup's store", "refused without a reason: " + result.status.text);
    turn_->committed(result);
    go_on();
}

void BackupNode::take(backup::Arrival arrival) {
    if (!turn_) return;
    turn_->take(std::move(arrival));
    if (clock_.now >= wake_at_) return;
    wake_at_ = clock_.now;  // what arrives at the same moment is decided together
    clock_.put(clock_.now, this, backup_mark, wake, life_);
}

// ---- arrivals -----------------------------------------------------------------------------

void BackupNode::take_frame(ConnId conn, std::string bytes) {
    backup::Arrival a;
    a.conn = conn;
    const std::string_view all = bytes;
    auto header = wire::decode_header(all.substr(0, wire::header_bytes), limits::server_frame_bytes);
    if (!header) return clock_.complain("wire", "to the backup: " + header.status().text);
    a.header = *header;
    a.payload = bytes.substr(wire::header_bytes);
    take(std::move(a));
}

void BackupNode::opened(ConnId conn, turn::Door, const std::string &) {
    take({backup::Arrival::Kind::opened, conn, {}, {}, {}, {}});
}
void BackupNode::closed(ConnId conn, const std::string &why) {
    take({backup::Arrival::Kind::closed, conn, {}, {}, why, {}});
}
void BackupNode::link_opened(ConnId conn) {
    if (conn == scheduler_) take({backup::Arrival::Kind::opened, conn, {}, {}, {}, {}});
}
void BackupNode::link_frame(ConnId conn, std::string bytes) {
    if (conn == scheduler_) take_frame(conn, std::move(bytes));
}
void BackupNode::link_closed(ConnId conn, const std::string &why) {
    if (conn != scheduler_) return;
    scheduler_ = no_connection;
    take({backup::Arrival::Kind::closed, conn, {}, {}, why, {}});
}

void BackupNode::send(ConnId conn, const wire::AnyMessage &message, std::uint64_t request) {
    if (clock_.tracing) clock_.note("backup -> " + to_text(conn) + " " + wire::kind_name(message));
    if (conn == scheduler_) up_.send_up(conn, wire::encode(message, request));
    else servers_->send_down(conn, wire::encode(message, request));
}

void BackupNode::close(ConnId conn) {
    if (conn != scheduler_) return servers_->close_server(conn);
    up_.close_client(conn);
    scheduler_ = no_connection;
}

Result<ConnId> BackupNode::connect() { return scheduler_ = up_.connect(this, site_, turn::Door::server, "root"); }

void BackupNode::log(backup::Level, const std::string &line) {
    if (clock_.tracing) clock_.note("backup: " + line);
}

}  // namespace dcs::sim
