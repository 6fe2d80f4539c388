#pragma once
// What the outside world may rely on: every promise that the scheduler made by a message that left.
// It is kept from the messages alone, so that it can contradict the State. A promise rests while a
// call that may change its object is under way: no caller knows then which of the two is true.
#include <map>
#include <set>
#include <string>

#include "crash/scheduler/durable.h"

namespace dcs::test {

class Ledger {
public:
    // A frame was sent to the scheduler. `who`: the login name, or the name of the host.
    void asked(ConnId conn, const std::string &who, std::uint64_t request, const wire::AnyMessage &message);
    // The scheduler sent a frame; `state`: what it knows then. Returns what is wrong with it, or "".
    std::string said(ConnId conn, std::uint64_t request, const wire::AnyMessage &message, const core::State &state,
                     const Snapshot &durable);
    // A recovered State keeps every promise: "", or the first that it breaks.
    std::string broken_by(const core::State &state) const;
    // The scheduler was lost and started again with `state`: calls under way are under way no more.
    void crashed(const core::State &state);

    Reported reported;

private:
    struct Grain {
        bool submitted = false, kill_asked = false, dead = false, killed = false, finished = false;
        Incarnation leased = 0;
        std::uint32_t sequence = 0;
        std::int32_t shown_as = -1;  // index of its result, which was handed out
        bool exists() const { return submitted || dead || finished || leased > 0 || shown_as >= 0; }
    };
    enum class Fact { unknown, open, closed, removed };
    struct Session {
        Fact fact = Fact::unknown;
        TokenHash holder{};
        std::uint64_t seniority = 0;
        std::int32_t sent = 0;
        std::uint64_t reset_by = 0;      // the request that took back what was acknowledged; ids ascend
        int changing = 0, cleaning = 0;  // calls under way
        std::map<GrainNumber, Grain> grains;
    };
    struct Call {
        std::string user;
        wire::AnyMessage message;
        int times = 0;  // repeated on another connection
    };

    Session *changed_by(const Call &call);
    void settle(const Call &call, std::uint64_t request);
    std::string opened(const Call &call, std::uint64_t request, ConnId conn, const wire::OpenReply &reply,
                       const core::State &state);
    std::string done(const Call &call, const core::State &state);
    std::string result(const Call &call, std::uint64_t request, const wire::GrainResult &reply,
                       const core::State &state, const Snapshot &durable);
    std::string results(const Call &call, std::uint64_t request, const wire::GrainResults &reply,
                        const core::State &state, const Snapshot &durable);
    std::string launched(const wire::Launch &launch, const Snapshot &durable);
    void acknowledged(ConnId conn, const wire::ReportAck &ack);
    static std::string broken_by_session(const SessionKey &key, const Session &promised, const core::Session *session);
    static std::string broken_by_grain(const GrainKey &key, const Grain &promised, const core::Session &session);

    std::map<SessionKey, Session> sessions_;
    std::set<TokenHash> tokens_;
    std::set<TokenHash> codes_;  // for hosts: given out, and no caller asked for them to be taken back
    std::set<std::string> revoke_asked_, gone_codes_;  // by id: to be taken back; taken back
    std::map<std::uint64_t, Call> calls_;
    std::map<ConnId, std::string> who_;
    std::map<ConnId, TokenHash> token_of_;
};

}  // namespace dcs::test
