#pragma once
// What running grains have written and their hosts have not reported, for people who follow a grain: a question to the
// host, and its answer to the caller. Nothing of it is decided or recorded. A host that does not answer in time has
// nothing to say.
#include <cstdint>
#include <map>

#include "scheduler/state/decision.h"
#include "scheduler/turn/outside.h"

namespace dcs::turn {

class Live {
public:
    explicit Live(Outside &outside) : outside_(outside) {}

    // A caller has one question at a time on a connection: with another one the first is over. A host is asked only a
    // few at a time, and about the grains of one user only some of these: then it has nothing to say.
    void ask(const core::ReplyLive &e);
    void answer(ConnId server, wire::Peeked &&peeked);
    // A connection is gone: the questions of a caller, or those to a server.
    void drop(ConnId conn);
    // Answers for hosts that are silent.
    void sweep(Instant now);
    Instant wakeup() const;

private:
    struct Question {
        core::ReplyLive asked;
        Instant until{};
        bool over = false;  // for the caller; the host still works on it
    };
    bool may_ask(const core::ReplyLive &e) const;
    void end(Question &question);
    void reply(const core::ReplyLive &asked, std::uint64_t more, std::string bytes);

    Outside &outside_;
    std::map<std::uint64_t, Question> questions_;  // by ticket
    std::uint64_t last_ticket_ = 0;
};

}  // namespace dcs::turn
