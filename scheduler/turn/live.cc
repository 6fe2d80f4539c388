#include "scheduler/turn/live.h"

#include <algorithm>
#include <utility>

namespace dcs::turn {
namespace {

constexpr Duration live_patience = seconds(2);
constexpr int asked_of_server = 32, asked_for_user = 4;  // and not answered yet

}  // namespace

bool Live::may_ask(const core::ReplyLive &e) const {
    int of_server = 0, for_user = 0;
    for (const auto &[ticket, question] : questions_) {
        if (question.asked.server != e.server) continue;
        ++of_server;
        if (question.asked.key.session.user == e.key.session.user) ++for_user;
    }
    return of_server < asked_of_server && for_user < asked_for_user;
}

void Live::ask(const core::ReplyLive &e) {
    drop(e.conn);
    if (!may_ask(e)) return reply(e, 0, {});
    wire::Peek peek;
    peek.key = wire::wire_of(e.key);
    peek.incarnation = e.incarnation;
    peek.after = e.after;
    peek.stream = e.fetch.stream;
    peek.offset = e.fetch.offset - e.recorded;
    peek.max = e.fetch.max;
    peek.ticket = ++last_ticket_;
    questions_.emplace(peek.ticket, Question{e, outside_.now() + live_patience});
    outside_.send(e.server, peek, core::no_request);
}

void Live::reply(const core::ReplyLive &asked, std::uint64_t more, std::string bytes) {
    bytes.resize(std::min<std::size_t>(bytes.size(), asked.fetch.max));
    outside_.send(asked.conn, wire::Piece{asked.recorded + more, std::move(bytes), asked.recorded, asked.incarnation},
                  asked.request);
}

void Live::answer(ConnId server, wire::Peeked &&peeked) {
    const auto found = questions_.find(peeked.ticket);
    if (found == questions_.end() || found->second.asked.server != server) return;
    if (!found->second.over) reply(found->second.asked, peeked.total, std::move(peeked.bytes));
    questions_.erase(found);
}

void Live::end(Question &question) {
    if (!std::exchange(question.over, true)) reply(question.asked, 0, {});
}

void Live::drop(ConnId conn) {
    for (auto it = questions_.begin(); it != questions_.end();) {
        Question &question = it->second;
        if (question.asked.conn == conn) question.over = true;
        if (question.asked.server == conn) end(question);
        it = question.asked.server == conn ? questions_.erase(it) : std::next(it);
    }
}

void Live::sweep(Instant now) {
    for (auto &[ticket, question] : questions_)
        if (question.until <= now) end(question);
}

Instant Live::wakeup() const {
    const auto first = std::find_if(questions_.begin(), questions_.end(), [](const auto &q) { return !q.second.over; });
    return first == questions_.end() ? Instant::never() : first->second.until;
}

}  // namespace dcs::turn
