// Taking results. The request names the wanted result by its index in the order of
// finishing, and so acknowledges all before it; so a repeated request gets the same result, and
// an index is handed to this program exactly once.
#include <algorithm>

#include "base/limits.h"
#include "base/sized.h"
#include "client/call.h"
#include "client/rows.h"
#include "client/streams.h"

namespace dcs::client {
namespace {

// A run that repeats an earlier one, and has all results of what it has submitted.
bool has_all(const TakeResult &turn) { return turn.without_result() == 0u; }

Result<wire::GrainResult> next_result(Pool &pool, const TakeResult &turn, int session_num, bool block) {
    const wire::Gwait request{session_num, turn.next(), block, has_all(turn), turn.failed_from()};
    auto reply = ask<wire::GrainResult>(pool, request, How{With::token, block});
    if (reply && reply->sent <= turn.next())
        return fail(Code::protocol, "the scheduler sent result " + std::to_string(reply->sent - 1) +
                                        " again, expected " + std::to_string(turn.next()));
    return reply;
}

Result<wire::GrainResults> next_results(Pool &pool, const TakeResult &turn, int session_num, int max, bool block) {
    DCS_REQUIRE(max >= 1, "the number of results was checked");
    wire::GwaitMany request{session_num, turn.next(), max, block, has_all(turn), turn.failed_from()};
    request.most = std::min(max, static_cast<int>(limits::batch_grains));
    if (turn.without_result())  // no more than this run waits for
        request.most = static_cast<int>(
            std::clamp<std::size_t>(*turn.without_result(), 1, static_cast<std::size_t>(request.most)));
    auto reply = ask<wire::GrainResults>(pool, request, How{With::token, block});
    if (!reply) return reply;
    if (reply->results.empty() || reply->results.size() > static_cast<std::size_t>(request.most))
        return fail(Code::protocol, "the scheduler sent " + std::to_string(reply->results.size()) +
                                        " results, expected 1 to " + std::to_string(request.most));
    std::int32_t before = turn.next();
    for (const wire::GrainResult &r : reply->results) {
        if (r.sent <= before)
            return fail(Code::protocol, "the scheduler sent result " + std::to_string(r.sent - 1) +
                                            ", expected one from " + std::to_string(before) + " on");
        before = r.sent;
    }
    return reply;
}

Status check_results(const d_result *results) {
    if (!results) return fail(Code::invalid, "the place for the result is NULL");
    return sound_size<d_result>(results->struct_size) ? Status::ok() : bad_struct_size("result", results->struct_size);
}

Status wait_many(Pool &pool, bool block, int session_num, int max, d_result *results, int *count) {
    if (Status s = check_session(session_num); !s) return s;
    if (max < 1) return fail(Code::invalid, "max is " + std::to_string(max) + ": it must be at least 1");
    if (!results || !count) return fail(Code::invalid, "results and count must not be NULL");
    if (Status s = check_results(results); !s) return s;
    TakeResult turn(pool, session_num, block);
    if (!turn.status()) return turn.status();
    auto reply = next_results(pool, turn, session_num, max, block);
    if (!reply) return reply.status();
    std::vector<wire::GrainResult> &h = pool.line().handed_out;
    h = std::move(reply->results);
    const std::size_t stride = results->struct_size;
    for (wire::GrainResult &r : h)
        copy_out(result_of(r), at_stride(results, stride, static_cast<std::size_t>((*count)++)), stride);
    turn.taken(h);
    return Status::ok();
}

Status wait_one(Pool &pool, bool block, int session_num, d_result &result) {
    if (Status s = check_session(session_num); !s) return s;
    TakeResult turn(pool, session_num, block);
    if (!turn.status()) return turn.status();
    auto reply = next_result(pool, turn, session_num, block);
    if (!reply) return reply.status();
    std::vector<wire::GrainResult> &h = pool.line().handed_out;
    h.clear();
    h.push_back(std::move(*reply));
    result = result_of(h[0]);
    turn.taken(h);
    return Status::ok();
}

Result<File> whole(Pool &pool, int session_num, const wire::GrainResult &r, wire::Stream stream) {
    const bool out = stream == wire::Stream::out;
    return fetch_stream(pool, {}, session_num, r.grain, stream, out ? r.out : r.err, out ? r.out_length : r.err_length,
                        With::token);
}

Status wait_streams(Pool &pool, bool block, int session_num, d_result &result, FILE **output, FILE **error) {
    if (Status s = check_session(session_num); !s) return s;
    TakeResult turn(pool, session_num, block);
    if (!turn.status()) return turn.status();
    auto reply = next_result(pool, turn, session_num, block);
    if (!reply) return reply.status();
    // The place in the session moves only when everything is here: a failure leaves the result
    // for the next call.
    File out, err;
    if (output) {
        auto f = whole(pool, session_num, *reply, wire::Stream::out);
        if (!f) return f.status();
        out = std::move(*f);
    }
    if (error) {
        auto f = whole(pool, session_num, *reply, wire::Stream::err);
        if (!f) return f.status();
        err = std::move(*f);
    }
    result = result_of(*reply);
    result.output = result.error = nullptr;
    if (output) *output = out.release();
    if (error) *error = err.release();
    turn.taken({&*reply, 1});
    return Status::ok();
}

template <class T> void put(T *to, const T &value) {
    if (to) *to = value;
}

// The 1990 paper's way of handing out a result.
struct Numbers {
    int *grain_num, *completed, *sent, *termsig, *retcode;
    struct rusage *usage;
    void fill(const d_result &r) const {
        put(grain_num, r.grain_num);
        put(completed, r.completed);
        put(sent, r.sent);
        put(termsig, r.termsig);
        put(retcode, r.retcode);
        put(usage, r.rusage);
    }
};

}  // namespace
}  // namespace dcs::client

using namespace dcs;
using namespace dcs::client;

extern "C" {

int d_pool_gwait_result(struct d_pool *pool, int block, int session_num, struct d_result *result) {
    return c_call(pool, [&](Pool &p) -> Status {
        if (Status s = check_results(result); !s) return s;
        d_result taken{};
        const Status s = wait_one(p, block != 0, session_num, taken);
        if (s) copy_out(taken, result, result->struct_size);
        return s;
    });
}

int d_pool_gwait_many(struct d_pool *pool, int block, int session_num, int max, struct d_result *results, int *count) {
    if (count) *count = 0;
    return c_call(pool, [&](Pool &p) { return wait_many(p, block != 0, session_num, max, results, count); });
}

int d_pool_gwait_streams(struct d_pool *pool, int block, int session_num, struct d_result *result, FILE **output,
                         FILE **error) {
    put(output, static_cast<FILE *>(nullptr));
    put(error, static_cast<FILE *>(nullptr));
    return c_call(pool, [&](Pool &p) -> Status {
        if (result)
            if (Status s = check_results(result); !s) return s;
        d_result taken{};
        const Status s = wait_streams(p, block != 0, session_num, taken, output, error);
        if (s && result) copy_out(taken, result, result->struct_size);
        return s;
    });
}

int d_gwait(int block, int session_num, int *grain_num, int *completed, int *sent, int *termsig, int *retcode,
            struct rusage *rusage, size_t *outlen, char **output, size_t *errlen, char **error) {
    put(output, static_cast<char *>(nullptr));
    put(error, static_cast<char *>(nullptr));
    d_result r;
    d_result_init(&r, 1);
    if (const int failed = d_pool_gwait_result(nullptr, block, session_num, &r); failed != D_OK) return failed;
    Numbers{grain_num, completed, sent, termsig, retcode, rusage}.fill(r);
    put(outlen, r.outlen);
    put(output, r.output);
    put(errlen, r.errlen);
    put(error, r.error);
    return D_OK;
}

int d_gwait_streams(int block, int session_num, int *grain_num, int *completed, int *sent, int *termsig, int *retcode,
                    struct rusage *rusage, FILE **output, FILE **error) {
    d_result r;
    d_result_init(&r, 1);
    const int failed = d_pool_gwait_streams(nullptr, block, session_num, &r, output, error);
    if (failed != D_OK) return failed;
    Numbers{grain_num, completed, sent, termsig, retcode, rusage}.fill(r);
    return D_OK;
}
}
