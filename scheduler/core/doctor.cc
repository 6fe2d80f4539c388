// `dcs doctor`: what the State knows to be wrong, each with what it affects and what to do.
#include <algorithm>

#include "base/known_words.h"
#include "base/text.h"
#include "scheduler/core/placement.h"
#include "scheduler/core/stuck.h"

namespace dcs::core {
namespace {

const std::string others_run = " keeps running, but no unused file leaves the library until this is solved";
constexpr std::size_t most_problems = 100;  // grains listed: the next ones have the same problems

wire::ProblemRow damaged_session(const SessionKey &key, const std::string &why) {
    const std::size_t colon = why.find(": ");
    wire::ProblemRow row;
    row.entity = "session " + to_text(key);
    row.file = colon == std::string::npos ? "" : why.substr(0, colon);
    row.problem = colon == std::string::npos ? why : why.substr(colon + 2);
    row.affects = "the session is set aside with all its grains; everything else" + others_run;
    row.advice =
        "restore the file while the scheduler is stopped, or import an export of it "
        "(dcs session import DIR --replace), or remove it (dcs session clean " +
        to_text(key) + ")";
    return row;
}

// Alone; the rest of its session runs.
wire::ProblemRow damaged_grain(const GrainKey &key, const std::string &why) {
    wire::ProblemRow row = damaged_session(key.session, why);
    row.entity = "grain " + to_text(key);
    row.affects = "the grain is set aside; the rest of its session" + others_run;
    row.advice = "restore the file while the scheduler is stopped, or kill the grain (dcs grain kill " +
                 std::to_string(key.session.number) + ":" + std::to_string(key.grain) + ")";
    return row;
}

std::string age_text(const Draft &d, Instant since) {
    const auto s = static_cast<std::int64_t>((d.now - since).seconds());
    return std::to_string(std::max<std::int64_t>(0, s)) + " s";
}

// last_contact may be the end of a pause of the scheduler.
std::string last_report_text(const Draft &d, const Host &host) {
    return age_text(d, host.last_call == Instant{} ? host.last_contact : host.last_call) + " ago";
}

std::string join_again(const Host &host) {
    return "let it join again (dcs token create --host " + host.config->name +
           (host.refusal.key_removed ? ", with --new-key added to the line that it prints)" : ")");
}

// Of a host that is silent, and calls: the door, or the decision about its call, knows more than its silence says.
void tell_refusal(const Draft &d, const Host &host, wire::ProblemRow &row) {
    const Refusal &refusal = host.refusal;
    if (refusal.why.empty()) return;
    row.problem += "; " + age_text(d, refusal.at) + " ago a call in its name" +
                   (refusal.address.empty() ? "" : " from " + refusal.address) + " was refused: " + refusal.why;
    const std::string join = join_again(host);
    row.advice = refusal.clock ? "set the clocks of that host and of this one right; if they are, " + join : join;
}

// Of an active host.
enum class Trouble : std::uint8_t {
    none,
    later_epoch,
    two_servers,
    too_open,
    no_launcher,
    full_disk,
    no_connection,
    silent,
    warned
};
constexpr Duration contested_for = seconds(45);  // a server that is refused asks at least every 15 s

// A host that restarts, or whose scheduler does, needs a moment.
Duration patience(const Host &host) { return std::min(host.config->interval * 2, seconds(60)); }

Trouble trouble_of(const Draft &d, const Host &host) {
    if (host.shut.starts_with(later_epoch_words)) return Trouble::later_epoch;
    if (host.contested != Instant{} && d.now - host.contested < contested_for) return Trouble::two_servers;
    if (too_open(host)) return Trouble::too_open;
    if (host.shut == no_launcher_words) return Trouble::no_launcher;
    if (host.shut == full_disk_words) return Trouble::full_disk;
    const Duration silence = d.now - host.last_contact;
    if (host.conn == no_connection) return silence > patience(host) ? Trouble::no_connection : Trouble::none;
    if (silence > host.config->interval + patience(host)) return Trouble::silent;
    return host.warning.empty() ? Trouble::none : Trouble::warned;
}

std::string place_text(const std::string &address) { return address.empty() ? "" : " at " + address; }

void tell_trouble(const Draft &d, const Host &host, Trouble trouble, wire::ProblemRow &row) {
    switch (trouble) {
    case Trouble::none: return;
    case Trouble::later_epoch:
        row.problem = std::string(refuses_scheduler_words) + host.shut + ": a copy of its store was promoted";
        row.affects = "the pool has another scheduler, which continues from that copy";
        row.advice =
            "stop this scheduler; if its directory was empty because a disk is not mounted, mount it and start again; "
            "if this is a new pool, stop that grain server and remove `configured` from its directory";
        return;
    case Trouble::two_servers:
        row.problem = "is the name of two grain servers that run: the one" + place_text(host.address) +
                      " is connected, another" + place_text(host.contested_from) + " was refused " +
                      age_text(d, host.contested) + " ago (while it runs, every 15 s)";
        row.affects = "grains that the refused server runs, if it has any: they were started again elsewhere";
        row.advice =
            "end one of them, or let it join under a name of its own (dcs token create --host NAME); of a pilot only "
            "one job may run (`dcs pilot ls`)";
        return;
    case Trouble::too_open:
        row.problem = "is " + too_open_text(host);
        row.affects += ", which get no grains";
        row.advice =
            "start its grain server with the --confine, --run-as and --grain-network that provide this, or "
            "require less in the host table (require_confinement)";
        return;
    case Trouble::no_launcher:
        row.problem = "accepts no grains: " + host.shut;
        row.affects += ", which get no grains; what ran there runs again when it is back";
        row.advice = "start it there (systemctl start dcs-launcher); its log says why it ended";
        return;
    case Trouble::full_disk:
        row.problem = "accepts no grains: " + host.shut;
        row.affects += ", which get no grains; what ends there runs again elsewhere";
        row.advice = "make room where its grain server has its directory (--dir); it accepts grains again by itself";
        return;
    case Trouble::no_connection:
        row.problem = "is not connected: it last reported " + last_report_text(d, host);
        row.affects += ", which get no grains; what runs there stays until the host is delinquent";
        tell_refusal(d, host, row);
        return;
    case Trouble::silent:
        row.problem = "is connected, but last reported " + last_report_text(d, host);
        row.affects += "; what runs there stays until the host is delinquent";
        row.advice = "check that its machine and its grain server are not suspended or overloaded";
        return;
    case Trouble::warned:
        row.problem = "runs grains with a warning: " + host.warning;
        row.advice = "docs/GRAIN_HOSTS.md, sections 2 and 3; its logs and `launcher.log` have the cause";
        return;
    }
}

std::string number_of(std::size_t n, const char *noun) { return std::to_string(n) + " " + noun + (n == 1 ? "" : "s"); }

std::string grains_there(std::size_t grains) {
    return number_of(grains, "grain") + (grains == 1 ? " that runs there" : " that run there");
}

// Its line was removed, perhaps by mistake, and its grain server runs on.
std::optional<wire::ProblemRow> unlisted_host(const Draft &d, const Host &host) {
    const Refusal &refusal = host.refusal;
    if (refusal.why.empty() || d.now - refusal.at > contested_for) return {};
    return wire::ProblemRow{
        "host " + host.config->name, "",
        "is not in the host table, and its grain server" + place_text(refusal.address) +
            " calls: " + age_text(d, refusal.at) + " ago it was refused: " + refusal.why,
        "what ran there starts again on other hosts",
        (refusal.key_removed ? "put its line back, run `dcs reload` and " + join_again(host)
                             : std::string("put its line back and run `dcs reload`: grains that were not started "
                                           "elsewhere by then continue there; in a pool of `dcs up`, "
                                           "`dcs up --local N` does both")) +
            "; or stop that grain server"};
}

std::optional<wire::ProblemRow> host_problem(const Draft &d, HostId id) {
    const Host &host = *d.state.host(id);
    if (!host.configured) return unlisted_host(d, host);
    const Trouble trouble = host.status == HostStatus::active ? trouble_of(d, host) : Trouble::none;
    if (host.status == HostStatus::active && trouble == Trouble::none) return {};
    const bool expected =
        host.status == HostStatus::unknown && host.refusal.why.empty() && d.now - host.last_contact <= patience(host);
    if (expected) return {};
    const std::size_t running = d.state.running[static_cast<std::size_t>(id)].size();
    if (without_job(d.state, id)) return {};
    wire::ProblemRow row;
    row.entity = "host " + host.config->name;
    row.affects = number_of(static_cast<std::size_t>(std::max(0, host.config->slots)), "slot");
    row.advice = "check that its grain server runs and can reach the scheduler; in a private pool `dcs up` restarts it";
    if (host.status == HostStatus::active) {
        tell_trouble(d, host, trouble, row);
    } else if (host.status == HostStatus::unknown || host.last_call == Instant{}) {
        row.problem = "has not called in since the scheduler started or the host was added, " +
                      age_text(d, host.last_contact) + " ago";
        const auto &keys = d.state.trust.keys;
        if (!keys.empty() && keys.count(host.config->name) == 0) {
            row.problem += "; no machine has joined under this name";
            row.advice = "`dcs token create --host " + host.config->name + "` prints the command with which it joins";
        }
        if (running > 0) row.affects += ", " + grains_there(running);
    } else if (host.status == HostStatus::delinquent) {
        row.problem = "is delinquent: it last reported " + last_report_text(d, host);
        row.affects +=
            ", " + grains_there(running) + (running == 1 ? "; it moves" : "; they move") + " if the host stays silent";
    } else {
        row.problem = "is dead: it last reported " + last_report_text(d, host);
        row.affects += "; its grains have moved";
    }
    if (host.status != HostStatus::active) tell_refusal(d, host, row);
    return row;
}

// Hosts that are well and still get nothing, all of them: what operators set, and may have forgotten.
std::optional<wire::ProblemRow> closed_pool(const Draft &d) {
    int drained = 0, without_slots = 0, shut = 0;
    for (const Host &host : d.state.hosts) {
        if (!host.configured || host.status != HostStatus::active || too_open(host)) continue;
        if (host.setting.drained) ++drained;
        else if (host.config->slots == 0) ++without_slots;
        else if (!host.shut.empty()) ++shut;
        else return {};
    }
    if (drained + without_slots + shut == 0) return {};
    wire::ProblemRow row;
    row.entity = "pool";
    row.problem = "no host takes grains: " + std::to_string(drained) + " drained, " + std::to_string(without_slots) +
                  " without slots" + (shut > 0 ? ", " + std::to_string(shut) + " shut" : "");
    row.affects = "every grain that waits";
    row.advice = drained > 0         ? "dcs host undrain NAME"
                 : without_slots > 0 ? "dcs host set NAME --slots N"
                                     : "dcs host show NAME says why it is shut; it opens by itself";
    return row;
}

// A copy of a virtual machine has the key of its original, so each can connect as the other.
void add_shared_keys(const State &state, std::vector<wire::ProblemRow> &problems) {
    std::map<TokenHash, std::vector<std::string>> names;
    for (const auto &[name, key] : state.trust.keys) names[key].push_back(name);
    for (const auto &[key, hosts] : names)
        if (hosts.size() > 1)
            problems.push_back({"host " + hosts[1], "", "has the same key as host " + hosts[0],
                                "either can speak for the other",
                                "remove the key from the directory of the copy, and let it join again (dcs token "
                                "create --host NAME)"});
}

// A host that waits asks every few seconds.
constexpr Duration asks_again = seconds(60);

// They ask again and again, and nothing else tells an operator of them.
void add_pending(const Draft &d, std::vector<wire::ProblemRow> &problems) {
    for (const auto &[key, host] : d.state.pending) {
        if (host.asked + asks_again < d.now) continue;  // it has given up
        const auto &keys = d.state.trust.of(host.role);
        const auto had = keys.find(host.host);
        const bool other = had != keys.end() && had->second != key;  // which approve_host() replaces only when told
        const std::string asked = "; it asked " + age_text(d, host.asked) + " ago",
                          approve = "dcs host approve " + host.host + " " + in_words(key);
        problems.push_back(
            {"host " + host.host, "",
             (other ? "has joined, and another machine, at " + host.address + ", asks to join under its name"
                    : "waits at " + host.address + " for approval to join") +
                 asked,
             other ? "the other machine is not in the pool" : "it is not in the pool",
             other ? "find out whose machine that is; if it takes the place of this host: " + approve + " --replace"
                   : "compare the words with those that it shows: " + approve});
    }
}

// How often it came back from hosts, why, and what becomes of it.
wire::ProblemRow circling_grain(const Draft &d, const GrainKey &key) {
    const Grain &g = *d.state.grain(key);
    const std::string name = to_text(key);
    const bool ran = g.course->returns >= limits::returns_told;
    wire::ProblemRow row;
    row.entity = "grain " + to_text(key);
    row.problem = ran ? "was returned " + std::to_string(g.course->returns) + " times in a row"
                      : "could not be started " + std::to_string(g.recent->refusals) + " times in a row";
    if (!g.course->moves->empty()) {
        const Host *host = d.state.host(g.course->moves->back().host);
        row.problem +=
            ", most recently" + (host ? " by " + host->config->name : "") + ": " + g.course->moves->back().detail;
    }
    const auto pause = static_cast<std::int64_t>((g.recent->rest_until - d.now).seconds()) + 1;
    row.affects = g.recent->rest_until > d.now ? "it pauses; the next attempt is in " + std::to_string(pause) + " s"
                                               : "an attempt is in progress";
    if (ran) row.affects += "; after " + std::to_string(limits::returns) + " times it fails";
    row.advice = "look at it with dcs grain show " + name + "; dcs grain restart " + name +
                 " tries it at once, dcs grain kill " + name + " ends it";
    return row;
}

// The one that the host table names; it is on another host, so no process here can ask it.
std::optional<wire::ProblemRow> backup_problem(const Draft &d) {
    const std::string &name = d.state.backup_host.name;
    const BackupLink &link = d.state.backup;
    const bool joined = d.state.trust.backups.count(name) != 0;
    if (name.empty() || (joined && link.conn != no_connection && link.host == name)) return {};
    wire::ProblemRow row;
    row.entity = "backup " + name;
    row.problem = joined ? "is not connected" : "has not joined, or its certificate has been revoked";
    row.affects = "while the scheduler is away, reports wait on the hosts of the grains";
    row.advice = joined ? "check that dcs_backupd runs on " + name +
                              " and can reach the scheduler; if its copy has "
                              "been promoted, stop this scheduler"
                        : "`dcs token create --host " + name + " --role backup` prints the command with which it joins";
    return row;
}

// They hold slots until their results are recorded.
wire::ProblemRow unrecorded_grains(const std::string &user, NoRoom why, int grains) {
    wire::ProblemRow row{.entity = "user " + user};
    row.problem =
        std::to_string(grains) +
        (grains == 1 ? " grain has ended, but its result waits: " : " grains have ended, but their results wait: ") +
        (why == NoRoom::of_user ? "the user exceeds the share of the scheduler's disk, which is nearly full"
                                : "the scheduler's disk is full");
    row.affects = std::to_string(grains) + (grains == 1 ? " slot, which it holds" : " slots, which they hold") +
                  " until the result is recorded";
    row.advice = "free space on the scheduler's disk, or let " + user +
                 " remove closed sessions (dcs session clean); the results then arrive by themselves";
    return row;
}

std::optional<wire::ProblemRow> empty_table(const Draft &d) {
    for (const Host &host : d.state.hosts)
        if (host.configured) return {};
    return wire::ProblemRow{"host table", "", "it has no hosts that run grains", "no grain can run",
                            "add hosts to it and run `dcs reload`"};
}

std::string mib(std::uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

// Who an operator asks for space.
std::optional<wire::ProblemRow> users_of_full_disk(const Draft &d) {
    constexpr std::size_t most_named = 5;
    const auto free = d.state.stored.free_bytes();
    if (!free || *free >= limits::library_leaves_bytes || d.state.stored.users().empty()) return {};
    std::vector<std::pair<std::string, UserStored>> users(d.state.stored.users().begin(), d.state.stored.users().end());
    const std::size_t named = std::min(users.size(), most_named);
    std::partial_sort(users.begin(), users.begin() + static_cast<std::ptrdiff_t>(named), users.end(),
                      [](const auto &a, const auto &b) { return a.second.all() > b.second.all(); });
    std::string words;
    for (std::size_t i = 0; i < named; ++i)
        words += (i > 0 ? ", " : "") + users[i].first + " " + mib(users[i].second.sessions) + " and " +
                 mib(users[i].second.contents);
    return wire::ProblemRow{"backing store", "",
                            "its users are, by their sessions and contents: " + words +
                                (users.size() > named ? ", " + std::to_string(users.size() - named) + " more" : ""),
                            "",
                            "dcs session ls all shows what each session stores; dcs session clean USER/all removes a "
                            "user's closed sessions"};
}

}  // namespace

void doctor(Draft &d, const Caller &caller, const wire::Doctor &) {
    std::vector<wire::ProblemRow> problems;
    for (const auto &[key, why] : d.state.set_aside) problems.push_back(damaged_session(key, why));
    for (const auto &[key, session] : d.state.sessions)
        for (const auto &[number, why] : session.damaged) problems.push_back(damaged_grain(GrainKey{key, number}, why));
    for (const GrainKey &key : d.state.circling) {
        if (problems.size() >= most_problems) break;
        if (!caller.privileged && caller.user != key.session.user) continue;
        if (d.state.session(key.session)->info.status != SessionStatus::active) continue;  // nothing of it runs
        problems.push_back(circling_grain(d, key));
    }
    for (const auto &[user, reasons] : d.state.unrecorded.counts(d.state))
        for (const auto &[why, grains] : reasons)
            if (caller.privileged || caller.user == user) problems.push_back(unrecorded_grains(user, why, grains));
    for (std::size_t i = 0; i < d.state.hosts.size(); ++i)
        if (auto row = host_problem(d, static_cast<HostId>(i))) problems.push_back(std::move(*row));
    add_shared_keys(d.state, problems);
    if (caller.privileged) add_pending(d, problems);
    if (auto row = backup_problem(d)) problems.push_back(std::move(*row));
    if (auto row = empty_table(d)) problems.push_back(std::move(*row));
    if (auto row = caller.privileged ? users_of_full_disk(d) : std::nullopt) problems.push_back(std::move(*row));
    if (auto row = closed_pool(d)) problems.push_back(std::move(*row));
    add_stuck(d, caller, problems.size() + most_problems, problems);
    d.effect(ReplyDoctor{caller.conn, caller.request, std::move(problems)});
}

}  // namespace dcs::core
