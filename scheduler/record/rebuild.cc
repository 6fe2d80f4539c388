#include "scheduler/record/rebuild.h"

#include <set>

#include "scheduler/state/decision.h"
#include "scheduler/record/codec.h"
#include "scheduler/record/paths.h"
#include "scheduler/record/read_session.h"

namespace dcs::record {
namespace {

// No table gets near this; a length from a damaged directory might.
constexpr std::uint64_t max_table = 64u << 20;

constexpr const char *stray_advice = "move it away while the scheduler is stopped";

// Names in a directory, without the '/' that marks directories. A missing one is empty.
Result<std::vector<std::string>> directories(store::Store &store, const std::string &path) {
    auto names = store.list(path);
    if (!names) {
        if (names.status().code == Code::not_found) return std::vector<std::string>();
        return of_file(path, names.status());
    }
    std::vector<std::string> found;
    for (std::string &name : *names) {
        if (name.empty() || name.back() != '/') continue;
        name.pop_back();
        found.push_back(std::move(name));
    }
    return found;
}

class Builder {
public:
    Builder(store::Store &store, Instant now, const Watcher &watcher) : store_(store), now_(now), watcher_(watcher) {}

    Result<Rebuilt> build() {
        if (Status s = read_hosts(); !s) return s;  // first: grains of large sessions name hosts that are known then
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
        if (const std::string wrong = core::check(out_.state, sifted_); !wrong.empty())
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
            auto session = read_session(store_, key, out_.state.host_ids);
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
        for (const std::string &name : session.hosts.further()) intern(name);
        for (const auto &[number, why] : session.damaged)
            out_.reports.push_back("grain " + to_text(GrainKey{key, number}) + " is set aside: " + why);
        core::Sifted &sifted = sifted_[key] = std::move(session.sifted);
        core::load_session(out_.state, key, std::move(session), sifted);
    }

    // A table that is damaged is reported, and is empty. One that a newer release wrote must not be written over.
    template <class Table, class Take>
    Status read_table(const std::string &path, Result<Table> (*decode)(std::string_view), const char *affects,
                      const char *advice, Take take) {
        auto bytes = store_.read(path, 0, max_table);
        if (!bytes && bytes.status().code == Code::not_found) return Status::ok();
        auto table = bytes ? decode(*bytes) : Result<Table>(bytes.status());
        if (table) take(std::move(*table));
        else if (table.status().code == Code::protocol) return of_file(path, table.status());
        else report(path, table.status().text, affects, advice);
        return Status::ok();
    }

    static std::string path(const char *directory, const char *file) { return std::string(directory) + "/" + file; }

    Status read_hosts() {
        return read_table(path(hosts_directory, hosts_file), decode_hosts, "the hosts' statistics",
                          "do nothing; they start from zero", [this](auto table) {
                              for (const auto &[name, record] : table) add_host(name, record);
                          });
    }

    Status read_tables() {
        if (Status s = read_table(path(auth_directory, auth_file), decode_auth,
                                  "control programs that were running when the scheduler started",
                                  "control programs must be started again to get new tokens",
                                  [this](AuthTable table) {
                                      for (const auto &[hash, entry] : table.tokens) apply(core::SetAuth{hash, entry});
                                      for (const auto &[user, number] : table.last_numbers)
                                          apply(core::SetLastNumber{user, number, table.last_leases[user]});
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
    std::map<SessionKey, core::Sifted> sifted_;
    Rebuilt out_;
};

}  // namespace

Result<Rebuilt> rebuild(store::Store &store, Instant now, const Watcher &watcher) {
    return Builder(store, now, watcher).build();
}

}  // namespace dcs::record
