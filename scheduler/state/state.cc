#include "scheduler/state/state.h"

#include <algorithm>
#include <bit>

#include "wire/event_log.h"

namespace dcs::core {

const char *name_of(GrainStatus s) {
    constexpr const char *names[] = {"ready", "running", "finished", "killed"};
    return names[static_cast<int>(s)];
}
Phase phase_of(GrainStatus s) {
    const Phase phases[] = {Ready{}, Running{}, Finished{}, Killed{}};
    return phases[static_cast<int>(s)];
}
const char *name_of(SessionStatus s) { return s == SessionStatus::active ? "active" : "terminated"; }
const char *name_of(HostStatus s) {
    constexpr const char *names[] = {"unknown", "active", "delinquent", "dead"};
    return names[static_cast<int>(s)];
}

const char *name_of(MoveReason r) {
    static_assert(wire::move_reasons.size() == move_reasons);
    return wire::move_reasons[static_cast<std::size_t>(r)];
}

namespace {
// More groups mean less to look through when a program is missing somewhere, and more queues.
constexpr std::uint32_t program_groups = 31;

std::uint8_t bits_of(std::int32_t n) {
    return n <= 0 ? 0 : static_cast<std::uint8_t>(std::bit_width(static_cast<std::uint32_t>(n)));
}
}  // namespace

std::int32_t decided_in(const Grains &grains) {
    std::int32_t decided = 0;
    for (const auto &[number, g] : grains) decided = std::max(decided, g.known);
    return decided;
}

Shape shape_of(const Grain &g) {
    Shape shape;
    shape.host_class = g.demands->host_class;
    shape.thrash_bits = bits_of(g.demands->thrash);
    shape.memory_bits = bits_of(g.demands->memory_mb);
    shape.program_group = static_cast<std::uint8_t>(g.program % program_groups);
    shape.form = wire::form_needed(g.demands);
    shape.cores = g.demands->cores;
    shape.resources = g.demands->resources;
    shape.binary_classes = g.files->binary_classes;
    return shape;
}

MemoryNeed need_of(const Grain &g) { return {g.demands->memory_mb, g.demands->thrash}; }

Amounts asked(const std::string &text) {
    if (text.empty()) return {};
    Result<Amounts> amounts = amounts_of(text);
    DCS_REQUIRE(amounts, "what a grain demands was checked when it came");
    return std::move(*amounts);
}

Used used_by(const wire::Demands &demands) {
    return Used{std::max(1, demands.cores), demands.memory_mb, asked(demands.resources)};
}

void add_to(Amounts &sum, const Amounts &amounts, int sign) {
    for (const auto &[name, amount] : amounts) {
        std::int64_t &total = sum[name];
        total += sign * amount;
        DCS_REQUIRE(total >= 0, "no less than nothing is used");
        if (total == 0) sum.erase(name);
    }
}
void Used::add(const Used &other, int sign) {
    cores += sign * other.cores;
    memory_mb += sign * other.memory_mb;
    DCS_REQUIRE(cores >= 0 && memory_mb >= 0, "no less than nothing is used");
    add_to(resources, other.resources, sign);
}

HostConfig with_setting(HostConfig table, const HostSetting &setting) {
    if (setting.slots >= 0) table.slots = setting.slots;
    if (setting.interval.ns >= 0) table.interval = setting.interval;
    if (setting.alert.ns >= 0) table.alert = setting.alert;
    if (setting.limit.ns >= 0) table.limit = setting.limit;
    if (setting.extended.ns >= 0) table.extended = setting.extended;
    if (setting.host_class != 0) table.host_class = setting.host_class;
    // Of a table that was reread after something had been set.
    table.alert = std::max(table.alert, table.interval);
    table.limit = std::max(table.limit, table.alert);
    table.extended = std::max(table.extended, table.limit);
    return table;
}

const std::string &binary_class_of(const Host &host) {
    return host.binary_class.empty() ? host.config->binary_class : host.binary_class;
}

Instant lapse_of(const Host &host) {
    Instant first = Instant::never();
    for (const HeldBack &h : host.held_back) first = std::min(first, h.until);
    for (const auto &[program, until] : host.missing) first = std::min(first, until);
    return first;
}

bool circles(const Grain &g) {
    return !g.is_over() && (g.course->returns >= limits::returns_told || g.recent->refusals >= limits::returns_told);
}

const Session *State::session(const SessionKey &key) const {
    const auto it = sessions.find(key);
    return it == sessions.end() ? nullptr : &it->second;
}

const Grain *State::grain(const GrainKey &key) const {
    const Session *s = session(key.session);
    if (!s) return nullptr;
    const auto it = s->grains.find(key.grain);
    return it == s->grains.end() ? nullptr : &it->second;
}

const Host *State::host(HostId id) const {
    if (static_cast<std::size_t>(id) >= hosts.size()) return nullptr;  // no_host too
    return &hosts[static_cast<std::size_t>(id)];
}

HostId State::host_id(const std::string &name) const {
    const auto it = host_ids.find(name);
    return it == host_ids.end() ? no_host : it->second;
}

HostId State::host_of(ConnId conn) const {
    const auto it = host_of_conn.find(conn);
    return it == host_of_conn.end() ? no_host : it->second;
}

bool State::takes_grains(HostId id) const {
    const Host *h = host(id);
    if (!h || !h->configured || h->status != HostStatus::active || h->conn == no_connection) return false;
    return !h->setting.drained && h->shut.empty() && !too_open(*h);
}

std::int32_t State::free_slots(HostId id) const {
    if (!takes_grains(id)) return 0;
    const Host *h = host(id);
    const auto taken = static_cast<std::int64_t>(running[static_cast<std::size_t>(id)].size());
    return taken >= h->config->slots ? 0 : static_cast<std::int32_t>(h->config->slots - taken);
}

std::string State::host_name(HostId id) const {
    const Host *h = host(id);
    return h ? h->config->name : std::string();
}

Status missing_session(const State &state, const SessionKey &key) {
    if (const auto damaged = state.set_aside.find(key); damaged != state.set_aside.end())
        return fail(Code::io_error, "session " + to_text(key) + " is set aside, " + damaged->second +
                                        "; use another number, or restore the file while the scheduler is stopped, or "
                                        "import an export of it (dcs session import DIR --replace), or remove it (dcs "
                                        "session clean)");
    return fail(Code::session_unknown, key.user + " has no session " + std::to_string(key.number));
}

std::int32_t last_number_of(const State &state, const std::string &user) {
    const auto found = state.last_numbers.find(user);
    return found == state.last_numbers.end() ? -1 : found->second;
}

Incarnation lease_floor(const State &state, const SessionKey &key) {
    const auto found = state.last_leases.find(key.user);
    return found == state.last_leases.end() || key.number > last_number_of(state, key.user) ? 0 : found->second;
}

Status missing_grain(const State &state, const GrainKey &key) {
    static const std::map<GrainNumber, std::string> none;
    const Session *session = state.session(key.session);
    const auto &damaged = session ? session->damaged : none;
    if (const auto found = damaged.find(key.grain); found != damaged.end())
        return fail(Code::io_error, "grain " + to_text(key) + " is set aside, " + found->second +
                                        "; kill it to continue without it, or restore the file while the scheduler is "
                                        "stopped");
    return fail(Code::grain_unknown, "session " + to_text(key.session) + " has no grain " + std::to_string(key.grain));
}

namespace {

constexpr std::size_t most_unrecorded = 4096;  // more are not named

}  // namespace

void Unrecorded::note(const State &state, const GrainKey &key, Incarnation lease, NoRoom why) {
    if (ended_.size() >= most_unrecorded)
        std::erase_if(ended_, [&](const auto &entry) { return !of(state, entry.first); });
    if (ended_.size() < most_unrecorded || ended_.count(key) != 0) ended_[key] = {lease, why};
}

std::optional<NoRoom> Unrecorded::of(const State &state, const GrainKey &key) const {
    const auto found = ended_.find(key);
    const Grain *grain = found == ended_.end() ? nullptr : state.grain(key);
    const bool counts = grain && grain->status() == GrainStatus::running && grain->lease == found->second.lease;
    return counts ? std::optional<NoRoom>(found->second.why) : std::nullopt;
}

std::map<std::string, std::map<NoRoom, int>> Unrecorded::counts(const State &state) const {
    std::map<std::string, std::map<NoRoom, int>> counts;
    for (const auto &[key, ended] : ended_)
        if (const auto why = of(state, key)) ++counts[key.session.user][*why];
    return counts;
}

}  // namespace dcs::core
