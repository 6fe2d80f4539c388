#include "scheduler/turn/weight.h"

#include <algorithm>
#include <type_traits>

#include "base/limits.h"
#include "base/load_limits.h"

namespace dcs::turn {
namespace {

// What looks through lists of sessions, grains or hosts.
constexpr std::size_t long_look = 64;
// One piece of a file.
constexpr std::size_t one_piece = 8;
// Read through from the disk or the kernel's cache, and summed up; rows of an answer.
constexpr std::uint64_t bytes_read_per_request = 64 * 1024;
constexpr std::size_t rows_per_request = 2;
// A grain with all that it was submitted with. Long lists of short words take the longest.
constexpr std::size_t detail_weight = 2, detail_bytes_per_request = 1024;
// Parameters that are read, unpacked, and compared or packed again.
constexpr std::uint64_t bytes_unpacked_per_request = 4 * 1024;
// A session has folders and files of its own; a token is looked for among all of them.
constexpr std::size_t new_session = 16, new_token = 4;

std::size_t at_most(std::int32_t asked, std::size_t most) {
    return asked > 0 ? std::min(static_cast<std::size_t>(asked), most) : most;
}

struct WeightOf {
    std::size_t operator()(const core::SubmitGrains &r) const { return std::max<std::size_t>(1, r.grains->size()); }
    std::size_t operator()(const core::ImportSession &r) const {
        return r.content ? std::max<std::size_t>(1, r.content->grains->size()) : 1;
    }
    std::size_t operator()(const wire::GwaitMany &r) const { return at_most(r.most, limits::batch_grains); }
    std::size_t operator()(const wire::Fetch &) const { return one_piece; }
    std::size_t operator()(const wire::OpenSession &) const { return new_session; }
    std::size_t operator()(const core::GetAuth &) const { return new_token; }
    std::size_t operator()(const wire::Query &) const { return long_look; }
    std::size_t operator()(const wire::Doctor &) const { return long_look; }
    std::size_t operator()(const wire::Explain &) const { return long_look; }
    std::size_t operator()(const wire::CloseSession &) const { return long_look; }
    std::size_t operator()(const wire::CleanSession &) const { return long_look; }
    template <class Request> std::size_t operator()(const Request &) const { return 1; }
};

template <class E, class... Kinds> constexpr bool is_one_of = (std::is_same_v<E, Kinds> || ...);

// An effect that reads has a weight: there is no default, or a new one would hold up everybody for nothing.
struct OfAnswer {
    const core::State &state;
    const record::Verified &verified;

    std::uint64_t bytes(const GrainKey &key, wire::Stream stream, std::uint64_t max) const {
        const core::Grain *grain = state.grain(key);
        if (!grain || stream == wire::Stream::file || stream == wire::Stream::log) return 0;
        if (stream == wire::Stream::input) return grain->params_length;
        return record::checked_bytes(key, *grain, stream, max, verified);
    }
    std::size_t result(const GrainKey &key) const {
        return (bytes(key, wire::Stream::out, limits::gwait_text_bytes) +
                bytes(key, wire::Stream::err, limits::gwait_text_bytes)) /
               bytes_read_per_request;
    }
    std::size_t operator()(const core::ReplyPiece &e) const {
        const bool first = e.fetch.offset == 0 || e.fetch.stream == wire::Stream::input;
        return first ? bytes(e.key, e.fetch.stream, e.fetch.max) / bytes_read_per_request : 0;
    }
    std::size_t operator()(const core::ReplyResult &e) const { return result(e.key); }
    std::size_t operator()(const core::ReplyResults &e) const {
        std::size_t sum = 0;
        for (const wire::GrainResult &head : e.heads) sum += result({e.session, head.grain});
        return sum;
    }
    std::size_t operator()(const core::Reply &e) const {
        const auto *rows = std::get_if<wire::QueryReply>(&e.message);
        return rows ? (rows->hosts.size() + rows->sessions.size() + rows->grains.size()) / rows_per_request : 0;
    }
    // What stands in it is read, unpacked and encoded again, entry by entry.
    std::size_t operator()(const core::ReplyGrainDetail &e) const {
        std::size_t sum = 0;
        for (const wire::GrainRow &row : e.rows)
            if (const core::Grain *grain = state.grain({e.key.session, row.grain}))
                sum += detail_weight + core::detail_bytes(*grain) / detail_bytes_per_request;
        return sum;
    }
    std::size_t operator()(const core::ReplyDifference &e) const {
        const core::Grain *grain = state.grain(e.key);
        return grain ? one_piece + grain->params_length / bytes_unpacked_per_request : 0;
    }
    // The page may have fewer grains than are counted here, never more.
    std::size_t operator()(const core::ReplyExport &e) const {
        const core::Session *session = state.session(e.key);
        if (!session) return 0;
        const std::size_t most = at_most(e.most, limits::export_page_grains);
        std::size_t grains = 0;
        std::uint64_t read = 0;
        for (auto it = session->grains.upper_bound(e.after); it != session->grains.end(); ++it, ++grains) {
            if (grains >= most || read >= limits::export_page_bytes) break;
            read += core::detail_bytes(it->second);
        }
        return 1 + grains + read / bytes_unpacked_per_request;
    }
    // What has its bytes in memory, or is bounded by commits, slots or hosts.
    template <class E>
    requires is_one_of<E, core::ReplyDoctor, core::ReplyLive, core::SendServer, core::SendLaunch, core::SendCertificate,
                       core::SendProgram, core::CloseConnection, core::ClosePrograms, core::ProbeHost, core::Reread,
                       core::RemoveHostLine, core::SetOwnLogLevel>
        std::size_t operator()(const E &) const {
        return 0;
    }
};

}  // namespace

std::size_t weight_of(const core::State &state, const core::Effect &answer, const record::Verified &verified) {
    return std::visit(OfAnswer{state, verified}, answer);
}

std::size_t weight_of(const core::Input &input) {
    const auto *call = std::get_if<core::UserCall>(&input);
    return call ? std::visit(WeightOf{}, call->request) : 1;
}

}  // namespace dcs::turn
