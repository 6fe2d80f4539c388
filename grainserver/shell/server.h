#pragma once
// The grain server around its core: performs the effects, turns what arrives into inputs.
#include <deque>
#include <memory>
#include <string>

#include "daemon/signals.h"
#include "grainserver/core/step.h"
#include "grainserver/shell/contents.h"
#include "grainserver/shell/grain_files.h"
#include "grainserver/shell/host_gauge.h"
#include "grainserver/shell/launcher_client.h"
#include "grainserver/shell/rungs.h"
#include "grainserver/warden/warden.h"
#include "locks/dcs_atoms.h"
#include "net/loop.h"
#include "net/pool_link.h"

namespace dcs::server {

using LogLine = void (*)(server::Level, const std::string &);

struct ServerOptions {
    std::string name, directory, scheduler, binary_class, launcher_program;
    std::string backup;           // its socket, or where it is instead of what the scheduler says; empty: nothing said
    std::string slots_directory;  // empty: one of its own
    std::string pki_directory;    // empty: directory/pki
    bool use_cgroups = true;
    IdentityOptions identity;
    RungOptions rungs;
    files::Limits limits;
    int library_mb = 4096;            // contents that are kept here for grains to come
    std::vector<std::string> runner;  // of this host's programs; empty: they run by themselves
    bool watch = true;  // the host's owner comes first
};

std::uint64_t random_number();

class Server {
public:
    explicit Server(LogLine log) : log_(log) {}
    ~Server();
    // Takes DIR/lock (Code::refused: another server has the directory), finds the grains of an earlier server.
    Status open(const ServerOptions &options);
    // Serves until TERM or INT comes, or the warden is gone (Code::unreachable). Grains run on.
    Status run(Signals &signals);

private:
    friend struct Performer;
    Status begin_directory();
    Result<GrainRules> settle_rules();
    Status give_up_the_rest();
    Status open_grains(const GrainRules &rules);
    void warden_is_gone();
    void handle_pending();
    void take(net::Arrival &arrival);
    void take_frame(const net::Arrival &arrival);
    void keep_launcher();
    void read_launcher();
    void launcher_answers();
    void replace_launcher();
    void look_for_exit(const GrainId &id);
    void connect(Peer to);
    void opened(const net::TlsPeer &peer);
    void send(const wire::AnyMessage &message);
    void drop_link();
    void keep_certificate();
    void take_certificate(const wire::Renewed &renewed);
    double jitter();
    void keep_contents();
    ContentCache::Names needed_contents() const;
    void put(Input input) { pending_.push_back(std::move(input)); }

    LogLine log_;
    ServerOptions options_;
    State state_;
    GrainFiles files_;
    Contents contents_{files_, [this](Input input) { put(std::move(input)); },
                       [this](const wire::AnyMessage &message) { send(message); }};
    Instant tidy_at_{};
    LauncherClient launcher_;
    enum class Replacing : std::uint8_t { not_yet, asked, done } replacing_ = Replacing::not_yet;  // the launcher
    HostGauge gauge_;
    std::shared_ptr<warden::WardenClient> warden_;
    Status ended_;
    net::PoolLink link_;
    locks::AdaptiveLock lock_;
    Fd own_;  // DIR/server: small files of this process
    std::unique_ptr<net::Loop> loop_;
    ConnId conn_ = 0;
    Signals *signals_ = nullptr;
    bool stop_ = false;
    std::deque<Input> pending_;
};

}  // namespace dcs::server
