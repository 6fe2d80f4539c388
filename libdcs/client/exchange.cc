#include "client/exchange.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <time.h>

#include "base/clock.h"
#include "base/planted.h"
#include "client/conversation.h"
#include "client/pool_path.h"
#include "client/remote.h"
#include "client/transport.h"
#include "net/socket_calls.h"
#include "pki/authority.h"
#include "pki/key.h"

namespace dcs::client {
namespace {

// To connect, and for the handshake.
constexpr Duration connect_time = seconds(30);

void sleep_until(Instant until) {
    for (;;) {
        const std::int64_t left = (until - boot_clock()).ns;
        if (left <= 0) return;
        const timespec t{static_cast<time_t>(left / 1'000'000'000), static_cast<long>(left % 1'000'000'000)};
        ::nanosleep(&t, nullptr);  // a signal only makes the loop look again
    }
}

// Says once what a call waits for, when that takes long enough for a person to wonder.
class Notice {
public:
    Notice(const Pool &pool, Instant now) : say_(pool.waits), patience_(pool.patience()), began_(now) {}
    void trouble(const std::string &why) { why_ = why; }
    // Before a pause.
    void look() {
        if (say_ && boot_clock() >= began_ + away) tell(why_, patience_);
    }
    // Before an answer that comes until then.
    void look(Transport &transport, Instant until) {
        if (!say_ || until == Instant::never() || until <= began_ + silent) return;
        // After that the call is repeated once, on a new connection.
        if (transport.silent_until(began_ + silent)) tell("", until - boot_clock() + silence_of(patience_));
    }

private:
    static constexpr Duration away = seconds(3), silent = seconds(1);
    void tell(const std::string &why, Duration gives_up) { std::exchange(say_, nullptr)(why, gives_up); }

    Pool::Waits say_;
    Duration patience_;
    Instant began_;
    std::string why_;
};

// The scheduler permanently refuses our certificate: unless it is due by our clock, and not by the
// scheduler's. Then one of the clocks is wrong, and a program that was taken before waits, as for a scheduler that is
// away.
void rejected(const Pool &pool, const Line &l, Conversation &c, const Status &why) {
    const bool in_time = l.remote && pki::in_time(l.remote->certificate, wall_clock_s());
    if (in_time && l.transport.clocks() && pool.scheduler_met() && !planted("client.rejected_for_time"))
        return c.broken(why.text, boot_clock());
    c.rejected(why);
}

void do_send(const Pool &pool, Line &l, Conversation &c, const Step &step) {
    const Status s = l.transport.send(step.bytes, step.until);
    if (s) return c.sent(boot_clock());
    // A peer that refuses a request says why before it closes, and does not read to its end.
    auto last_words = l.transport.receive(limits::user_frame_bytes, boot_clock());
    if (last_words && std::holds_alternative<wire::ErrorReply>(last_words->message)) {
        c.sent(boot_clock());
        return c.received(last_words->header, std::move(last_words->message), boot_clock());
    }
    l.transport.close();
    if (!last_words && last_words.status().code == Code::no_auth) return rejected(pool, l, c, last_words.status());
    c.broken(s.text, boot_clock());
}

void renew(Pool &pool, const std::string &token);

void do_receive(Pool &pool, Line &l, Conversation &c, const Step &step) {
    // A blocking wait may last longer than a certificate: it is begun again with the next one. If none is to be had, as
    // when a clock is wrong, an open connection is better than none.
    const bool endless = l.remote && step.until == Instant::never();
    while (endless && l.transport.silent_until(renewal_due(pool, boot_clock()))) {
        renew(pool, l.token);
        if (pool.remote() == l.remote && !planted("client.leave_to_renew")) continue;
        l.transport.close();
        return c.broken("it was replaced because of the new certificate", boot_clock());
    }
    auto frame = l.transport.receive(limits::user_frame_bytes, step.until);
    if (frame) return c.received(frame->header, std::move(frame->message), boot_clock());
    l.transport.close();
    if (frame.status().code == Code::broken) c.broken(frame.status().text, boot_clock());
    else if (frame.status().code == Code::no_auth) rejected(pool, l, c, frame.status());
    else c.nonsense(frame.status());
}

Transport::Refusal connect(Pool &pool, Line &l, Instant until) {
    if (!l.remote) return l.transport.connect(l.path);
    renew(pool, l.token);
    l.remote = pool.remote();
    const std::vector<std::string> &addresses = l.remote->addresses;
    const Instant end = std::min(until, boot_clock() + connect_time);
    Transport::Refusal all{0, true, ""};
    for (std::size_t i = 0; i < addresses.size(); ++i) {
        l.at = (l.next + i) % addresses.size();
        const Transport::Refusal one = l.transport.connect_tls(
            addresses[l.at], l.remote->context, net::share_of_time(end, boot_clock(), addresses.size() - i));
        if (one.error == 0) {
            l.next = l.at + 1;  // unless it is the right one
            return one;
        }
        all = {one.error, all.hopeless && one.hopeless, all.why + (i == 0 ? "" : "; ") + one.why,
               all.clocks || one.clocks};
    }
    return all;
}

void do_connect(Pool &pool, Line &l, Conversation &c, Instant until, Notice &notice) {
    const Transport::Refusal r = connect(pool, l, until);
    notice.trouble(r.why);
    const bool no_number = r.error == EMFILE || r.error == ENFILE;
    if (r.error == 0) c.connected(boot_clock());
    else if (no_number && !c.request_left())
        c.rejected(fail(Code::limit,
                        "no descriptor is free for a connection to the scheduler: close some, or raise "
                        "the limit (ulimit -n): " +
                            r.why));
    else c.refused(r.why, r.hopeless && !(r.clocks && pool.scheduler_met()), boot_clock());
}

void drive(Pool &pool, Line &l, Conversation &c) {
    Notice notice(pool, boot_clock());
    for (Step step = c.step(); step.what != Do::done; step = c.step()) {
        switch (step.what) {
        case Do::connect: do_connect(pool, l, c, step.until, notice); break;
        case Do::send: do_send(pool, l, c, step); break;
        case Do::receive:
            notice.look(l.transport, step.until);
            do_receive(pool, l, c, step);
            break;
        case Do::pause:
            notice.look();
            sleep_until(step.until);
            c.paused(boot_clock());
            break;
        case Do::done: break;
        }
    }
    l.greeted = c.connection_good();
    l.form = c.form();
    if (!l.greeted) l.transport.close();
    if (c.welcome()) {
        l.user = c.welcome()->user;
        l.next = l.at;
        if (l.remote) pool.note_epoch(c.welcome()->epoch);
        pool.note_scheduler_met();
    }
}

// The certificate of this process, if it is due. A failure shows when it is used.
void renew(Pool &pool, const std::string &token) {
    if (token.empty() || !take_renewal(pool)) return;
    Line own{.token = token, .remote = pool.remote()};
    const auto request = pki::make_request(own.remote->key);
    if (!request) return;
    Terms terms;
    terms.request = next_request_id();
    terms.token = token;
    terms.patience = Duration{0};
    terms.silence = connect_time;
    terms.seed = random_seed();
    Conversation conversation(wire::RenewCertificate{*request}, terms, boot_clock());
    drive(pool, own, conversation);
    if (!conversation.outcome()) return;
    if (const auto *renewed = std::get_if<wire::Renewed>(&*conversation.outcome()))
        (void)use_renewed(pool, renewed->certificate);
}

// The connection of this thread serves as long as it is open and was made with the same token.
Status prepare(Pool &pool, Line &l, const std::string &token) {
    std::string path;
    if (!pool.remote()) {
        auto directory = pool.directory().empty() ? pool_directory() : Result<std::string>(pool.directory());
        if (!directory) return directory.status();
        path = *directory + "/scheduler/user.sock";
    } else {
        renew(pool, token);
    }
    if (l.greeted && l.path == path && l.token == token && l.remote == pool.remote() && l.transport.usable())
        return Status::ok();
    l.transport.close();
    l.greeted = false;
    l.path = path;
    l.token = token;
    l.remote = pool.remote();
    return Status::ok();
}

}  // namespace

Result<wire::AnyMessage> exchange(Pool &pool, const wire::AnyMessage &request, const Exchange &how) {
    Line &l = pool.line();
    if (Status s = prepare(pool, l, how.token); !s) return s;
    Terms terms;
    terms.request = next_request_id();
    terms.token = how.token;
    terms.patience = std::max(Duration{pool.patience().ns - how.waited.ns}, Duration{});
    terms.silence = silence_of(terms.patience);
    terms.for_ever = how.for_ever;
    terms.met = pool.scheduler_met();
    if (l.remote) {
        terms.epoch = pool.epoch_met();
        terms.others = static_cast<int>(l.remote->addresses.size()) - 1;
    }
    terms.greeted = l.greeted;
    terms.form = l.form;
    terms.seed = random_seed();
    Conversation conversation(request, terms, boot_clock());
    drive(pool, l, conversation);

    const auto &outcome = conversation.outcome();
    if (!outcome) return outcome.status();
    const auto *error = std::get_if<wire::ErrorReply>(&*outcome);
    if (!error) return *outcome;
    if (how.refused_grain) *how.refused_grain = error->grain;
    return refusal_of(pool, how.token, *error);
}

Duration silence_of(Duration patience) { return std::max(patience * 4, seconds(10)); }

Status refusal_of(Pool &pool, const std::string &token, const wire::ErrorReply &error) {
    if (error.code <= 0 || error.code > static_cast<int>(Code::last))
        return fail(Code::protocol,
                    "the scheduler sent the unknown error " + std::to_string(error.code) + ": " + error.text);
    const auto code = static_cast<Code>(error.code);
    if (code == Code::no_auth && !token.empty()) pool.forget_token(token);
    return fail(code, error.text);
}

}  // namespace dcs::client
