#include "crash/scheduler/world.h"

#include "scheduler/record/paths.h"

namespace dcs::test {
namespace {

constexpr std::size_t block = 512;  // writes are torn at multiples of it

}  // namespace

void Counts::add(const Counts &other) {
    turns += other.turns;
    flushes += other.flushes;
    compactions += other.compactions;
    own_trees += other.own_trees;
    removed += other.removed;
    big_nodes += other.big_nodes;
    in_flight += other.in_flight;
    refused += other.refused;
    doubts += other.doubts;
    restarts += other.restarts;
    results += other.results;
    kills += other.kills;
    packed += other.packed;
    batches += other.batches;
    with_reserve += other.with_reserve;
    launches += other.launches;
    handed_over += other.handed_over;
    for (const auto &[name, n] : other.trees) trees[name] += n;
}

World::World(store::StoreOptions with, std::uint64_t seed) : disk(block), options(with), random_(seed) {
    auto empty = std::make_shared<Snapshot>();
    empty->text = durable_text(core::State());
    low = high = empty;
    people.controls = {{"ann", "prog", {}, {}, {}},
                       {"ann", "other", {}, {}, {}},
                       {"bob", "prog", {}, {}, {}},
                       {"root", "ops", {}, {}, {}}};
    for (const char *name : {"h1", "h2", "h3"}) {
        Server server;
        server.name = name;
        people.servers.push_back(std::move(server));
    }
}

World::World(const World &from, SimDisk left, SnapshotPtr known, std::uint64_t seed)
    : disk(std::move(left)), low(known), high(known), people(from.people), options(from.options), random_(seed) {
    lose_scheduler();
}

void World::complain(const std::string &what) {
    if (wrong.empty()) wrong = "turn " + std::to_string(low->turn) + ": " + what;
}

void World::look() {
    if (watch) watch();
}

Token World::fresh_token() {
    Token token{};
    token.fill(++people.tokens);
    return token;
}

void World::send(ConnId conn, const wire::AnyMessage &message, core::RequestId request) {
    const auto id = static_cast<std::uint64_t>(request);
    if (std::string what = people.ledger.said(conn, id, message, turn_->state(), *low); !what.empty()) complain(what);
    counts.results += std::holds_alternative<wire::GrainResult>(message);
    if (const auto *many = std::get_if<wire::GrainResults>(&message)) {
        counts.results += many->results.size();
        counts.batches += many->results.size() > 1;
    }
    counts.launches += std::holds_alternative<wire::Launch>(message);
    sent_.push_back(Sent{conn, id, message});
}

void World::close(ConnId conn) {
    for (Control &control : people.controls)
        if (control.conn == conn) control.conn = no_connection;
    for (Server &server : people.servers)
        if (server.conn == conn) server.conn = no_connection;
    if (people.backup.conn == conn) people.backup.conn = no_connection;
}

void World::lose_scheduler() {
    turn_.reset();
    store_.reset();
    job_.reset();
    sent_.clear();
    died_ = false;
    for (Control &control : people.controls) control.conn = no_connection;
    for (Server &server : people.servers) server.conn = no_connection;
    people.backup.conn = no_connection;
}

bool World::start() {
    auto opened = store::Store::open(disk, record::forest(), options, nullptr);
    if (!opened) return complain(opened.status().text), false;
    store_ = std::move(*opened);
    auto rebuilt = record::rebuild(*store_, people.clock);
    if (!rebuilt) return complain(rebuilt.status().text), false;
    if (!rebuilt->reports.empty()) return complain(rebuilt->reports[0]), false;
    if (store_->turn() == high->turn) low = high;
    high = low;
    if (store_->turn() != low->turn || durable_text(rebuilt->state) != low->text)
        return complain("started again, the scheduler knows something else"), false;
    people.ledger.crashed(rebuilt->state);
    turn::Turn::Setup setup;
    setup.state = std::move(rebuilt->state);
    setup.state.policy.stored_share = 0;  // its disks are full for other reasons
    auto library = library::Library::open(disk, people.clock);
    if (!library) return complain(library.status().text), false;
    setup.library = std::move(*library);
    turn_ = std::make_unique<turn::Turn>(std::move(setup), *store_, *this);
    turn_->take_host_table(host_table());
    return true;
}

void World::restart(bool power_failure) {
    lose_scheduler();
    disk.after_operation = nullptr;
    disk = power_failure ? disk.crashed() : disk.killed();
    disk.after_operation = watch;
    ++counts.restarts;
    start();
}

void World::step() {
    if (!wrong.empty()) return;
    Workload workload(*this);
    for (std::uint64_t n = 1 + random_.below(5); n > 0; --n) workload.act();
    run_turns();
    if (wrong.empty()) deliver();
}

void World::run_turns() {
    turn_->run();
    while (wrong.empty() && turn_->committing()) commit();
    if (!wrong.empty()) return;
    if (std::string what = core::check(turn_->state()); !what.empty()) return complain(what);
    if (durable_text(turn_->state()) != low->text) complain("something durable changed without a commit");
}

void World::commit() {
    const std::vector<store::TreeUpdate> updates = std::move(*job_);
    job_.reset();
    high = next_snapshot(*low, turn_->state(), people.ledger.reported, wrong);
    count(updates);
    look();
    if (!quiet_ && random_.chance(30)) {  // arrives while the commit is in flight
        Workload(*this).act();
        ++counts.in_flight;
    }
    const std::uint64_t pending = store_->pending_bytes();
    const bool trouble = trouble_lasts_ || make_trouble();
    const store::CommitResult result = store_->commit(updates, room_);
    disk.clear_faults();
    trouble_lasts_ = false;
    if (result.answer != store::Answer::nothing) disk.set_capacity(~0ull);
    if (result.answer == store::Answer::unknown) return die(updates, result, trouble);
    if (result.answer == store::Answer::nothing && !trouble) return complain(result.status.text);
    if (result.answer == store::Answer::done) {
        if (store_->pending_bytes() <= pending) ++counts.flushes;
        if (store_->turn() != high->turn) return complain("the store counts another turn");
        low = high;
        counts.with_reserve += room_ == store::Room::reserve;
    } else {
        ++counts.refused;
    }
    turn_->committed(result);
    // What may use the reserve is committed at once, on a disk that is as full as before.
    trouble_lasts_ = trouble && turn_->committing();
    if (!trouble_lasts_) disk.set_capacity(~0ull);
    high = low;
    look();
    deliver();
    if (wrong.empty()) turn_->run();
}

// Now and then the disk is full, or one call of it fails.
bool World::make_trouble() {
    if (quiet_ || !random_.chance(8)) return false;
    if (random_.chance(50)) {
        disk.set_capacity(disk.used_bytes() + random_.below(random_.chance(50) ? 150'000 : 2'000));
    } else {
        const Fault faults[] = {Fault::no_space, Fault::limit, Fault::io_error, Fault::io_error_done,
                                Fault::short_write};
        disk.fail_at(1 + random_.below(40), faults[random_.below(5)], false);
    }
    return true;
}

// The disk is in doubt: not a word leaves, the process ends, the next one decides.
void World::die(const std::vector<store::TreeUpdate> &updates, const store::CommitResult &result, bool trouble) {
    const std::size_t sent = sent_.size();
    ++counts.doubts;
    if (!trouble) return complain(result.status.text);
    turn_->committed(result);
    if (!died_) return complain("the turn goes on though its disk is in doubt");
    if (sent_.size() != sent) return complain("something was said though the disk is in doubt");
    if (store_->commit(updates, room_).answer != store::Answer::unknown)
        return complain("the store goes on though its disk is in doubt");
    restart(random_.chance(50));
}

void World::count(const std::vector<store::TreeUpdate> &updates) {
    ++counts.turns;
    for (const store::TreeUpdate &update : updates) {
        ++counts.trees[update.tree];
        counts.removed += update.remove;
        for (const store::NodeUpdate &node : update.nodes)
            counts.big_nodes += node.content().size() > options.inline_limit;
    }
    for (const auto &[key, length] : high->log_length) {
        const auto old = low->log_length.find(key);
        const bool same = old != low->log_length.end() && low->seniority.at(key) == high->seniority.at(key);
        counts.compactions += same && length < old->second;
    }
    for (const store::TreeUpdate &update : updates) counts.packed += update.remove && update.tree == record::grain_tree;
    const core::State &state = turn_->state();
    for (const auto &[key, known] : high->grains)
        counts.own_trees += state.grain(key)->own_tree && low->grains.count(key) == 0;
    for (const auto &[key, known] : low->grains) {
        const core::Grain *grain = state.grain(key);
        counts.kills +=
            grain && grain->status() == core::GrainStatus::killed && known.status != core::GrainStatus::killed;
    }
}

// Its grains are placed again, and so are their records.
void World::forget(Server &server) {
    hang_up(server.conn);
    server.held.clear();
    connect_server(server);
}

// A few grains on the host h3 that forgets them repeatedly.
void World::grow_a_log() {
    quiet_ = true;
    const SessionKey key{"ann", 1};
    Control &ann = people.controls[0];
    connect_control(ann);
    run_turns();
    deliver();
    call(ann, wire::OpenSession{1, wire::OpenMode::resume, false});
    for (GrainNumber g = 0; g < 8; ++g) {
        wire::GrainSpec spec;
        spec.argv = {"/bin/long", "runner"};
        spec.demands.attempts = 3;
        call(ann, wire::Gexec{1, g, spec});
    }
    Server &h3 = people.servers[2];
    forget(h3);
    run_turns();
    // One that was killed and one that finished: the renewed log must have them, too.
    call(ann, wire::Gkill{"", 1, 0});
    if (const auto held = h3.held.find({key, 1}); held != h3.held.end()) {
        wire::GrainReport end;
        end.first_seq = end.last_seq = 1;
        end.ended = true;
        end.out = "done";
        report(h3, held->first, held->second, std::move(end));
    }
    run_turns();
    // record/plan.cc renews it when more than 64 KiB and the live half of it are dead.
    constexpr std::uint64_t nearly = 64 * 1024;
    for (int i = 0; i < 1600 && wrong.empty() && (i < 2 || low->log_length.at(key) < nearly); ++i) {
        forget(h3);
        run_turns();
    }
    if (low->log_length.at(key) < nearly) complain("the log did not grow");
    quiet_ = false;
    forgetful_ = true;
}

}  // namespace dcs::test
