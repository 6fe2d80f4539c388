#pragma once
// A scheduler without sockets and threads: a Turn over the real store on a simulated disk, talked
// to in whole frames of real bytes; and grain servers that are a few lines of bookkeeping.
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/record/rebuild.h"
#include "scheduler/turn/turn.h"
#include "support/sim_disk.h"

namespace dcs::test {

struct Sent {
    ConnId conn{};
    std::uint64_t request = 0;
    wire::AnyMessage message;
};

class ScriptedOutside final : public turn::Outside {
public:
    Instant now() override { return clock = clock + tick; }
    std::int64_t wall_s() override { return wall; }
    Token fresh_token() override;
    void send(ConnId conn, const wire::AnyMessage &message, core::RequestId request) override;
    void close(ConnId conn) override { closed.push_back(conn); }
    void log(turn::Level level, const std::string &line) override;
    void start_commit(std::vector<store::TreeUpdate> updates, store::Room with) override;
    void start_library_job(library::Job done) override { library_jobs.push_back(std::move(done)); }
    std::optional<Result<std::string>> decode_import(std::uint64_t id, std::string stream) override {
        if (!decodes_later) return Outside::decode_import(id, std::move(stream));
        to_decode[id] = std::move(stream);
        return std::nullopt;
    }
    void fatal(const std::string &why) override { died = why; }
    wire::MirrorStatus copy_of_store() override { return copy; }
    TlsDoor tls_door() override { return {"pool:7001", std::string(32, 'a')}; }
    Result<wire::Joined> issue_certificate(const std::string &name, const std::string &key,
                                           core::HostRole role) override {
        if (!authority) return Outside::issue_certificate(name, key, role);
        const char *of = role == core::HostRole::client   ? "certificate of client "
                         : role == core::HostRole::backup ? "certificate of backup "
                                                          : "certificate of ";
        return wire::Joined{name, of + name, "authority"};
    }
    Result<wire::Begun> issue_program(const core::SendProgram &p) override {
        if (!authority) return Outside::issue_program(p);
        return wire::Begun{"", "certificate of " + p.user + "/" + p.host + "/" + p.ident, "authority"};
    }
    Status check_login(const std::string &user) override {
        looked_up.push_back(user);
        return login;
    }
    Status reread_settings(bool) override { return reread ? reread() : Status::ok(); }
    Status remove_host_line(const std::string &name) override {
        removed_lines.push_back(name);
        return line_stays;
    }

    Instant clock{seconds(1000).ns};
    Duration tick{};  // by which it goes on at each look
    std::int64_t wall = 1'000'000'000;
    std::uint8_t tokens = 0;
    std::deque<Sent> sent;
    std::vector<ConnId> closed;
    std::vector<std::string> lines;
    std::optional<std::vector<store::TreeUpdate>> job;
    store::Room room = store::Room::ordinary;  // of that job
    bool decodes_later = false;
    std::map<std::uint64_t, std::string> to_decode;  // streams of imports, then
    std::deque<library::Job> library_jobs;           // done by Pool::do_library_jobs()
    std::string died;
    wire::MirrorStatus copy;
    std::vector<std::string> removed_lines, looked_up;
    Status line_stays;
    std::function<Status()> reread;
    Status login;           // what the tables of users say
    bool authority = true;  // it signs
};

core::HostConfig host(const std::string &name, int slots);

class Pool {
public:
    explicit Pool(std::vector<core::HostConfig> table, SimDisk on = SimDisk());
    static store::StoreOptions options();
    // The process is killed and started again on what the disk holds, which has room for that many
    // bytes in all. All connections are gone.
    void restart(std::uint64_t capacity = ~0ull);

    // ---- what arrives ----
    ConnId open(turn::Door door, const std::string &user, bool privileged = false, core::Certified certified = {});
    void hang_up(ConnId conn);
    // One frame, taken but not decided before pump().
    std::uint64_t post(ConnId conn, const wire::AnyMessage &message, std::uint64_t request = 0);
    // Turns and commits until nothing is left to do.
    void pump();
    void do_library_jobs();
    // The one reply to a request that was posted and pumped.
    wire::AnyMessage reply(ConnId conn, std::uint64_t request);
    // post, pump, reply.
    wire::AnyMessage call(ConnId conn, const wire::AnyMessage &message, std::uint64_t request = 0);
    template <class Reply> Reply ask(ConnId conn, const wire::AnyMessage &message, std::uint64_t request = 0) {
        wire::AnyMessage reply = call(conn, message, request);
        if (const auto *error = std::get_if<wire::ErrorReply>(&reply)) unexpected(message, *error);
        return std::get<Reply>(std::move(reply));
    }
    // The error that a call is answered with; Code::ok if it is no error.
    Code refusal(ConnId conn, const wire::AnyMessage &message, std::uint64_t request = 0);
    // A control program with its token.
    ConnId control(const std::string &user, const std::string &ident);
    std::vector<wire::AnyMessage> take_sent(ConnId conn);

    // ---- checks ----
    // core::check, and what a scheduler started now would know is what this one knows.
    void verify();
    // Everything durable, hosts by name.
    static std::string durable_text(const core::State &state);

    SimDisk disk;
    std::unique_ptr<store::Store> store;
    std::unique_ptr<ScriptedOutside> outside;
    std::unique_ptr<turn::Turn> turn;
    std::vector<std::string> reports;  // of the last rebuild
    std::vector<core::HostConfig> hosts;
    std::size_t commits = 0;
    std::int64_t wall_at_start = 1'000'000'000;
    bool verify_each_turn = false;

private:
    void start();
    [[noreturn]] void unexpected(const wire::AnyMessage &message, const wire::ErrorReply &error);
    std::uint64_t next_conn_ = 1;
    std::uint64_t next_request_ = 1;
};

// What the model grains write to standard error for a piece of their input.
std::string shifted(std::string text);

// A grain server whose grains copy their input to their output and shift it to standard error. A
// checkpoint after k bytes of the original input is the text "at k;".
class ModelServer {
public:
    ModelServer(Pool &pool, std::string name) : pool_(pool), name_(std::move(name)) {}
    void connect();
    void disconnect();
    bool connected() const { return conn_ != no_connection; }
    // Reads what the scheduler sent; answers launches (`can_start`: or that there is no program).
    void read(bool can_start = true);
    void call_in();
    // Reports a checkpoint after `bytes` more of the input, or the end of the grain.
    void checkpoint(const GrainKey &key, std::size_t bytes);
    void finish(const GrainKey &key, int code = 0, bool innocent = false);
    // Repeats every report that was not acknowledged.
    void repeat();

    struct Held {
        Incarnation incarnation = 0;
        std::string input;  // rest of the original input, from `base` on
        std::uint64_t base = 0;
        std::uint32_t sequence = 0;  // last increment that was acknowledged
        std::optional<wire::GrainReport> unacknowledged;
    };
    std::map<GrainKey, Held> held;
    bool strangers = false;  // its grains were not made by this model: checkpoints may say anything
    ConnId conn() const { return conn_; }

private:
    void launch(const wire::Launch &launch, bool can_start);
    void acknowledged(const wire::ReportAck &ack);
    Pool &pool_;
    std::string name_;
    ConnId conn_{};
};

wire::GrainSpec copying_grain(std::string input);

// A session of ann's with a small grain, a finished one, and one with files of its own. Returns the
// control program's connection.
ConnId three_grains(Pool &pool, ModelServer &server, std::int32_t number);

}  // namespace dcs::test
