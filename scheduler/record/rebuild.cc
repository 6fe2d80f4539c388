#include "scheduler/record/rebuild.h"

#include <algorithm>
#include <set>

#include "scheduler/core/decision.h"
#include "scheduler/record/codec.h"
#include "scheduler/record/paths.h"
#include "scheduler/record/templates.h"

namespace dcs::record {
namespace {

// No file that is read whole here gets near these; a length from a damaged record might.
constexpr std::uint64_t max_log = std::uint64_t{4} << 30;
constexpr std::uint64_t max_status = 4u << 20;
constexpr std::uint64_t max_table = 64u << 20;

constexpr const char *stray_advice = "move it away while the scheduler is stopped";

struct SessionOnDisk {
    core::SessionInfo info;
    std::map<GrainNumber, GrainRecord> grains;
};

Status about(const std::string &path, const Status &why) {
    return fail(why.code, path + ": " + why.text);
}

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

Status read_log(store::Store &store, const SessionKey &key, SessionOnDisk &session) {
    if (session.info.grains_length == 0) return Status::ok();
    const std::string path = session_directory(key) + "/" + grains_file;
    if (session.info.grains_length > max_log)
        return about(path, fail(Code::io_error, "its recorded length is absurd"));
    auto bytes = store.read(path, 0, session.info.grains_length);
    if (!bytes) return about(path, bytes.status());
    if (bytes->size() < session.info.grains_length)
        return about(path, fail(Code::io_error, "it is shorter than recorded"));
    std::string_view log = *bytes;
    while (!log.empty()) {
        auto record = next_grain(log);
        if (!record) return about(path, record.status());
        session.grains[record->number] = std::move(*record);
    }
    return Status::ok();
}

Status read_own_trees(store::Store &store, const SessionKey &key, SessionOnDisk &session) {
    for (auto &[number, record] : session.grains) {
        if (!record.grain.own_tree) continue;
        const std::string path = grain_directory({key, number}) + "/" + status_file;
        auto bytes = store.read(path, 0, max_status);
        if (!bytes) return about(path, bytes.status());
        auto own = decode_grain(*bytes);
        if (!own) return about(path, own.status());
        if (own->number != number || !own->grain.own_tree)
            return about(path, fail(Code::io_error, "it is the status of another grain"));
        record = std::move(*own);
    }
    return Status::ok();
}

// What the checksums cannot tell: records that contradict each other would be our own bug on the
// way to disk. Such a session is better set aside than believed.
Status check_session(const SessionKey &key, const SessionOnDisk &session) {
    std::set<std::int32_t> indices;
    std::set<std::int64_t> positions;
    for (const auto &[number, record] : session.grains) {
        const core::Grain &g = record.grain;
        const std::string name = to_text(GrainKey{key, number});
        if (g.status == core::GrainStatus::finished &&
            (g.result_index < 0 || g.result_index >= session.info.result_count ||
             !indices.insert(g.result_index).second))
            return fail(Code::io_error, "grain " + name + " has no place of its own in the order");
        if (g.status == core::GrainStatus::ready && !positions.insert(g.queue_position).second)
            return fail(Code::io_error, "grain " + name + " shares its place in the queue");
        if (g.status == core::GrainStatus::running && record.host.empty())
            return fail(Code::io_error, "grain " + name + " runs on no host");
    }
    return Status::ok();
}

Result<SessionOnDisk> read_session(store::Store &store, const SessionKey &key) {
    SessionOnDisk session;
    const std::string path = session_directory(key) + "/" + status_file;
    auto bytes = store.read(path, 0, max_status);
    if (!bytes) return about(path, bytes.status());
    auto info = decode_session(*bytes);
    if (!info) return about(path, info.status());
    session.info = std::move(*info);
    if (auto s = read_log(store, key, session); !s) return s;
    if (auto s = read_own_trees(store, key, session); !s) return s;
    if (auto s = check_session(key, session); !s) return about(session_directory(key), s);
    return session;
}

class Builder {
public:
    Builder(store::Store &store, Instant now) : store_(store), now_(now) {}

    Result<Rebuilt> build() {
        auto users = directories(store_, sessions_directory);
        if (!users) return users.status();
        for (const std::string &name : *users) {
            const auto user = decode_login(name);
            if (!user) {
                report(std::string(sessions_directory) + "/" + name,
                       "not the directory of a login name; left alone", "nothing", stray_advice);
                continue;
            }
            if (auto s = add_user(*user); !s) return s;
        }
        read_auth();
        if (const std::string wrong = core::check(out_.state); !wrong.empty())
            return fail(Code::internal, "the rebuilt state contradicts itself: " + wrong);
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
                report(path + "/" + name, "not a session's directory; left alone", "nothing",
                       stray_advice);
                continue;
            }
            const SessionKey key{user, *number};
            auto session = read_session(store_, key);
            if (session && !seniorities_.insert(session->info.seniority).second)
                session = fail(Code::io_error, session_directory(key) +
                                                   ": it has the seniority of another session");
            if (session)
                add_session(key, *session);
            else
                set_aside(key, session.status().text);
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
        if (name.empty()) return core::no_host;
        const core::HostId known = out_.state.host_id(name);
        if (known != core::no_host) return known;
        core::Host host;
        host.config.name = name;
        host.configured = false;
        host.last_contact = now_;
        const auto id = static_cast<core::HostId>(out_.state.hosts.size());
        apply(core::SetHost{id, std::move(host)});
        return id;
    }

    void add_session(const SessionKey &key, SessionOnDisk &session) {
        apply(core::SetSession{key, session.info});
        for (auto &[number, record] : session.grains) {
            record.grain.host = intern(record.host);
            record.grain.nogo.clear();
            for (const std::string &name : record.nogo)
                if (!name.empty()) record.grain.nogo.push_back(intern(name));
            apply(core::SetGrain{{key, number}, std::move(record.grain)});
        }
        out_.state.next_seniority =
            std::max(out_.state.next_seniority, session.info.seniority + 1);
    }

    void read_auth() {
        const std::string path = std::string(auth_directory) + "/" + auth_file;
        auto bytes = store_.read(path, 0, max_table);
        if (!bytes && bytes.status().code == Code::not_found) return;
        Status why = bytes ? Status::ok() : bytes.status();
        if (bytes) {
            auto table = decode_auth(*bytes);
            if (table) {
                for (const auto &[hash, entry] : *table) apply(core::SetAuth{hash, entry});
                return;
            }
            why = table.status();
        }
        report(path, why.text, "control programs that were running when the scheduler started",
               "control programs must be started again to get new tokens");
    }

    store::Store &store_;
    Instant now_;
    std::set<std::uint64_t> seniorities_;
    Rebuilt out_;
};

}  // namespace

Result<Rebuilt> rebuild(store::Store &store, Instant now) { return Builder(store, now).build(); }

}  // namespace dcs::record
