#include "client/conversation.h"

#include <algorithm>

#include "base/planted.h"

namespace dcs::client {
namespace {

constexpr Duration shortest_pause = milliseconds(50);
constexpr Duration longest_pause = seconds(1);

std::uint64_t next_random(std::uint64_t &state) {  // splitmix64
    state += 0x9e3779b97f4a7c15ull;
    std::uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

std::string seconds_text(Duration d) {
    const std::int64_t tenths = d.ns / 100'000'000;
    return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
}

}  // namespace

Conversation::Conversation(const wire::AnyMessage &request, Terms terms, Instant now)
    : terms_(std::move(terms)),
      request_(request),
      at_(At::connecting),
      entered_(now),
      began_(now),
      pause_(shortest_pause),
      greeted_(terms_.greeted),
      reused_(terms_.greeted),
      removes_(std::holds_alternative<wire::CleanSession>(request)) {
    DCS_REQUIRE(terms_.request != 0, "request ids of users begin with 1");
    until_ = now + terms_.silence;
    if (greeted_) say_request();
}

// In the form that this scheduler reads. What that cannot say it is not asked.
void Conversation::say_request() {
    auto frame = wire::encode(request_, terms_.request, terms_.form.form());
    if (!frame) return finish(fail(frame.status().code, "cannot send to the scheduler: " + frame.status().text), true);
    frame_ = std::move(*frame);
    at_ = At::sending_request;
}

Step Conversation::step() const {
    switch (at_) {
    case At::connecting: return {Do::connect, {}, until_};
    case At::sending_hello: return {Do::send, frame_, until_};
    case At::waiting_welcome: return {Do::receive, {}, until_};
    case At::sending_request: return {Do::send, frame_, until_};
    case At::waiting_reply: return {Do::receive, {}, until_};
    case At::pausing: return {Do::pause, {}, until_};
    case At::over: break;
    }
    return {Do::done, {}, {}};
}

void Conversation::connected(Instant now) {
    DCS_REQUIRE(at_ == At::connecting, "connected() answers connect");
    terms_.form = {};
    frame_ = wire::encode(wire::Hello{wire::opening_form, terms_.token}, 0);
    at_ = At::sending_hello;
    entered_ = now;
    until_ = now + terms_.silence;
}

void Conversation::sent(Instant now) {
    DCS_REQUIRE(at_ == At::sending_hello || at_ == At::sending_request, "sent() answers send");
    if (at_ == At::sending_request) {
        repeated_ = request_left_;
        request_left_ = true;
    }
    at_ = at_ == At::sending_hello ? At::waiting_welcome : At::waiting_reply;
    // A parked wait is not hung, whatever time it takes. The Welcome always comes at once.
    const bool no_limit = at_ == At::waiting_reply && terms_.for_ever;
    until_ = no_limit ? Instant::never() : now + terms_.silence;
}

void Conversation::received(const wire::FrameHeader &header, wire::AnyMessage message, Instant now) {
    DCS_REQUIRE(at_ == At::waiting_welcome || at_ == At::waiting_reply, "received() answers receive");
    if (Status s = terms_.form.hear(header); !s) return nonsense(s);
    const std::uint64_t request = header.request;
    const std::uint64_t asked = at_ == At::waiting_welcome ? wire::offer_of(wire::our_forms) : terms_.request;
    if (const auto *error = std::get_if<wire::ErrorReply>(&message)) {
        // An error under id 0 is about the connection; it ends the call as well.
        if (request != asked && request != 0)
            return nonsense(fail(Code::protocol, "an error reply to another request"));
        // An old scheduler that came back does not know whom its successor has let in.
        const bool unknown = at_ == At::waiting_welcome && error->code == static_cast<int>(Code::no_auth);
        if (unknown && unknown_here_++ < terms_.others) return broken(error->text, now);
        // It cannot find out now who this is.
        if (at_ == At::waiting_welcome && error->code == static_cast<int>(Code::unreachable))
            return broken(error->text, now);
        const bool usable = at_ == At::waiting_reply && request != 0 && error->code != static_cast<int>(Code::protocol);
        // Nothing is left of a removed session by which the scheduler could recognise a repetition.
        const bool removed_before =
            removes_ && repeated_ && at_ == At::waiting_reply && error->code == static_cast<int>(Code::session_unknown);
        if (removed_before) return finish(wire::AnyMessage(wire::Done{}), usable);
        return finish(std::move(message), usable);
    }
    if (request != asked) return nonsense(fail(Code::protocol, "a reply to another request"));
    if (at_ == At::waiting_reply) return finish(std::move(message), true);
    const auto *welcome = std::get_if<wire::Welcome>(&message);
    if (!welcome) return nonsense(fail(Code::protocol, std::string(wire::kind_name(message)) + ", expected Welcome"));
    if (welcome->epoch < terms_.epoch && !planted("client.any_epoch"))
        return broken("the answering scheduler is out of date, in epoch " + std::to_string(welcome->epoch) +
                          ", but this program has worked with epoch " + std::to_string(terms_.epoch),
                      now);
    welcome_ = *welcome;
    terms_.met = true;
    greeted_ = true;
    const bool sent_before = request_left_ && planted("client.forget_request");
    until_ = now + terms_.silence;
    if (sent_before) at_ = At::waiting_reply;
    else say_request();
}

void Conversation::refused(const std::string &why, bool hopeless, Instant now) {
    DCS_REQUIRE(at_ == At::connecting, "refused() answers connect");
    last_trouble_ = why;
    if (hopeless && !patient_for_ever()) return finish(given_up(""), false);
    begin_again(now);
}

void Conversation::broken(const std::string &why, Instant now) {
    DCS_REQUIRE(at_ != At::over && at_ != At::pausing && at_ != At::connecting, "broken() needs a connection");
    if (at_ == At::sending_request) request_left_ = true;  // part of it may have arrived
    last_trouble_ = why;
    greeted_ = false;
    // A connection left over from an earlier call says nothing about the scheduler of now.
    if (reused_) {
        reused_ = false;
        trouble_since_ = now;
        at_ = At::connecting;
        until_ = now + terms_.silence;
        return;
    }
    // One that lived for a while was good: the next pause begins short again.
    if (now - entered_ > longest_pause) pause_ = shortest_pause;
    begin_again(now);
}

void Conversation::nonsense(const Status &why) {
    Code code = why.code == Code::ok ? Code::protocol : why.code;
    finish(fail(code, "the answer does not follow the DCS protocol: " + why.text), false);
}

void Conversation::rejected(const Status &why) { finish(why, false); }

void Conversation::paused(Instant now) {
    DCS_REQUIRE(at_ == At::pausing, "paused() answers pause");
    at_ = At::connecting;
    until_ = now + terms_.silence;
}

void Conversation::begin_again(Instant now) {
    if (trouble_since_ == Instant::never()) trouble_since_ = now;
    const Instant end = trouble_since_ + terms_.patience;
    if (!patient_for_ever() && now >= end)
        return finish(given_up(", after trying for " + seconds_text(now - began_)), false);
    at_ = At::pausing;
    until_ = now + next_pause();
    if (!patient_for_ever()) until_ = std::min(until_, end);  // one last attempt at the end
}

Duration Conversation::next_pause() {
    // Between half of the pause and all of it, so that a crowd does not come back as one.
    const auto half = static_cast<std::uint64_t>(pause_.ns / 2);
    const auto random = static_cast<std::int64_t>(next_random(terms_.seed) % (half + 1));
    const Duration pause{static_cast<std::int64_t>(half) + random};
    pause_ = std::min(pause_ * 2, longest_pause);
    return pause;
}

Status Conversation::given_up(const std::string &tried) const {
    if (!request_left_) return fail(Code::unreachable, "no scheduler answers: " + last_trouble_ + tried);
    return fail(Code::broken,
                "the connection to the scheduler broke, and it is unknown whether the call took effect: " +
                    last_trouble_ + tried);
}

void Conversation::finish(Result<wire::AnyMessage> outcome, bool connection_good) {
    outcome_.emplace(std::move(outcome));
    greeted_ = connection_good;
    at_ = At::over;
}

const Result<wire::AnyMessage> &Conversation::outcome() const {
    DCS_REQUIRE(outcome_.has_value(), "the conversation is not over");
    return *outcome_;
}

}  // namespace dcs::client
