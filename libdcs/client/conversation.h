#pragma once
// One call of a control program, as a state machine: what to do next with a connection that may
// break at any point, and when to give up. No sockets, no clock and no randomness in here: the
// caller does what step() says, reports the outcome, and passes the time. The library drives it
// over a Unix socket, the simulator over its own links.
//
// A fresh connection begins with Hello and waits for Welcome before the request goes out. Whatever
// breaks, the request is repeated under the same id, after pauses of 50 ms up to 1 s; the scheduler
// recognises the id, so the call happens once.
#include <optional>
#include <string>

#include "base/instant.h"
#include "base/status.h"
#include "wire/message.h"

namespace dcs::client {

struct Terms {
    std::uint64_t request = 0;        // the id; not 0
    std::string token;                // for Hello; may be empty
    Duration patience = seconds(30);  // after the first trouble, how long to begin again
    Duration silence = seconds(120);  // how long a standing connection may say nothing
    bool for_ever = false;            // a blocking wait: neither limit holds once a scheduler answered
    bool met = false;                 // a scheduler answered this process before
    bool greeted = false;             // the connection is open and has its Welcome for this token
    wire::PeerForm form;              // of that connection
    std::uint64_t epoch = 0;          // a scheduler in an older one is no longer the pool's
    int others = 0;                   // other addresses at which the scheduler may be
    std::uint64_t seed = 0;           // for the pauses
};

enum class Do {
    connect,  // then connected() or refused()
    send,     // `bytes`; then sent() or broken()
    receive,  // one frame; then received(), nonsense() or broken()
    pause,    // nothing until `until`; then paused()
    done      // outcome()
};
struct Step {
    Do what = Do::done;
    std::string_view bytes;
    Instant until;  // send, receive: broken() when it passes; never() has no limit
};

class Conversation {
public:
    Conversation(const wire::AnyMessage &request, Terms terms, Instant now);

    Step step() const;

    void connected(Instant now);
    // hopeless: waiting will not help (no such pool, not permitted).
    void refused(const std::string &why, bool hopeless, Instant now);
    void sent(Instant now);
    void received(const wire::FrameHeader &header, wire::AnyMessage message, Instant now);
    // End of file, an error, or `until` passed.
    void broken(const std::string &why, Instant now);
    // Bytes that are not the protocol's: repeating them would not help.
    void nonsense(const Status &why);
    // The certificate was refused by the scheduler, permanently; or no connection can be made here.
    void rejected(const Status &why);
    void paused(Instant now);

    // Once step() says done: the reply (an ErrorReply is a reply too), or why there is none.
    const Result<wire::AnyMessage> &outcome() const;
    bool request_left() const { return request_left_; }  // it may take effect
    // The connection may be used for a next call.
    bool connection_good() const { return greeted_; }
    wire::PeerForm form() const { return terms_.form; }
    // The Welcome of this conversation, if it began a connection.
    const std::optional<wire::Welcome> &welcome() const { return welcome_; }

private:
    enum class At { connecting, sending_hello, waiting_welcome, sending_request, waiting_reply, pausing, over };

    void say_request();
    void begin_again(Instant now);
    void finish(Result<wire::AnyMessage> outcome, bool connection_good);
    Duration next_pause();
    bool patient_for_ever() const { return terms_.for_ever && terms_.met; }
    Status given_up(const std::string &tried) const;

    Terms terms_;
    wire::AnyMessage request_;
    std::string frame_;  // that is being sent
    At at_;
    Instant until_{}, trouble_since_ = Instant::never(), entered_{}, began_;
    Duration pause_{};
    bool greeted_, reused_, request_left_ = false;
    int unknown_here_ = 0;             // schedulers that did not know us: as many as there are addresses settle it
    bool removes_, repeated_ = false;  // d_clean_ses; it may have happened on an earlier connection
    std::string last_trouble_;
    std::optional<wire::Welcome> welcome_;
    std::optional<Result<wire::AnyMessage>> outcome_;
};

}  // namespace dcs::client
