#pragma once
// The grain server around its core: performs the effects, converts events to inputs.
#include <deque>
#include <memory>
#include <random>
#include <set>
#include <string>

#include "daemon/configuration.h"
#include "daemon/service.h"
#include "grainserver/core/step.h"
#include "grainserver/shell/contents.h"
#include "grainserver/shell/grain_files.h"
#include "grainserver/shell/host_gauge.h"
#include "grainserver/shell/launcher_client.h"
#include "grainserver/shell/server_options.h"
#include "grainserver/warden/warden.h"
#include "daemon/directory.h"
#include "locks/uid_claims.h"
#include "net/loop.h"
#include "net/pool_link.h"

namespace dcs::server {

using LogLine = void (*)(server::Level, const std::string &);

std::uint64_t random_number();

class Server {
public:
    Server(LogLine log, Configuration &configuration, const ServiceManager &manager)
        : log_(log), configuration_(configuration), manager_(manager) {}
    ~Server();
    // Takes DIR/lock (Code::refused: another server has the directory) and finds the grains of an earlier server.
    Status open(const ServerOptions &options);
    // Serves until TERM or INT, or until the warden ends (Code::unreachable). Grains continue to run.
    Status run(Signals &signals);

private:
    friend struct Performer;
    Status begin_directory();
    Status claim_uids();
    void check_claims();
    Result<GrainRules> settle_rules();
    Status give_up_the_rest();
    Status open_grains(const GrainRules &rules);
    void handle_signals();
    void reread_configuration();
    void look_at(SideProcess &beside);
    void handle_pending();
    void take(net::Arrival &arrival);
    void take_frame(const net::Arrival &arrival);
    void tell_service_manager(const wire::AnyMessage &message) const;
    void keep_launcher();
    void read_launcher();
    void launcher_answers();
    void launcher_is_up();
    bool replace_launcher();                // asked it to end
    bool look_for_exit(const GrainId &id);  // found
    void connect(Peer to);
    void opened(const net::TlsPeer &peer);
    void send(const wire::AnyMessage &message);
    void drop_link();
    void keep_certificate();
    void take_certificate(const wire::Renewed &renewed);
    double jitter();  // spreads the servers of a pool in time; nothing secret
    void keep_contents();
    ContentCache::Names needed_contents() const;
    void put(Input input) { pending_.push_back(std::move(input)); }

    LogLine log_;
    Configuration &configuration_;
    const ServiceManager &manager_;
    ServerOptions options_;
    State state_;
    GrainFiles files_;
    Contents contents_{files_, [this](Input input) { put(std::move(input)); },
                       [this](const wire::AnyMessage &message) { send(message); }};
    Instant tidy_at_{};
    LauncherClient launcher_;
    enum class Replacing : std::uint8_t { not_yet, asked, done } replacing_ = Replacing::not_yet;  // the launcher
    std::set<GrainId> listed_;  // that it said to have, on this connection
    HostGauge gauge_;
    std::unique_ptr<SideProcess> resolver_;  // unless the scheduler is on this host
    std::shared_ptr<warden::WardenClient> warden_;
    Status ended_;
    net::PoolLink link_;
    locks::AdaptiveLock lock_;
    locks::UidClaims uids_;
    bool uids_lost_ = false;  // told
    RemovalWatch removal_{lock_};
    Fd own_;  // DIR/server: files of this process
    std::unique_ptr<net::Loop> loop_;
    ConnId conn_{};
    Signals *signals_ = nullptr;
    bool stop_ = false;
    std::deque<Input> pending_;
    std::mt19937_64 random_{random_number()};
    HostFigures figures_;      // as of the last time that they were read
    Instant figures_until_{};  // grains may end many times a second, each with a call-in
    Instant mark_until_{};     // likewise, whether the launcher's program was replaced
};

}  // namespace dcs::server
