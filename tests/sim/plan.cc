#include "sim/plan.h"

#include <algorithm>

#include "sim/random.h"

namespace dcs::sim {
namespace {

struct FaultKind {
    Fault fault;
    const char *name;
    Duration least, most;  // mean time between two of them
};

// The more often for what concerns one of many.
constexpr FaultKind kinds[] = {
    {Fault::kill, "kill", seconds(1200), seconds(6 * 3600)},
    {Fault::power, "power", seconds(1800), seconds(8 * 3600)},
    {Fault::pause, "pause", seconds(3600), seconds(8 * 3600)},
    {Fault::disk_full, "disk_full", seconds(3600), seconds(8 * 3600)},
    {Fault::sync_fail, "sync_fail", seconds(3600), seconds(8 * 3600)},
    {Fault::reread, "reread", seconds(1800), seconds(8 * 3600)},
    {Fault::cut, "cut", seconds(60), seconds(3600)},
    {Fault::silence, "silence", seconds(300), seconds(3600)},
    {Fault::refuse, "refuse", seconds(1800), seconds(6 * 3600)},
    {Fault::partition, "partition", seconds(3600), seconds(8 * 3600)},
    {Fault::swizzle, "swizzle", seconds(3600), seconds(8 * 3600)},
    {Fault::slow, "slow", seconds(1800), seconds(6 * 3600)},
    {Fault::server_kill, "server_kill", seconds(120), seconds(3600)},
    {Fault::launcher_kill, "launcher_kill", seconds(600), seconds(6 * 3600)},
    {Fault::reboot, "reboot", seconds(600), seconds(6 * 3600)},
    {Fault::server_pause, "server_pause", seconds(600), seconds(6 * 3600)},
    {Fault::host_pause, "host_pause", seconds(600), seconds(6 * 3600)},
    {Fault::away, "away", seconds(1200), seconds(8 * 3600)},
    {Fault::lost, "lost", seconds(4 * 3600), seconds(24 * 3600)},
    {Fault::host_full, "host_full", seconds(900), seconds(6 * 3600)},
    {Fault::owner, "owner", seconds(300), seconds(3600)},
    {Fault::no_binary, "no_binary", seconds(1800), seconds(8 * 3600)},
    {Fault::bad_host, "bad_host", seconds(1800), seconds(12 * 3600)},
    {Fault::control_kill, "control_kill", seconds(300), seconds(4 * 3600)},
    {Fault::control_twin, "control_twin", seconds(1800), seconds(8 * 3600)},
    {Fault::backup_kill, "backup_kill", seconds(900), seconds(6 * 3600)},
    {Fault::backup_power, "backup_power", seconds(1800), seconds(8 * 3600)},
    {Fault::backup_lost, "backup_lost", seconds(3 * 3600), seconds(24 * 3600)},
    {Fault::backup_full, "backup_full", seconds(3600), seconds(8 * 3600)},
    {Fault::backup_silence, "backup_silence", seconds(300), seconds(3600)},
    {Fault::backup_partition, "backup_partition", seconds(1800), seconds(8 * 3600)},
    {Fault::forget, "forget", seconds(300), seconds(2 * 3600)},
};
static_assert(std::size(kinds) == fault_count);

// The bugs of store::StoreOptions::plant.
constexpr const char *plants[] = {
    "no_sync_temp",            // big temporaries not synced before the root
    "no_sync_temp_dir",        // their directories not synced
    "no_sync_root",            // turn root not synced before the rename
    "no_sync_commit",          // directory not synced after the rename
    "no_sync_applied_trees",   // roots dropped before trees are synced
    "no_sync_applied_stamp",   // roots dropped before the stamp is durable
    "append_at_end",           // append without truncating to the recorded length
    "no_flush_before_big",     // big node prepared below a pending removal
    "skip_root_checksum",      // the copies in a root accepted without a check
    "reverse_replay",          // turns are applied again in the wrong order
    "no_sync_new_dirs",        // a new directory's own name never synced
    "no_flush_before_remove",  // a tree removed while updates of it are pending
    "no_flush_before_shrink",  // a file cut below the start of a pending append
    "drop_temps_early",        // big temporaries removed once applied, not once synced
    "move_big",                // a big temporary renamed instead of linked into place
    "trust_visible_roots",     // recovery acts on names before it has synced them
    "trust_visible_dirs",      // recovery takes a visible directory as durable
    "ignore_failed_sync",      // a failed sync taken for a good one
    "keep_strays",             // recovery leaves discarded temporaries where they are
    "no_sync_marker",          // roots dropped before the marker of a damaged tree is durable
    "trust_visible_marker",    // recovery takes a visible marker as durable
    "heads_in_one_block",      // the copies in a root and in a stamp share a block
    "skip_stamp_checksum",     // the copies of the stamp accepted without a check
    "apply_to_damaged",        // replay continues in a tree that is set aside
    "commit_to_damaged",       // commit accepts updates of such a tree
    "reserve_for_all",         // ordinary commits may use the reserve
    "reserve_all_at_once",     // no part of the reserve is kept to complete the turn
    "no_sync_reserve",         // a power failure may release the reserve
    "no_sync_journal",         // a turn acknowledged before the journal is synced
    "reuse_journal_early",     // the journal restarts before its turns are in the trees
    "trust_visible_journal",   // recovery acts on turns in the journal before it has synced them
    "replay_old_turns",        // recovery applies turns that are older than the stamp
    "no_sync_placed",          // what is written in place not synced before the root
    "no_flush_before_placed",  // a file written in place while an earlier update of it is pending
    "forget_behind",           // what is not applied yet is left out by the flush
};

Status choose_faults(const std::string &list, std::array<bool, fault_count> &allowed) {
    allowed.fill(list == "all");
    if (list == "all" || list == "none") return Status::ok();
    for (std::size_t start = 0; start <= list.size();) {
        const std::size_t end = std::min(list.find(',', start), list.size());
        const std::string word = list.substr(start, end - start);
        const auto is_it = [&](const FaultKind &k) { return word == k.name; };
        const auto known = std::find_if(std::begin(kinds), std::end(kinds), is_it);
        if (known == std::end(kinds)) return fail(Code::invalid, "there is no fault `" + word + "`");
        allowed[static_cast<std::size_t>(known->fault)] = true;
        start = end + 1;
    }
    return Status::ok();
}

void draw_paces(Plan &p, Random &r) {
    p.delay_min = spread(r, Duration{50'000}, milliseconds(5));
    p.delay_max = p.delay_min + spread(r, Duration{50'000}, milliseconds(200));
    p.commit_min = spread(r, Duration{500'000}, milliseconds(5));
    p.commit_max = p.commit_min + spread(r, milliseconds(1), milliseconds(45));
    p.drowse = spread(r, seconds(5), Duration{std::max(p.interval.ns / 4, seconds(5).ns)});
    p.keepalive = spread(r, seconds(60), seconds(900));
}

void draw_store(Plan &p, Random &r) {
    store::StoreOptions &s = p.store;
    s.reserve_bytes = 256 * 1024;
    s.inline_limit = static_cast<std::size_t>(spread(r, 256, 32 * 1024));
    s.append_inline_limit = static_cast<std::size_t>(spread(r, 1024, 1 << 20));
    s.flush_bytes = static_cast<std::size_t>(spread(r, 16 * 1024, 1 << 20));
    s.flush_turns = static_cast<std::size_t>(spread(r, 2, 512));
    s.sync_all_above = static_cast<std::size_t>(spread(r, 4, 64));
    s.journal_bytes = static_cast<std::size_t>(spread(r, 16 * 1024, 256 * 1024));
    s.journal_turn_bytes = s.journal_bytes;
    s.behind_turns = static_cast<std::size_t>(spread(r, 1, 64));
    s.turn_room = 8 * 1024;
    s.step_room = 1024;
}

void draw_work(Plan &p, Random &r, const Options &o) {
    p.users = static_cast<int>(between(r, 1, 4));
    p.programs = static_cast<int>(between(r, 1, 8));
    p.classes = static_cast<int>(between(r, 1, 3));
    p.slots = o.slots > 0 ? o.slots : static_cast<int>(spread(r, 1, 8));
    p.grains = o.grains > 0 ? o.grains : spread(r, 20, 400);
    p.contents = o.contents;
    p.grain_cpu_max = spread(r, seconds(60), seconds(6 * 3600));
}

}  // namespace

const char *name_of(Fault fault) { return kinds[static_cast<std::size_t>(fault)].name; }

std::string_view store_plant(const std::string &name) {
    for (const char *plant : plants)
        if (name == std::string("store.") + plant) return plant;
    return {};
}

std::vector<std::string> store_plants() {
    std::vector<std::string> all;
    for (const char *name : plants) all.push_back(std::string("store.") + name);
    return all;
}

Result<Plan> make_plan(const Options &o, std::uint64_t seed) {
    Random r = random_for(seed, "plan");
    Plan p;
    p.seed = seed;
    p.hosts = o.hosts;
    p.length = seconds_of(o.days * 86400);
    p.interval = spread(r, seconds(300), seconds(3600));
    if (o.interval_s > 0) p.interval = seconds_of(o.interval_s);
    p.alert = p.interval * 3;
    p.limit = p.interval * 6;
    p.extended = p.interval * 24;
    draw_paces(p, r);
    draw_store(p, r);
    draw_work(p, r, o);
    if (o.brief) p.grain_cpu_max = milliseconds(1000);
    p.backup = o.backup;
    p.queues = o.queues || o.resources;  // a launcher without one knows no resources
    p.resources = o.resources;
    Random b = random_for(seed, "backup-plan");
    p.backup_bytes = b.chance(70) ? std::uint64_t{1} << 30 : static_cast<std::uint64_t>(spread(b, 4096, 1 << 20));
    p.store.plant = store_plant(o.plant);
    std::array<bool, fault_count> allowed{};
    if (Status s = choose_faults(o.faults, allowed); !s) return s;
    // How many of them this seed has: from hardly any to nearly all.
    const auto percent = static_cast<unsigned>(between(r, 10, 90));
    for (const FaultKind &kind : kinds) {
        const Duration mean = spread(r, kind.least, kind.most);
        const bool drawn = r.chance(o.faults == "all" ? percent : 100) || kind.fault == Fault::forget;
        const auto i = static_cast<std::size_t>(kind.fault);
        const bool there = kind.fault == Fault::forget ? o.forget : p.backup || kind.fault < Fault::backup_kill;
        if (allowed[i] && drawn && there) p.every[i] = mean;
    }
    return p;
}

Plan scale_plan(const Options &o) {
    Options plain = o;
    plain.faults = "none";
    Plan p = *make_plan(plain, o.seed);
    p.scale = true;
    p.slots = o.slots > 0 ? o.slots : 4;
    p.grains = o.grains > 0 ? o.grains : 1000;
    p.users = 4;
    p.classes = 1;
    p.programs = static_cast<int>(std::clamp<std::int64_t>(p.grains / 10'000, 4, 100));
    const double slot_seconds = double(p.hosts) * p.slots * p.length.seconds();
    p.grain_cpu_max = seconds_of(slot_seconds / static_cast<double>(p.grains));
    p.drowse = p.interval;
    p.delay_min = Duration{100'000};
    p.delay_max = milliseconds(2);
    p.commit_min = milliseconds(2);
    p.commit_max = milliseconds(20);
    p.store = store::StoreOptions{};
    return p;
}

std::string Plan::text() const {
    std::string line = "hosts " + std::to_string(hosts) + ", slots " + std::to_string(slots) + ", interval " +
                       std::to_string(interval.ns / 1'000'000'000) + " s, grains " + std::to_string(grains) +
                       ", programs " + std::to_string(programs) + ", users " + std::to_string(users) + ", faults:";
    bool any = false;
    for (const FaultKind &kind : kinds)
        if (has(kind.fault)) {
            line += std::string(any ? "," : " ") + kind.name;
            any = true;
        }
    return any ? line : line + " none";
}

}  // namespace dcs::sim
