#include "sim/links.h"

namespace dcs::sim {
namespace {
constexpr std::uint32_t name = 0x4c4b;
}

Links::Links(Clock &clock, Listener &listener, const char *stream, ConnId first)
    : clock_(clock),
      listener_(listener),
      random_(random_for(clock.plan.seed, stream)),
      next_(static_cast<std::uint64_t>(first)) {}

Duration Links::delay(const Conn &conn) {
    const Duration d = between(random_, clock_.plan.delay_min, clock_.plan.delay_max);
    return sites_[static_cast<std::size_t>(conn.site)].slow > 0 ? d * 40 : d;
}

ConnId Links::connect(Peer *peer, int site, turn::Door door, const std::string &user) {
    const ConnId id{next_++};
    Conn conn;
    conn.client = peer;
    conn.site = site;
    conn.door = door;
    conn.user = user;
    const Duration wait = delay(conn);
    if (silent(conn)) {
        conn.silent_since = clock_.now;
        clock_.put(clock_.now + clock_.plan.keepalive, this, name, expire, static_cast<std::uint64_t>(id));
    }
    conns_.emplace(id, std::move(conn));
    clock_.put(clock_.now + wait, this, name, shake, static_cast<std::uint64_t>(id));
    return id;
}

// Both ends learn of the connection, or the client that there will be none.
void Links::handshake(ConnId id) {
    const auto it = conns_.find(id);
    if (it == conns_.end()) return;
    Conn &conn = it->second;
    if (!conn.client) return drop_if_dead(id);
    if (silent(conn) || !conn.connecting) return;  // until the network comes back, see silence()
    conn.connecting = false;
    if (!listener_.listening() || sites_[static_cast<std::size_t>(conn.site)].refusing > 0) {
        Peer *client = conn.client;
        conns_.erase(it);
        return client->link_closed(id, "connection refused");
    }
    conn.server = true;
    listener_.opened(id, conn.door, conn.user);
    if (const auto still = conns_.find(id); still != conns_.end() && still->second.client)
        still->second.client->link_opened(id);
}

void Links::send(ConnId id, Way way, std::string bytes) {
    const auto it = conns_.find(id);
    if (it == conns_.end()) return;
    if (way == down && !it->second.server) return;
    enqueue(id, it->second, way, Item{{}, false, std::move(bytes)});
}

void Links::enqueue(ConnId id, Conn &conn, Way way, Item item) {
    Lane &lane = conn.lanes[way];
    item.due = std::max(lane.last, clock_.now + delay(conn));
    lane.last = item.due;
    const Instant due = item.due;
    lane.items.push_back(std::move(item));
    if (lane.scheduled || silent(conn)) return;
    lane.scheduled = true;
    clock_.put(due, this, name, way, static_cast<std::uint64_t>(id));
}

void Links::close(ConnId id, Way way) {
    const auto it = conns_.find(id);
    if (it == conns_.end()) return;
    Conn &conn = it->second;
    if (way == up) conn.client = nullptr;
    else conn.server = false;
    enqueue(id, conn, way, Item{{}, true, {}});
}

void Links::drop_if_dead(ConnId id) {
    const auto it = conns_.find(id);
    if (it != conns_.end() && !it->second.client && !it->second.server) conns_.erase(it);
}

void Links::deliver(ConnId id, Way way) {
    const auto it = conns_.find(id);
    if (it == conns_.end()) return;
    Conn &conn = it->second;
    Lane &lane = conn.lanes[way];
    lane.scheduled = false;
    if (silent(conn) || lane.items.empty()) return;
    if (lane.items.front().due > clock_.now) {  // the network was silent in between
        lane.scheduled = true;
        return clock_.put(lane.items.front().due, this, name, way, static_cast<std::uint64_t>(id));
    }
    Item item = std::move(lane.items.front());
    lane.items.pop_front();
    if (!lane.items.empty()) {
        lane.scheduled = true;
        clock_.put(lane.items.front().due, this, name, way, static_cast<std::uint64_t>(id));
    }
    clock_.mark(mix(item.bytes.size(), item.end ? 3 : 5));
    if (way == up) {
        const bool open = conn.server;
        if (item.end) {
            conn.server = false;
            drop_if_dead(id);
            if (open) listener_.closed(id, "the peer closed the connection");
        } else if (open) {
            listener_.frame(id, std::move(item.bytes));
        } else if (conn.client && conn.lanes[down].items.empty()) {
            enqueue(id, conn, down, Item{{}, true, {}});  // no party knows this connection here any more
        }
        return;
    }
    Peer *client = conn.client;
    if (item.end) {
        conn.client = nullptr;
        drop_if_dead(id);
        if (client) client->link_closed(id, "the scheduler closed the connection");
    } else if (client) {
        client->link_frame(id, std::move(item.bytes));
    }
}

void Links::happen(std::uint32_t what, std::uint64_t arg) {
    switch (what) {
    case up:
    case down: return deliver(ConnId{arg}, static_cast<Way>(what));
    case shake: return handshake(ConnId{arg});
    case expire: return give_up(ConnId{arg}, clock_.now);
    }
}

// Still silent after the keep-alive time: each end finds that the connection is broken.
void Links::give_up(ConnId id, Instant now) {
    const auto it = conns_.find(id);
    if (it == conns_.end()) return;
    Conn &conn = it->second;
    const bool orphan = conn.client && !conn.server;  // the scheduler's machine forgot it
    const bool long_silent = conn.silent_since != Instant::never() && now - conn.silent_since >= clock_.plan.keepalive;
    const bool half = !conn.client && conn.server;
    if (!orphan && !long_silent && !half) return;
    Peer *client = conn.client;
    const bool server = conn.server;
    conns_.erase(it);
    if (server) listener_.closed(id, "the connection timed out");
    if (client) client->link_closed(id, "the connection timed out");
}

void Links::silence(int site, bool on) {
    Site &here = sites_[static_cast<std::size_t>(site)];
    const bool before = here.silent > 0;
    here.silent += on ? 1 : -1;
    const bool after = here.silent > 0;
    if (before == after) return;
    for (auto &[id, conn] : conns_) {
        if (conn.site != site) continue;
        if (after) {
            conn.silent_since = clock_.now;
            const Duration extra{static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(seconds(30).ns)))};
            clock_.put(clock_.now + clock_.plan.keepalive + extra, this, name, expire, static_cast<std::uint64_t>(id));
            continue;
        }
        conn.silent_since = Instant::never();
        if (conn.connecting) clock_.put(clock_.now + delay(conn), this, name, shake, static_cast<std::uint64_t>(id));
        for (const Way way : {up, down}) {
            Lane &lane = conn.lanes[way];
            if (lane.scheduled || lane.items.empty()) continue;
            lane.scheduled = true;
            clock_.put(std::max(lane.items.front().due, clock_.now + delay(conn)), this, name, way,
                       static_cast<std::uint64_t>(id));
        }
    }
}

void Links::cut(int site) {
    std::vector<ConnId> broken;
    for (const auto &[id, conn] : conns_)
        if (conn.site == site) broken.push_back(id);
    for (const ConnId id : broken) {
        const auto it = conns_.find(id);
        if (it == conns_.end()) continue;
        Peer *client = it->second.client;
        const bool server = it->second.server;
        conns_.erase(it);
        if (server) listener_.closed(id, "the connection broke");
        if (client) client->link_closed(id, "the connection broke");
    }
}

void Links::lose_listener(bool silently) {
    for (auto &[id, conn] : conns_) {
        if (!conn.server) continue;
        conn.server = false;
        conn.lanes[down].items.clear();  // what was not read from the socket's buffer yet is lost too
        if (silently)
            clock_.put(clock_.now + clock_.plan.keepalive, this, name, expire, static_cast<std::uint64_t>(id));
        else enqueue(id, conn, down, Item{{}, true, {}});
    }
}

void Links::lose_client(ConnId id) {
    const auto it = conns_.find(id);
    if (it == conns_.end()) return;
    it->second.client = nullptr;
    it->second.lanes[up].items.clear();
    clock_.put(clock_.now + clock_.plan.keepalive, this, name, expire, static_cast<std::uint64_t>(id));
    drop_if_dead(id);
}

}  // namespace dcs::sim
