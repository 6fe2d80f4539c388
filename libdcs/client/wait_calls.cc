// d_gwait and d_gwait_streams (C8). The request names the wanted result by its index in the order of
// finishing, and thereby acknowledges all before it; so a repeated request gets the same result, and
// an index is handed to this program exactly once.
#include "client/call.h"
#include "client/streams.h"

namespace dcs::client {
namespace {

// What d_gwait handed out to this thread last.
struct HandedOut { std::string out, err; };
HandedOut &handed_out() {
    static thread_local HandedOut h;
    return h;
}

Result<wire::GrainResult> next_result(const TakeResult &turn, int session_num, bool block) {
    auto reply =
        ask<wire::GrainResult>(wire::Gwait{session_num, turn.next(), block}, How{With::token, block});
    if (reply && reply->sent <= turn.next())
        return fail(Code::protocol, "the scheduler sent result " + std::to_string(reply->sent - 1) +
                                        " again, wanted was " + std::to_string(turn.next()));
    return reply;
}

void put_usage(rusage *to, const wire::Usage &usage) {
    if (!to) return;
    *to = {};
    to->ru_utime = {usage.user_us / 1'000'000, usage.user_us % 1'000'000};
    to->ru_stime = {usage.system_us / 1'000'000, usage.system_us % 1'000'000};
    to->ru_maxrss = usage.max_rss_kb;
    to->ru_minflt = usage.minor_faults;
    to->ru_majflt = usage.major_faults;
    to->ru_inblock = usage.in_blocks;
    to->ru_oublock = usage.out_blocks;
}

template <class T, class U> void put(T *to, U value) {
    if (to) *to = static_cast<T>(value);
}

struct Numbers {
    int *grain_num, *completed, *sent, *termsig, *retcode;
    struct rusage *usage;
    void fill(const wire::GrainResult &r) const {
        put(grain_num, r.grain);
        put(completed, r.completed);
        put(sent, r.sent);
        put(termsig, r.signal);
        put(retcode, r.code);
        put_usage(usage, r.usage);
    }
};

Result<File> whole(int session_num, const wire::GrainResult &r, wire::Stream stream) {
    const bool out = stream == wire::Stream::out;
    return fetch_stream({}, session_num, r.grain, stream, out ? r.out : r.err,
                        out ? r.out_length : r.err_length, With::token);
}

}  // namespace
}  // namespace dcs::client

using namespace dcs;
using namespace dcs::client;

extern "C" {

int d_gwait(int block, int session_num, int *grain_num, int *completed, int *sent, int *termsig, int *retcode,
            struct rusage *rusage, size_t *outlen, char **output, size_t *errlen, char **error) {
    return c_call([&]() -> Status {
        if (Status s = check_session(session_num); !s) return s;
        TakeResult turn(session_num, block != 0);
        if (!turn.status()) return turn.status();
        auto result = next_result(turn, session_num, block != 0);
        if (!result) return result.status();
        HandedOut &h = handed_out();
        h.out = std::move(result->out);
        h.err = std::move(result->err);
        Numbers{grain_num, completed, sent, termsig, retcode, rusage}.fill(*result);
        put(outlen, result->out_length);
        put(errlen, result->err_length);
        if (output) *output = h.out.data();
        if (error) *error = h.err.data();
        turn.taken(result->sent);
        return Status::ok();
    });
}

int d_gwait_streams(int block, int session_num, int *grain_num, int *completed, int *sent, int *termsig,
                    int *retcode, struct rusage *rusage, FILE **output, FILE **error) {
    return c_call([&]() -> Status {
        if (Status s = check_session(session_num); !s) return s;
        TakeResult turn(session_num, block != 0);
        if (!turn.status()) return turn.status();
        auto result = next_result(turn, session_num, block != 0);
        if (!result) return result.status();
        // The place in the session moves only when everything is here: a failure leaves the result
        // for the next call.
        File out, err;
        if (output) {
            auto f = whole(session_num, *result, wire::Stream::out);
            if (!f) return f.status();
            out = std::move(*f);
        }
        if (error) {
            auto f = whole(session_num, *result, wire::Stream::err);
            if (!f) return f.status();
            err = std::move(*f);
        }
        Numbers{grain_num, completed, sent, termsig, retcode, rusage}.fill(*result);
        if (output) *output = out.release();
        if (error) *error = err.release();
        turn.taken(result->sent);
        return Status::ok();
    });
}
}
