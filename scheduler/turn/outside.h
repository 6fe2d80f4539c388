#pragma once
// Everything that a turn may ask of the world. One real twin (scheduler/shell/real_outside), one
// for tests. Nothing here blocks but the store's reads; nothing calls back into the Turn.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/severity.h"
#include "base/ids.h"
#include "base/instant.h"
#include "scheduler/state/decision.h"
#include "scheduler/library/library.h"
#include "store/store.h"
#include "wire/import_rows.h"
#include "wire/message.h"

namespace dcs::turn {

using Level = Severity;

class Outside {
public:
    virtual ~Outside() = default;
    virtual Instant now() = 0;
    virtual std::int64_t wall_s() = 0;
    virtual std::int64_t wall_ms() { return wall_s() * 1000; }  // for people: it may step
    virtual Token fresh_token() = 0;
    // Queues one frame; an unknown or closed connection is ignored.
    virtual void send(ConnId conn, const wire::AnyMessage &message, core::RequestId request) = 0;
    // Closes after what is queued went out; no Arrival follows.
    virtual void close(ConnId conn) = 0;
    virtual void log(Level level, const std::string &line) = 0;
    // Starts Store::commit(updates, room) elsewhere. Turn::committed() is called with the answer later,
    // never from in here; until then nothing else touches the store.
    virtual void start_commit(std::vector<store::TreeUpdate> updates, store::Room room) = 0;
    // From now on something of this session is at hand (empty: of no particular one). If the
    // process aborts, this is who is suspected.
    virtual void working_on(const SessionKey &session) { (void)session; }
    // From now on something is at hand that a user, or "host NAME", sent, and that is about no session of theirs. If
    // the process aborts, they are named, and no session is blamed.
    virtual void working_for(const std::string &who) { (void)who; }
    // Probes whether the addresses answer, within some seconds; Turn::take_probe_result() is
    // called later with the outcome, never from in here.
    virtual void probe(const core::ProbeHost &probe) { (void)probe; }
    // Does library::work(job) elsewhere; Turn::take_library_job() is called with the outcome later, never
    // from in here. Several may be under way.
    virtual void start_library_job(library::Job job) = 0;
    // The stream of an import, decoded (wire/import_rows.h). Nothing: elsewhere, and Turn::take_import() is called with
    // the rows, or with what is wrong, later, never from in here. Several may be under way.
    virtual std::optional<Result<std::string>> decode_import(std::uint64_t id, std::string stream) {
        (void)id;
        return wire::rows_of_import(stream);
    }
    // Reads the settings files again; what they say arrives by take_host_table() and take_policy(). Fails,
    // with nothing changed, if one of them is wrong.
    virtual Status reread_settings(bool /*move_grains*/) { return Status::ok(); }
    // The door for other hosts: where it is, where that for control programs is, and the SHA-256 of the pool's
    // authority. No address: there is none.
    struct TlsDoor {
        std::string address, users, authority;
    };
    virtual TlsDoor tls_door() { return {}; }
    // For a host, by the pool's authority.
    virtual Result<wire::Joined> issue_certificate(const std::string &host, const std::string &public_key,
                                                   core::HostRole role) {
        (void)host, (void)public_key, (void)role;
        return fail(Code::refused, "this scheduler has no authority");
    }
    // For a control program of another host; the token is left empty.
    virtual Result<wire::Begun> issue_program(const core::SendProgram &program) {
        (void)program;
        return fail(Code::refused, "this scheduler has no authority");
    }
    // May a user of that login name use DCS, as this host's tables of users and groups say?
    virtual Status check_login(const std::string &user) {
        (void)user;
        return Status::ok();
    }
    // Takes the host's line out of the host table and reads the settings again.
    virtual Status remove_host_line(const std::string &host) {
        (void)host;
        return reread_settings(true);
    }
    // What else is wrong that people should know of, for `dcs doctor`.
    virtual std::vector<wire::ProblemRow> more_problems() { return {}; }
    // Where the backing store is; empty: nowhere.
    virtual std::string store_path() { return {}; }
    // How far the backup's copy of the store is; no mode: that is not known here.
    virtual wire::MirrorStatus copy_of_store() { return {}; }
    virtual void set_log_level(const std::string &level) { (void)level; }
    // The disk is in doubt: says so and ends the process without another reply. A test's twin may
    // return; the Turn is dead from then on.
    virtual void fatal(const std::string &why) = 0;
};

}  // namespace dcs::turn
