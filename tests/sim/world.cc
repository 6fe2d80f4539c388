#include "sim/world.h"

#include "base/resources.h"
#include "sim/checkers/backup_check.h"
#include "scheduler/core/explain.h"

namespace dcs::sim {
namespace {

constexpr std::uint32_t world_mark = 0x5744;

std::unique_ptr<Medium> medium_for(const Plan &plan) {
    if (plan.scale) return std::make_unique<MemMedium>();
    return std::make_unique<SimMedium>();
}

}  // namespace

World::World(const Plan &with)
    : plan(with),
      clock(plan),
      medium(medium_for(plan)),
      scheduler(
          clock, *medium, [this] { return host_table(); }, [this](const std::string &name) { return reachable(name); }),
      links(clock, scheduler),
      watch(clock, *medium, scheduler),
      faults_(*this) {
    scheduler.attach(links, watch);
    if (plan.backup) add_backup();
    add_hosts();
    add_controls();
}

// ---- who there is -------------------------------------------------------------------------

std::int32_t World::slots_of(int host) const {
    if (plan.scale) return plan.slots;
    return 1 + static_cast<std::int32_t>(mix(mix(plan.seed, "slots"), static_cast<std::uint64_t>(host)) %
                                         static_cast<std::uint64_t>(plan.slots));
}

std::vector<core::HostConfig> World::host_table() {
    std::vector<core::HostConfig> table;
    for (int i = 0; i < plan.hosts; ++i) {
        if (unlisted.count(i) != 0) continue;
        core::HostConfig c;
        c.name = host_name(i);
        c.binary_class = "x86_64-linux-gnu";
        c.host_class = 1u << (i % plan.classes);
        c.slots = slots_of(i);
        if (const auto other = other_slots.find(i); other != other_slots.end()) c.slots = other->second;
        c.interval = plan.interval;
        c.alert = plan.alert;
        c.limit = plan.limit;
        c.extended = plan.extended;
        if (!plan.scale && plan.users > 1 && i % 7 == 6) c.users = {"u0", "u1"};
        if (!plan.scale && i % 3 == 1) c.check = {"192.0.2." + std::to_string(i % 250)};
        if (plan.resources) c.resources = *offers_of(i % 5 == 2 ? "scratch_gb=100" : "gpu=[0,1,4,7],scratch_gb=150");
        table.push_back(std::move(c));
    }
    return table;
}

void World::add_backup() {
    backup = std::make_unique<BackupNode>(clock, links, links.add_site());
    backup_links = std::make_unique<Links>(clock, *backup, "backup links", ConnId{std::uint64_t{1} << 40});
    backup->attach(*backup_links);
    watch.before_sending = [this](ConnId conn, const wire::AnyMessage &message, const core::State &state) {
        if (!std::holds_alternative<wire::Configure>(message)) return;
        for (const auto &server : servers)
            if (server->runs() && server->conn() == conn && conn != no_connection)
                BackupCheck(clock).believed(state, server->state());
    };
    watch.after_each_turn = [this] { check_backup(); };
}

void World::check_backup() {
    const backup::State *held = backup->committed();
    if (!held) return;
    BackupCheck check(clock);
    if (scheduler.quiet()) check.forgotten(*held, *scheduler.state());
    for (const auto &server : servers)
        if (server->runs()) check.acknowledged(*held, server->state());
}

void World::add_hosts() {
    for (int i = 0; i < plan.hosts; ++i) {
        const int site = links.add_site();
        if (backup_links)
            while (backup_links->add_site() < site) continue;
        hosts.push_back(std::make_unique<Host>(clock, watch, i, site, slots_of(i)));
        servers.push_back(std::make_unique<ServerNode>(clock, links, *hosts.back(), backup_links.get()));
    }
}

void World::add_controls() {
    std::int64_t left = plan.grains;
    for (int p = 0; p < plan.programs; ++p) {
        Random r = random_for(plan.seed, "program", static_cast<std::uint64_t>(p));
        std::vector<ControlNode::Job> jobs;
        const int count = plan.scale ? 1 : static_cast<int>(between(r, 1, 3));
        const std::int64_t share = p + 1 == plan.programs ? left : left / (plan.programs - p);
        left -= share;
        std::int32_t session = p * 100 + 1;
        for (int k = 0; k < count; ++k) {
            ControlNode::Job job;
            job.user = "u" + std::to_string(p % plan.users);
            job.ident = "prog" + std::to_string(p);
            job.session = session;
            job.script = draw_script(r, plan, static_cast<int>(std::max<std::int64_t>(share / count, 1)));
            job.keeps_notes = !plan.scale && r.chance(25);
            Random b = random_for(plan.seed, "batch", static_cast<std::uint64_t>(p) * 1000 + jobs.size());
            if (!plan.scale && b.chance(50)) job.batch = static_cast<int>(spread(b, 2, 64));
            job.opens = !plan.scale && r.chance(35);
            job.cleans = !plan.scale && r.chance(50);
            job.reopenings = !plan.scale && r.chance(20) ? 1 : 0;
            if (!job.cleans || r.chance(40)) ++session;
            jobs.push_back(std::move(job));
        }
        controls.push_back(std::make_unique<ControlNode>(clock, links, watch, p, std::move(jobs)));
    }
}

bool World::reachable(const std::string &name) const {
    for (const auto &host : hosts)
        if (host->name == name) return host->on() && links.site(host->site).silent == 0;
    return false;
}

// ---- what happens -------------------------------------------------------------------------

void World::begin() {
    scheduler.start();
    if (backup) backup->start();
    Random r = random_for(plan.seed, "begin");
    for (std::size_t i = 0; i < servers.size(); ++i)
        clock.put(clock.now + between(r, milliseconds(1), plan.scale ? plan.interval : seconds(60)), this, world_mark,
                  begin_server, i);
    for (std::size_t i = 0; i < controls.size(); ++i)
        clock.put(clock.now + between(r, milliseconds(1), plan.scale ? seconds(60) : plan.length / 2), this, world_mark,
                  begin_control, i);
    clock.put(clock.now + plan.length, this, world_mark, heal, 0);
    clock.put(clock.now + plan.interval, this, world_mark, look, 0);
    faults_.begin();
}

void World::happen(std::uint32_t what, std::uint64_t arg) {
    switch (what) {
    case begin_server: return servers[arg]->start();
    case begin_control: return controls[arg]->start();
    case heal:
        if (clock.tracing) clock.note("all faults end");
        faults_.heal();
        clock.healed = true;
        healed_at_ = std::max(clock.now, scheduler.stopped_until());
        return;
    case look: return look_around();
    }
}

bool World::all_done() const {
    for (const auto &control : controls)
        if (!control->done()) return false;
    return true;
}

// Each interval: is everything done, and if all is well, does everything go on?
void World::look_around() {
    if (all_done()) {
        if (done_at_ == Instant::never()) done_at_ = clock.now;
        if (!clock.healed) {
            faults_.heal();
            clock.healed = true;
            done_at_ = clock.now;
            healed_at_ = std::max(clock.now, scheduler.stopped_until());  // its last pause ends by itself
        }
        if (plan.scale || clock.now - std::max(done_at_, healed_at_) > plan.limit + plan.interval * 2 + seconds(120)) {
            finished_ = true;
            return;
        }
    } else if (clock.healed && clock.now - healed_at_ > plan.limit + plan.interval * 2) {
        const Duration patience = plan.grain_cpu_max * 5 + plan.limit + plan.interval * 6;
        if (!scheduler.state()) return clock.complain("liveness", "the scheduler does not run");
        if (const std::string what = plan.scale ? "" : Seniority::overlooked(*scheduler.state(), clock.now);
            !what.empty())
            return clock.complain("liveness", what);
        if (clock.now - std::max(watch.progress(), healed_at_) > patience) {
            std::string who;
            for (const auto &control : controls)
                if (!control->done()) who += " [" + control->where() + "]";
            return clock.complain("liveness", "nothing goes on:" + who + "; " + first_unfinished());
        }
    }
    clock.put(clock.now + plan.interval, this, world_mark, look, 0);
}

// The first grain that should run, and what the scheduler itself says about it.
std::string World::first_unfinished() const {
    const core::State &state = *scheduler.state();
    for (const auto &[seniority, key] : state.by_seniority)
        for (const auto &[number, grain] : state.session(key)->grains) {
            if (grain.status() != core::GrainStatus::ready && grain.status() != core::GrainStatus::running) continue;
            const GrainKey name{key, number};
            std::string text = to_text(name) + " is " + core::name_of(grain.status());
            if (const core::Host *host = state.host(grain.lessee)) text += " on " + host->config->name;
            const wire::Explanation why = core::explanation(state, clock.now, name);
            for (const wire::WhyRow &row : why.reasons) text += "; " + row.reason + " " + std::to_string(row.hosts);
            return text;
        }
    return "no grain is unfinished";
}

// Sessions are closed: nothing of them runs or lies about.
void World::look_at_hosts() {
    for (const auto &host : hosts) {
        if (!host->on()) continue;
        if (!host->processes().empty())
            return clock.complain("left-overs",
                                  host->name + " still runs " + server::to_text(host->processes().begin()->first));
        if (!host->directories.empty())
            return clock.complain("left-overs",
                                  host->name + " still keeps " + server::to_text(host->directories.begin()->first));
    }
}

void World::final_checks() {
    if (plan.scale || !clock.fine()) return;
    look_at_hosts();
    if (!scheduler.quiet()) return;
    watch.promises.compare(*scheduler.state());
    watch.durable.compare(*scheduler.state(), *scheduler.store());
    scheduler.lose(true, seconds(1));
    scheduler.start();
}

void World::run() {
    begin();
    while (clock.fine() && !finished_ && !clock.queue.empty()) {
        const Event event = clock.queue.take();
        clock.now = event.at;
        ++clock.events;
        clock.mark(mix(static_cast<std::uint64_t>(event.at.ns), mix(event.name << 8 | event.what, event.arg)));
        event.who->happen(event.what, event.arg);
    }
    if (clock.fine()) final_checks();
}

std::string World::summary() const {
    const SchedulerNode::Figures &f = scheduler.figures;
    std::uint64_t steps = 0, calls = 0;
    for (const auto &server : servers) steps += server->steps();
    for (const auto &control : controls) calls += control->calls();
    return std::to_string(clock.events) + " events, " + std::to_string(f.turns) + " turns, " +
           std::to_string(f.commits) + " commits, " + std::to_string(f.starts) + " starts, " +
           std::to_string(faults_.count()) + " faults, " + std::to_string(steps) + " server steps, " +
           std::to_string(calls) + " calls, " + std::to_string(watch.promises.results()) + " results" +
           (plan.has(Fault::forget) ? ", " + std::to_string(watch.promises.forgotten()) + " forgotten" : "") +
           (backup ? ", " + std::to_string(backup->handed_over()) + " reports handed over" : "");
}

}  // namespace dcs::sim
