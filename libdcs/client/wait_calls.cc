// d_gwait, d_gwait_streams and d_gwait_many (C8, C13). The request names the wanted result by its index in the order of
// finishing, and thereby acknowledges all before it; so a repeated request gets the same result, and
// an index is handed to this program exactly once.
#include <algorithm>

#include "base/limits.h"
#include "client/call.h"
#include "client/streams.h"

namespace dcs::client {
namespace {

// What d_gwait or d_gwait_many handed out to this thread last: its texts are the caller's until the next one.
std::vector<wire::GrainResult> &handed_out() {
    static thread_local std::vector<wire::GrainResult> results;
    return results;
}

Result<wire::GrainResult> next_result(const TakeResult &turn, int session_num, bool block) {
    auto reply =
        ask<wire::GrainResult>(wire::Gwait{session_num, turn.next(), block}, How{With::token, block});
    if (reply && reply->sent <= turn.next())
        return fail(Code::protocol, "the scheduler sent result " + std::to_string(reply->sent - 1) +
                                        " again, wanted was " + std::to_string(turn.next()));
    return reply;
}

Result<wire::GrainResults> next_results(const TakeResult &turn, int session_num, int max, bool block) {
    wire::GwaitMany request{session_num, turn.next(), max, block};
    request.most = std::min(max, static_cast<int>(limits::batch_grains));
    auto reply = ask<wire::GrainResults>(request, How{With::token, block});
    if (!reply) return reply;
    if (reply->results.empty() || reply->results.size() > static_cast<std::size_t>(request.most))
        return fail(Code::protocol, "the scheduler sent " + std::to_string(reply->results.size()) +
                                        " results, wanted were 1 to " + std::to_string(request.most));
    std::int32_t before = turn.next();
    for (const wire::GrainResult &r : reply->results) {
        if (r.sent <= before)
            return fail(Code::protocol, "the scheduler sent result " + std::to_string(r.sent - 1) +
                                            " where one from " + std::to_string(before) + " on was due");
        before = r.sent;
    }
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
        std::vector<wire::GrainResult> &h = handed_out();
        h.clear();
        h.push_back(std::move(*result));
        Numbers{grain_num, completed, sent, termsig, retcode, rusage}.fill(h[0]);
        put(outlen, h[0].out_length);
        put(errlen, h[0].err_length);
        if (output) *output = h[0].out.data();
        if (error) *error = h[0].err.data();
        turn.taken(h[0].sent);
        return Status::ok();
    });
}

int d_gwait_many(int block, int session_num, int max, struct d_result *results, int *count) {
    if (count) *count = 0;
    return c_call([&]() -> Status {
        if (Status s = check_session(session_num); !s) return s;
        if (max < 1) return fail(Code::invalid, "max is " + std::to_string(max) + ": it must be at least 1");
        if (!results || !count) return fail(Code::invalid, "results and count must not be NULL");
        TakeResult turn(session_num, block != 0);
        if (!turn.status()) return turn.status();
        auto reply = next_results(turn, session_num, max, block != 0);
        if (!reply) return reply.status();
        std::vector<wire::GrainResult> &h = handed_out();
        h = std::move(reply->results);
        for (wire::GrainResult &r : h) {
            d_result &to = results[(*count)++];
            Numbers{&to.grain_num, &to.completed, &to.sent, &to.termsig, &to.retcode, &to.rusage}.fill(r);
            to.outlen = r.out_length;
            to.errlen = r.err_length;
            to.output = r.out.data();
            to.error = r.err.data();
        }
        turn.taken(h.back().sent);
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
