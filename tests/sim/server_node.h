#pragma once
// A grain server: the real decisions (grainserver/core), and around them what its shell does
// (grainserver/shell/server.cc), on a simulated machine.
#include <deque>

#include "sim/host.h"
#include "sim/links.h"

namespace dcs::sim {

class ServerNode final : public Handler, public Peer, public Host::Listener {
public:
    // backup: the connections to it; null: there is none.
    ServerNode(Clock &clock, Links &links, Host &host, Links *backup);

    void start();
    void kill();          // the server's process only: grains run on
    void stop(bool on);   // SIGSTOP and SIGCONT
    void machine_lost();  // its connection stands, as far as others know
    bool runs() const { return up_; }
    const server::State &state() const { return state_; }
    Host &host() { return host_; }
    ConnId conn() const { return conn_; }
    std::uint64_t steps() const { return steps_; }

private:
    enum What : std::uint32_t { tick, hear };
    friend struct ServerEffects;

    void happen(std::uint32_t what, std::uint64_t arg) override;
    void link_opened(ConnId conn) override;
    void link_frame(ConnId conn, std::string frame) override;
    void link_closed(ConnId conn, const std::string &why) override;
    void launcher_says(Host::Answer answer) override;

    void put(server::Input input) { pending_.push_back(std::move(input)); }
    void handle();
    void hear_launcher();
    void look_for_exit(const server::GrainId &id);
    void adopt();
    void schedule();
    void send(const wire::AnyMessage &message);
    std::variant<wire::GrainReport, server::ReportUnsendable> build(const server::SendReport &plan);
    server::DirFacts look(const server::GrainId &id);
    void place(const server::GrainId &id);
    void keep(const server::KeepPiece &piece);
    void keep_outputs(const server::GrainId &id);
    void put_piece(const server::SendPiece &piece);

    Clock &clock_;
    Links &links_;
    Links *backup_;
    Links *way_ = nullptr;  // of the present connection
    Host &host_;
    Random random_;
    server::State state_;
    bool up_ = false;
    int stopped_ = 0;
    std::uint64_t life_ = 0, steps_ = 0;
    ConnId conn_{};
    std::deque<server::Input> pending_;
    std::map<std::string, std::string> coming_;  // contents that are half here
    std::deque<Host::Answer> heard_;
    struct Waiting {
        ConnId conn;
        int kind;
        std::string frame;
    };
    std::deque<Waiting> inbox_;  // while it is stopped
    Instant tick_at_ = Instant::never(), last_look_{};
    // What SaveConfig wrote.
    Duration saved_interval_ = seconds(10);
    std::int32_t saved_slots_ = 0;
    std::uint64_t saved_epoch_ = 0, saved_store_ = 0, saved_number_ = 0;
};

}  // namespace dcs::sim
