#include "scheduler/record/rebuild.h"

#include <algorithm>
#include <set>

#include "base/planted.h"
#include "scheduler/state/decision.h"
#include "scheduler/record/codec.h"
#include "scheduler/record/paths.h"
#include "store/names.h"

namespace dcs::record {
namespace {

// No file that is read whole here gets near these; a length from a damaged record might.
constexpr std::uint64_t max_log = std::uint64_t{4} << 30;
constexpr std::uint64_t max_status = 4u << 20;
constexpr std::uint64_t max_marker = 4096;
constexpr std::uint64_t max_table = 64u << 20;

constexpr const char *stray_advice = "move it away while the scheduler is stopped";

// A session as it was read; its grains' hosts are indexes into `hosts` until the State knows them.
struct SessionOnDisk {
    core::SessionInfo info;
    std::map<GrainNumber, core::Grain> grains;
    std::map<GrainNumber, std::string> damaged;
    std::vector<std::string> hosts;

    std::map<std::string, core::HostId> known;

    Result<GrainRecord> decode(std::string_view record) {
        return decode_grain(record, [this](const std::string &name) {
            const auto [it, fresh] = known.emplace(name, static_cast<core::HostId>(hosts.size()));
            if (fresh) hosts.push_back(name);
            return it->second;
        });
    }
};

Status about(const std::string &path, const Status &why) { return fail(why.code, path + ": " + why.text); }

// Names in a directory, without the '/' that marks directories. A missing one is empty.
Result<std::vector<std::string>> directories(store::Store &store, const std::string &path) {
    auto names = store.list(path);
    if (!names) {
        if (names.status().code == Code::not_found) return std::vector<std::string>();
        return about(path, names.status());
    }
    std::vector<std::string> found;
    for (std::string &name : *names) {
        if (name.empty() || name.back() != '/') continue;
        name.pop_back();
        found.push_back(std::move(name));
    }
    return found;
}

// Of each grain the last record counts; only that one is decoded.
Status take_log(std::string_view log, SessionOnDisk &session) {
    std::vector<GrainEntry> entries;
    while (!log.empty()) {
        auto entry = next_grain(log);
        if (!entry) return entry.status();
        entries.push_back(*entry);
    }
    const auto before = [](const GrainEntry &a, const GrainEntry &b) { return a.number < b.number; };
    std::stable_sort(entries.begin(), entries.end(), before);
    for (std::size_t i = 0; i < entries.size(); ++i) {
        const GrainEntry &entry = entries[i];
        if (i + 1 < entries.size() && entries[i + 1].number == entry.number) continue;
        auto record = session.decode(entry.record);
        if (!record) return record.status();
        session.info.grains_live += entry.record.size();
        core::DurableGrain &grain = record->grain;
        if (!session.grains.empty()) grain.demands = {*grain.demands, session.grains.rbegin()->second.demands};
        session.grains.emplace_hint(session.grains.end(), entry.number, core::Grain(std::move(grain)));
    }
    return Status::ok();
}

Status read_log(store::Store &store, const SessionKey &key, SessionOnDisk &session) {
    if (session.info.grains_length == 0) return Status::ok();
    const std::string path = session_directory(key) + "/" + grains_file;
    if (session.info.grains_length > max_log)
        return about(path, fail(Code::io_error, "its recorded length is impossible"));
    auto bytes = store.read(path, 0, session.info.grains_length);
    if (!bytes) return about(path, bytes.status());
    if (bytes->size() < session.info.grains_length)
        return about(path, fail(Code::io_error, "it is shorter than recorded"));
    if (auto s = take_log(*bytes, session); !s) return about(path, s);
    return Status::ok();
}

// A tree that the store, or this scheduler, has set aside: the marker's text, as an error.
Status check_marker(store::Store &store, const std::string &directory) {
    const std::string path = directory + "/" + store::damage_marker;
    auto text = store.read(path, 0, max_marker);
    if (!text && text.status().code == Code::not_found) return Status::ok();
    if (text) text->erase(text->find_last_not_of('\n') + 1);
    return about(path, text ? fail(Code::io_error, *text) : text.status());
}

Result<GrainRecord> read_own_tree(store::Store &store, const GrainKey &key, SessionOnDisk &session) {
    if (auto s = check_marker(store, grain_directory(key)); !s) return s;
    const std::string path = grain_directory(key) + "/" + status_file;
    auto bytes = store.read(path, 0, max_status);
    if (!bytes) return about(path, bytes.status());
    auto own = session.decode(*bytes);
    if (!own) return about(path, own.status());
    if (own->number != key.grain || !own->grain.own_tree)
        return about(path, fail(Code::io_error, "it is the status of another grain"));
    return own;
}

// A grain whose own tree is damaged is set aside alone, the rest of its session runs.
Status read_own_trees(store::Store &store, const SessionKey &key, SessionOnDisk &session) {
    for (auto it = session.grains.begin(); it != session.grains.end();) {
        const GrainNumber number = it->first;
        if (it->second.own_tree) {
            auto own = read_own_tree(store, GrainKey{key, number}, session);
            if (!own && own.status().code == Code::protocol) return own.status();
            if (!own) {
                session.damaged[number] = own.status().text;
                it = session.grains.erase(it);
                continue;
            }
            it->second = core::Grain(std::move(own->grain));
        }
        ++it;
    }
    return Status::ok();
}

// What the checksums cannot tell: records that contradict each other would be our own bug on the
// way to disk. Such a session is better set aside than believed.
Status check_session(const SessionKey &key, const SessionOnDisk &session) {
    std::vector<bool> taken(static_cast<std::size_t>(std::max(0, session.info.result_count)));
    std::vector<std::pair<std::int64_t, GrainNumber>> queue;
    const auto wrong = [&](GrainNumber number, const char *what) {
        return fail(Code::io_error, "grain " + to_text(GrainKey{key, number}) + what);
    };
    for (const auto &[number, g] : session.grains) {
        if (const auto *end = std::get_if<core::Finished>(&g.phase)) {
            const auto place = static_cast<std::size_t>(end->result_index);  // -1 is beyond all
            if (place >= taken.size() || taken[place])
                return wrong(number,
                             " has no place of its own in the order of "
                             "results");
            taken[place] = true;
        } else if (const auto *ready = std::get_if<core::Ready>(&g.phase)) {
            queue.emplace_back(ready->queue_position, number);
        } else if (g.status() == core::GrainStatus::running && g.lessee == core::no_host) {
            return wrong(number, " runs on no host");
        }
    }
    std::sort(queue.begin(), queue.end());
    for (std::size_t i = 1; i < queue.size(); ++i)
        if (queue[i].first == queue[i - 1].first)
            return wrong(queue[i].second, " has the same place in the queue as another");
    return Status::ok();
}

// The planted bug: results in the order of their grains' numbers, not of their ends.
void order_by_number(SessionOnDisk &session) {
    std::int32_t index = 0;
    for (auto &[number, grain] : session.grains)
        if (auto *end = std::get_if<core::Finished>(&grain.phase)) end->result_index = index++;
}

Result<SessionOnDisk> read_session(store::Store &store, const SessionKey &key) {
    SessionOnDisk session;
    if (auto s = check_marker(store, session_directory(key)); !s) return s;
    const std::string path = session_directory(key) + "/" + status_file;
    auto bytes = store.read(path, 0, max_status);
    if (!bytes) return about(path, bytes.status());
    auto info = decode_session(*bytes);
    if (!info) return about(path, info.status());
    session.info = std::move(*info);
    if (auto s = read_log(store, key, session); !s) return s;
    if (auto s = read_own_trees(store, key, session); !s) return s;
    if (auto s = check_session(key, session); !s) return about(session_directory(key), s);
    if (planted("record.order_by_number")) order_by_number(session);
    return session;
}

class Builder {
public:
    Builder(store::Store &store, Instant now, const Watcher &watcher) : store_(store), now_(now), watcher_(watcher) {}

    Result<Rebuilt> build() {
        auto users = directories(store_, sessions_directory);
        if (!users) return users.status();
        for (const std::string &name : *users) {
            const auto user = decode_login(name);
            if (!user) {
                report(std::string(sessions_directory) + "/" + name, "not the directory of a login name; left alone",
                       "nothing", stray_advice);
                continue;
            }
            if (auto s = add_user(*user); !s) return s;
        }
        if (Status s = read_tables(); !s) return s;
        if (const std::string wrong = core::check(out_.state); !wrong.empty())
            return fail(Code::internal, "the rebuilt state is inconsistent: " + wrong);
        return std::move(out_);
    }

private:
    Status add_user(const std::string &user) {
        const std::string path = std::string(sessions_directory) + "/" + encode_login(user);
        auto numbers = directories(store_, path);
        if (!numbers) return numbers.status();
        for (const std::string &name : *numbers) {
            const auto number = number_of(name);
            if (!number) {
                report(path + "/" + name, "not a session's directory; left alone", "nothing", stray_advice);
                continue;
            }
            const SessionKey key{user, *number};
            if (watcher_) watcher_(key);
            auto session = read_session(store_, key);
            if (session && !seniorities_.insert(session->info.seniority).second)
                session = fail(Code::io_error, session_directory(key) + ": another session has the same seniority");
            if (session) add_session(key, *session);
            else if (session.status().code == Code::protocol)
                return session.status();  // nothing of it may be written, or removed as damaged
            else set_aside(key, session.status().text);
        }
        return Status::ok();
    }

    void set_aside(const SessionKey &key, const std::string &why) {
        out_.set_aside[key] = why;
        out_.reports.push_back("session " + to_text(key) + " is set aside: " + why);
    }

    void report(const std::string &file, const std::string &problem, const std::string &affects,
                const std::string &advice) {
        out_.reports.push_back(file + ": " + problem + "; " + advice);
        out_.problems.push_back({"backing store", file, problem, affects, advice});
    }

    void apply(const core::Change &change) {
        core::Undo undo;
        core::apply(out_.state, change, undo);
    }

    core::HostId intern(const std::string &name) {
        const core::HostId known = out_.state.host_id(name);
        if (known != core::no_host) return known;
        core::Host host;
        core::HostConfig config;
        config.name = name;
        host.config = config;
        host.configured = false;
        host.last_contact = now_;
        const auto id = static_cast<core::HostId>(out_.state.hosts.size());
        apply(core::SetHost{id, std::move(host)});
        return id;
    }

    void add_session(const SessionKey &key, SessionOnDisk &session) {
        std::vector<core::HostId> ids;
        for (const std::string &name : session.hosts) ids.push_back(intern(name));
        for (auto &[number, grain] : session.grains) {
            const auto resolve = [&](core::HostId &id) {
                if (id == core::no_host) return;
                DCS_REQUIRE(static_cast<std::size_t>(id) < ids.size(), "a host of a record has a name");
                id = ids[static_cast<std::size_t>(id)];
            };
            resolve(grain.lessee);
            resolve(grain.old_lease.host);
            if (!grain.nogo->empty())
                for (core::HostId &id : grain.nogo.edit()) resolve(id);
            if (!grain.moves->empty())
                for (core::Move &move : grain.moves.edit()) resolve(move.host);
        }
        for (const auto &[number, why] : session.damaged)
            out_.reports.push_back("grain " + to_text(GrainKey{key, number}) + " is set aside: " + why);
        core::load_session(out_.state, key, session.info, std::move(session.grains), std::move(session.damaged));
    }

    // A table that is damaged is reported, and is empty. One that a newer release wrote must not be written over.
    template <class Table, class Take>
    Status read_table(const std::string &path, Result<Table> (*decode)(std::string_view), const char *affects,
                      const char *advice, Take take) {
        auto bytes = store_.read(path, 0, max_table);
        if (!bytes && bytes.status().code == Code::not_found) return Status::ok();
        auto table = bytes ? decode(*bytes) : Result<Table>(bytes.status());
        if (table) take(std::move(*table));
        else if (table.status().code == Code::protocol) return about(path, table.status());
        else report(path, table.status().text, affects, advice);
        return Status::ok();
    }

    Status read_tables() {
        const auto path = [](const char *directory, const char *file) { return std::string(directory) + "/" + file; };
        if (Status s = read_table(path(auth_directory, auth_file), decode_auth,
                                  "control programs that were running when the scheduler started",
                                  "control programs must be started again to get new tokens",
                                  [this](AuthTable table) {
                                      for (const auto &[hash, entry] : table.tokens) apply(core::SetAuth{hash, entry});
                                      for (const auto &[user, number] : table.last_numbers)
                                          apply(core::SetLastNumber{user, number});
                                  });
            !s)
            return s;
        if (Status s = read_table(path(hosts_directory, hosts_file), decode_hosts, "the hosts' statistics",
                                  "do nothing; they start from zero",
                                  [this](auto table) {
                                      for (const auto &[name, record] : table) add_host(name, record);
                                  });
            !s)
            return s;
        // Without it no certificate counts.
        if (Status s = read_table(path(trust_directory, trust_file), decode_trust,
                                  "hosts that joined with certificates: they are refused",
                                  "join them again: `dcs token create`, then `dcs host join` on each",
                                  [this](core::Trust trust) { apply(core::SetTrust{std::move(trust)}); });
            !s)
            return s;
        // Without it leases and sequence numbers alone decide what is taken again.
        return read_table(path(handed_over_directory, handed_over_file), decode_handed_over,
                          "the record of which of the backup's reports are recorded",
                          "do nothing; repeated reports are recognised", [this](auto table) {
                              for (const auto &[host, up_to] : table) apply(core::SetHandedOver{host, up_to});
                          });
    }

    void add_host(const std::string &name, const core::DurableHost &record) {
        const core::HostId id = intern(name);
        core::Host host = *out_.state.host(id);
        static_cast<core::DurableHost &>(host) = record;
        apply(core::SetHost{id, std::move(host)});
    }

    store::Store &store_;
    Instant now_;
    const Watcher &watcher_;
    std::set<std::uint64_t> seniorities_;
    Rebuilt out_;
};

}  // namespace

Result<Rebuilt> rebuild(store::Store &store, Instant now, const Watcher &watcher) {
    return Builder(store, now, watcher).build();
}

}  // namespace dcs::record
