// The bytes of results against what an undisturbed run writes.
#include "base/limits.h"
#include "sim/checkers/promises.h"
#include "sim/grain_model.h"

namespace dcs::sim {
namespace {

std::string differs(const char *stream, const std::string &right, const std::string &got, std::uint64_t length) {
    if (length != right.size())
        return std::string(stream) + " has " + std::to_string(length) + " bytes, an undisturbed run writes " +
               std::to_string(right.size());
    if (got != right.substr(0, limits::gwait_text_bytes)) return std::string(stream) + " has other bytes";
    return {};
}

std::string compare(const Model &m, int steps, const wire::GrainResult &r) {
    const Written right = written_after(m, steps);
    std::string what = differs("its output", right.out, r.out, r.out_length);
    if (what.empty()) what = differs("its error output", right.err, r.err, r.err_length);
    return what;
}

}  // namespace

std::string wrong_with_output(const Plan &plan, const Model &m, const wire::GrainResult &r) {
    const int end = m.fail_at >= 0 ? m.fail_at : m.steps;
    const bool as_it_must =
        m.fail_at >= 0 ? r.code == m.fail_code && r.signal == m.fail_signal : r.code == 0 && r.signal == 0;
    if (as_it_must) {
        std::string what = compare(m, end, r);
        if (what.empty() && r.usage.user_us + r.usage.system_us < m.cpu_us() && m.fail_at < 0)
            what = "it used less CPU time than its work takes";
        return what;
    }
    if (r.code == exit_bad_host && r.signal == 0 && plan.has(Fault::bad_host)) {
        for (int steps = 0; steps <= end; ++steps)
            if (compare(m, steps, r).empty()) return {};
        return "what it wrote before a bad host ended it is nothing that it ever writes";
    }
    return "it ended with signal " + std::to_string(r.signal) + ", code " + std::to_string(r.code) +
           ", which it never does by itself";
}

std::string wrong_with_piece(const Model &m, const wire::Fetch &call, const wire::Piece &piece) {
    const Written right = written_after(m, m.fail_at >= 0 ? m.fail_at : m.steps);
    if (piece.total != right.out.size()) return "has another length when it is fetched";
    if (call.offset <= right.out.size() && piece.bytes != right.out.substr(call.offset, piece.bytes.size()))
        return "has other bytes when it is fetched";
    return {};
}

}  // namespace dcs::sim
