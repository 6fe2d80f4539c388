#include "client/ahead.h"

#include <deque>

#include "base/clock.h"
#include "base/limits.h"
#include "client/exchange.h"
#include "client/transport.h"

namespace dcs::client {
namespace {

class Ahead {
public:
    Ahead(Pool &pool, const TakeReply &take)
        : pool_(pool), line_(pool.line()), silence_(silence_of(pool.patience())), take_(take) {}

    std::size_t unanswered() const { return requests_.size(); }
    bool open() const { return line_.greeted; }

    Status send(const wire::AnyMessage &request) {
        const std::uint64_t id = next_request_id();
        const auto frame = wire::encode(request, id, line_.form.form());
        if (!frame) return fail(frame.status().code, "cannot send to the scheduler: " + frame.status().text);
        if (Status s = line_.transport.send(*frame, boot_clock() + silence_); !s) return end(s);
        requests_.push_back(id);
        return Status::ok();
    }

    Status receive() {
        auto frame = line_.transport.receive(limits::user_frame_bytes, boot_clock() + silence_);
        if (!frame) return end(frame.status().code == Code::broken ? frame.status() : nonsense(frame.status().text));
        const std::uint64_t request = frame->header.request;
        const auto *error = std::get_if<wire::ErrorReply>(&frame->message);
        if (request != requests_.front() && !(error && request == 0))
            return end(nonsense("a reply to another request"));
        requests_.pop_front();
        if (!error) return take_(frame->message);
        const Status refused = refusal_of(pool_, line_.token, *error);
        return request == 0 || refused.code == Code::protocol ? end(refused) : refused;
    }

private:
    static Status nonsense(const std::string &why) {
        return fail(Code::protocol, "the answer does not follow the DCS protocol: " + why);
    }
    Status end(Status why) {
        requests_.clear();
        line_.greeted = false;
        line_.transport.close();
        return why;
    }

    Pool &pool_;
    Line &line_;
    const Duration silence_;
    const TakeReply &take_;
    std::deque<std::uint64_t> requests_;
};

}  // namespace

Status call_ahead(Pool &pool, wire::AnyMessage &request, const NextCall &next, const TakeReply &take,
                  std::size_t unanswered) {
    Ahead ahead(pool, take);
    if (!ahead.open()) return fail(Code::broken, "there is no connection to the scheduler");
    Status first;
    for (bool more = true; more || ahead.unanswered() > 0;) {
        while (more && ahead.unanswered() < unanswered) {
            const Result<bool> made = next(request);
            first = made.status();
            more = made && *made;
            if (!more) break;
            first = ahead.send(request);
            more = first.code == Code::ok;
        }
        if (ahead.unanswered() == 0) continue;
        const Status s = ahead.receive();
        if (first) first = s;
        more = more && s;
    }
    return first;
}

}  // namespace dcs::client
