#include "scheduler/turn/live.h"

#include <algorithm>

#include "base/limits.h"

namespace dcs::turn {
namespace {

constexpr Duration live_patience = seconds(2);

}  // namespace

void Live::ask(const core::ReplyLive &e) {
    drop(e.conn);
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

void Live::reply(const Question &question, std::uint64_t more, std::string bytes) {
    const core::ReplyLive &asked = question.asked;
    bytes.resize(std::min<std::size_t>(bytes.size(), asked.fetch.max));
    outside_.send(asked.conn, wire::Piece{asked.recorded + more, std::move(bytes), asked.recorded, asked.incarnation},
                  asked.request);
}

void Live::answer(ConnId server, wire::Peeked &&peeked) {
    const auto found = questions_.find(peeked.ticket);
    if (found == questions_.end() || found->second.asked.server != server) return;  // too late
    reply(found->second, peeked.total, std::move(peeked.bytes));
    questions_.erase(found);
}

void Live::drop(ConnId conn) {
    for (auto it = questions_.begin(); it != questions_.end();) {
        if (it->second.asked.server == conn) reply(it->second, 0, {});
        const bool over = it->second.asked.server == conn || it->second.asked.conn == conn;
        it = over ? questions_.erase(it) : std::next(it);
    }
}

void Live::sweep(Instant now) {
    while (!questions_.empty() && questions_.begin()->second.until <= now) {
        reply(questions_.begin()->second, 0, {});
        questions_.erase(questions_.begin());
    }
}

Instant Live::wakeup() const { return questions_.empty() ? Instant::never() : questions_.begin()->second.until; }

}  // namespace dcs::turn
