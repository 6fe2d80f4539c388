#pragma once
// Connections between the scheduler and each other party. As with TCP, what arrives arrives in order and
// whole; a connection may be cut at any moment, refused, or silent, and then no party learns anything
// until a party loses patience.
#include <deque>
#include <map>
#include <string>

#include "base/ids.h"
#include "scheduler/turn/intake.h"
#include "sim/clock.h"

namespace dcs::sim {

// The end that opened a connection.
class Peer {
public:
    virtual ~Peer() = default;
    virtual void link_opened(ConnId conn) = 0;
    virtual void link_frame(ConnId conn, std::string frame) = 0;
    virtual void link_closed(ConnId conn, const std::string &why) = 0;
};

// The scheduler's end of all of them.
class Listener {
public:
    virtual ~Listener() = default;
    virtual bool listening() const = 0;
    virtual void opened(ConnId conn, turn::Door door, const std::string &user) = 0;
    virtual void frame(ConnId conn, std::string bytes) = 0;
    virtual void closed(ConnId conn, const std::string &why) = 0;
};

// Where a party is, and how the network is there.
struct Site {
    int silent = 0;  // faults that keep everything back
    int refusing = 0;
    int slow = 0;
};

class Links final : public Handler {
public:
    // Numbers of connections begin at `first`; `stream` names its randomness.
    Links(Clock &clock, Listener &listener, const char *stream = "links", ConnId first = ConnId{1});

    int add_site() { return static_cast<int>((sites_.push_back(Site{}), sites_.size() - 1)); }
    const Site &site(int id) const { return sites_[static_cast<std::size_t>(id)]; }
    void silence(int site, bool on);
    void refuse(int site, bool on) { sites_[static_cast<std::size_t>(site)].refusing += on ? 1 : -1; }
    void slow(int site, bool on) { sites_[static_cast<std::size_t>(site)].slow += on ? 1 : -1; }
    // All connections of the site break, and both ends hear of it.
    void cut(int site);

    // Answered by link_opened or link_closed, unless the network is silent.
    ConnId connect(Peer *peer, int site, turn::Door door, const std::string &user);
    void send_up(ConnId conn, std::string bytes) { send(conn, up, std::move(bytes)); }
    void send_down(ConnId conn, std::string bytes) { send(conn, down, std::move(bytes)); }
    // After what was sent before. The other end learns it.
    void close_client(ConnId conn) { close(conn, up); }
    void close_server(ConnId conn) { close(conn, down); }
    // The scheduler's process is gone; its kernel tells the others (`silently`: its machine is gone).
    void lose_listener(bool silently);
    // A peer's machine is gone: its connections stand, as far as the scheduler knows.
    void lose_client(ConnId conn);

    std::size_t count() const { return conns_.size(); }

private:
    enum Way : std::uint32_t { up = 0, down = 1, expire = 2, shake = 3 };
    struct Item {
        Instant due{};
        bool end = false;
        std::string bytes;
    };
    struct Lane {
        std::deque<Item> items;
        Instant last{};
        bool scheduled = false;
    };
    struct Conn {
        Peer *client = nullptr;  // null: that end is gone
        bool server = false;     // the scheduler's end is open
        bool connecting = true;
        int site = 0;
        turn::Door door = turn::Door::user;
        std::string user;
        Lane lanes[2];
        Instant silent_since = Instant::never();
    };

    void happen(std::uint32_t what, std::uint64_t arg) override;
    void send(ConnId conn, Way way, std::string bytes);
    void close(ConnId conn, Way way);
    void enqueue(ConnId id, Conn &conn, Way way, Item item);
    void deliver(ConnId id, Way way);
    void handshake(ConnId id);
    void give_up(ConnId id, Instant since);
    void drop_if_dead(ConnId id);
    bool silent(const Conn &conn) const { return sites_[static_cast<std::size_t>(conn.site)].silent > 0; }
    Duration delay(const Conn &conn);

    Clock &clock_;
    Listener &listener_;
    Random random_;
    std::vector<Site> sites_;
    std::map<ConnId, Conn> conns_;
    std::uint64_t next_;
};

}  // namespace dcs::sim
