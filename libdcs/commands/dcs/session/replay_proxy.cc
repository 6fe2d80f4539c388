#include "replay_proxy.h"

#include <algorithm>

#include "base/limits.h"

namespace dcs::commands {
namespace {

net::Limits relay_limits() {
    net::Limits limits;
    limits.max_payload = std::max(limits::user_frame_bytes, limits::server_frame_bytes);
    limits.hello = Duration{};
    limits.progress = Duration{};
    return limits;
}

}  // namespace

Result<std::unique_ptr<ReplayProxy>> ReplayProxy::open(const std::string &directory, const std::string &socket,
                                                       std::map<std::int32_t, Recorded> records) {
    std::unique_ptr<ReplayProxy> proxy(new ReplayProxy);
    if (!proxy->loop_) return fail(Code::io_error, "too many open files");
    proxy->socket_ = socket;
    proxy->records_ = std::move(records);
    const auto door = proxy->loop_->listen_unix(directory + "/scheduler", "user.sock", 0600, relay_limits());
    if (!door) return door.status();
    return proxy;
}

void ReplayProxy::serve(int pidfd, int signals) {
    for (const int fd : {pidfd, signals}) loop_->watch(fd);
    for (bool goes_on = true; goes_on;)
        for (const net::Arrival &arrival : loop_->wait(Instant::never(), 64)) goes_on = take(arrival) && goes_on;
    for (const int fd : {pidfd, signals}) loop_->unwatch(fd);
}

bool ReplayProxy::take(const net::Arrival &arrival) {
    if (arrival.what == net::What::ready) return false;
    if (arrival.what == net::What::opened && arrival.door >= 0) opened(arrival.conn);
    if (arrival.what == net::What::closed) closed(arrival.conn);
    const auto found = pairs_.find(arrival.conn);
    if (arrival.what != net::What::frame || found == pairs_.end()) return true;
    const std::shared_ptr<Pair> pair = found->second;
    const auto message = wire::decode_payload(arrival.header, arrival.payload);
    if (!message) {
        loop_->close(arrival.conn);
        closed(arrival.conn);
    } else if (arrival.conn == pair->program) {
        request(*pair, *message, arrival.header.request);
    } else {
        reply(*pair, *message, arrival.header.request);
    }
    return true;
}

void ReplayProxy::opened(ConnId program) {
    auto pair = std::make_shared<Pair>();
    pair->program = program;
    pair->scheduler = loop_->connect_unix(socket_, relay_limits());
    pairs_[program] = pairs_[pair->scheduler] = pair;
}

void ReplayProxy::closed(ConnId conn) {
    const auto found = pairs_.find(conn);
    if (found == pairs_.end()) return;
    const std::shared_ptr<Pair> pair = found->second;
    loop_->close(conn == pair->program ? pair->scheduler : pair->program);
    pairs_.erase(pair->program);
    pairs_.erase(pair->scheduler);
}

void ReplayProxy::request(Pair &pair, const wire::AnyMessage &message, std::uint64_t id) {
    Asked asked;
    if (std::holds_alternative<wire::Hello>(message)) pair.hello = id;
    if (const auto *open = std::get_if<wire::OpenSession>(&message)) {
        asked.session = open->number;
        if (records_.count(open->number) == 0) {
            depart(open->number, -1,
                   "it opens session " + std::to_string(open->number) +
                       ", which is not recorded here (name it too if it belongs to the program)");
            return pass_on(
                pair.program,
                wire::ErrorReply{static_cast<std::int32_t>(Code::session_unknown),
                                 "dcs replay-check has no record of session " + std::to_string(open->number), -1},
                id);
        }
    } else if (const auto *one = std::get_if<wire::Gexec>(&message)) {
        asked = {one->session, {one->grain}};
    } else if (const auto *many = std::get_if<wire::GexecMany>(&message)) {
        asked.session = many->session;
        for (const wire::GrainOrder &order : many->orders) asked.grains.insert(order.grain);
    } else if (const auto *wait = std::get_if<wire::Gwait>(&message)) {
        asked.session = wait->session;
    } else if (const auto *waits = std::get_if<wire::GwaitMany>(&message)) {
        asked.session = waits->session;
    }
    if (asked.session >= 0) pair.asked[id] = std::move(asked);
    pass_on(pair.scheduler, message, id);
}

// A peer whose form cannot express the other side's message is of another release than this program.
void ReplayProxy::pass_on(ConnId to, const wire::AnyMessage &message, std::uint64_t id) {
    if (loop_->send(to, message, id)) return;
    loop_->close(to);
    closed(to);
}

void ReplayProxy::reply(Pair &pair, const wire::AnyMessage &message, std::uint64_t id) {
    if (id == wire::offer_of(wire::our_forms)) id = pair.hello;
    pass_on(pair.program, message, id);
    const auto found = pair.asked.find(id);
    if (found == pair.asked.end()) return;
    const Asked asked = std::move(found->second);
    pair.asked.erase(found);
    Replayed &replayed = replayed_[asked.session];
    if (std::holds_alternative<wire::OpenReply>(message)) replayed.opened = true;
    if (std::holds_alternative<wire::Done>(message)) submitted(asked);
    if (const auto *one = std::get_if<wire::GrainResult>(&message)) took(asked, *one);
    if (const auto *many = std::get_if<wire::GrainResults>(&message))
        for (const wire::GrainResult &result : many->results) took(asked, result);
    if (const auto *error = std::get_if<wire::ErrorReply>(&message)) refused(asked, *error);
}

// Of one that had ended by then, and was not handed out, the record has the result too.
void ReplayProxy::took(const Asked &asked, const wire::GrainResult &result) {
    Replayed &replayed = replayed_[asked.session];
    const std::int32_t all = records_[asked.session].handed_out;
    if (result.sent > all) replayed.at_end = true;
    replayed.taken = std::max(replayed.taken, std::min(result.sent, all));
}

// A session that the program reopened takes new grains, too.
void ReplayProxy::submitted(const Asked &asked) {
    Replayed &replayed = replayed_[asked.session];
    for (const std::int32_t grain : asked.grains) {
        const Recorded &record = records_[asked.session];
        if (record.grains.count(grain) != 0) replayed.grains.insert(grain);
        else if (replayed.whole(record)) replayed.at_end = true;
        else depart(asked.session, grain, "it submits grain " + std::to_string(grain) + ", which was not recorded");
    }
}

void ReplayProxy::refused(const Asked &asked, const wire::ErrorReply &error) {
    const auto code = static_cast<Code>(error.code);
    if (code == Code::nothing_yet || code == Code::nothing_left) return;
    if (code == Code::not_found) return;  // a content is missing: the library brings it and asks again
    const auto record = records_.find(asked.session);
    Replayed &replayed = replayed_[asked.session];
    if (code == Code::replay_end && record != records_.end() && replayed.whole(record->second)) {
        replayed.at_end = true;
        return;
    }
    const std::int32_t grain = asked.grains.size() == 1 ? *asked.grains.begin() : error.grain;
    depart(asked.session, grain, error.text);
}

void ReplayProxy::depart(std::int32_t session, std::int32_t grain, std::string what) {
    if (!departure_) departure_ = Departure{session, grain, std::move(what)};
}

}  // namespace dcs::commands
