#pragma once
// Who may run where. The parts of the question are one function each, so that `dcs grain explain`
// asks the very same ones.
#include "scheduler/core/decisions.h"
#include "scheduler/core/reasons.h"

namespace dcs::wire {
struct Needed;
}

namespace dcs::core {

// A slot that is to be filled.
struct Vacancy {
    std::uint64_t senior_to = ~std::uint64_t{0};  // by grains of sessions older than this one only
    Used freed;                                   // what goes with the grain that it is taken from
};

// ---- for ever, by the tables ---------------------------------------------------------------
bool permits(const HostConfig &config, const std::string &user);
bool class_fits(std::uint32_t mask, std::uint32_t host_class);
// It has a program for the host (none named: for any).
bool binary_fits(const Host &host, const std::vector<std::string> &classes);
// Its server reads a form of messages in which the demands can be said.
bool form_fits(const Host &host, wire::Form needed);
// Of the hosts whose server does not, the first in words; empty if there is none.
std::string too_old(const State &state, const wire::Demands &demands);
std::string too_old(const Host &host, const wire::Needed &needed);
bool is_nogo(const Grain &grain, HostId id);
// Why, as far as its moves tell: no_program, cannot_start, failed_there, host_limit, else nogo.
Why why_nogo(const Grain &grain, HostId id);
// The last limit of a server that it exceeded, with the host's name; empty: none.
std::string exceeded_limit(const State &state, const Grain &grain);
// What each host said last that could not start it, as far as its moves tell; in the order of time.
std::vector<std::pair<HostId, std::string>> failed_starts(const Grain &grain);
std::int32_t cores_of(const HostConfig &config);
// Does its server let a grain have as much memory? True while that is not known.
bool limit_permits(const Host &host, const MemoryNeed &need);
bool memory_ever_fits(const Host &host, const MemoryNeed &need);
// With nothing else on it.
bool ever_fits(const Host &host, const Grain &grain);
bool resources_ever_fit(const State &state, HostId id, const std::string &resources);
bool resources_ever_fit(const State &state, HostId id, const Amounts &asks);
// The first of these that is against it.
std::optional<Why> for_ever_not(const State &state, HostId id, const GrainKey &key, const Grain &grain);
// All of these. Liveness does not count, and no mark that lapses.
bool could_run(const State &state, HostId id, const SessionKey &session, const Grain &grain);

// ---- named resources (resources.cc) ---------------------------------------------------------
const Offer *offer_of(const Host &host, const std::string &name);  // null: it has none
Offers all_offers(const Host &host);
Offers indexed_offers(const Host &host, const std::string &resources);  // of these
bool is_of_pool(const State &state, const std::string &name);  // the policy names it, so hosts need not offer it
std::int64_t offered(const State &state, HostId id, const std::string &name);  // by the pool, or this host
bool pool_fits(const State &state, const Amounts &asks);
bool resources_fit(const State &state, HostId id, const std::string &resources, const Vacancy &vacancy);
bool resources_fit(const State &state, HostId id, const Amounts &asks, const Vacancy &vacancy);
// The resources for which earlier grains wait: later ones do not get them.
struct KeptFor {
    std::set<std::string> names;
    bool touches(const Amounts &asks) const;
    void keep(const Amounts &asks);
};
// Of ready grains that could have what they demand of the pool, the first.
std::optional<GrainKey> first_for_pool(const State &state, Instant now);
// "; all 4 of licence are in use by ann/1:7"; `busy`: a host on which something is in use. Empty if that is not why.
std::string resources_in_words(const State &state, const Grain &grain, std::optional<HostId> busy);

// ---- now -----------------------------------------------------------------------------------
// No grain of the user may start: denied by the policy, or as many run as it allows.
bool may_start_none(const State &state, const std::string &user);
bool cores_fit(const State &state, HostId id, std::int32_t cores, const Vacancy &vacancy);
// `thrash` against what the host reported as free, less what was launched there since; memory_mb
// against what other grains asked for, or against the same where the table does not say.
bool memory_fits(const State &state, HostId id, const MemoryNeed &need, const Vacancy &vacancy);
// A pilot that is not heard of because no batch job runs its server; none of its grains is under way.
bool without_job(const State &state, HostId id);
const char *state_word(const State &state, HostId id);  // of a host, for people and programs
bool lacks_program(const Host &host, const std::string &user, std::uint32_t program, Instant now);
bool rests(const Grain &grain, Instant now);
// The host has just returned so many grains of this user that the user gets nothing there for a while.
bool in_trouble(const Host &host, const std::string &user, Instant now);
bool held_back(const Host &host, const GrainKey &key, Instant now);
bool on_probation(const State &state, const Host &host);
// Nothing is against the host as a whole.
bool accepts_now(const State &state, HostId id);
// Could a grain of this shape be taken? If not, none of its queue is considered.
bool shape_fits(const State &state, HostId id, const Shape &shape, const Vacancy &vacancy);
// Would it take the grain now, given a free slot?
bool would_take(const State &state, Instant now, HostId id, const GrainKey &key, const Grain &grain,
                const Vacancy &vacancy);
// The ready grain that comes first for this room: by seniority (or share, then seniority), then by queue order.
// `kept`: for those behind it.
std::optional<GrainKey> first_for_host(const State &state, Instant now, HostId id, const Vacancy &vacancy,
                                       KeptFor *kept = nullptr);

// The grain that would be tried there in the place of a younger session's, if a time slice ended now (usurp.cc).
std::optional<GrainKey> would_usurp(const State &state, Instant now, HostId id);

}  // namespace dcs::core
