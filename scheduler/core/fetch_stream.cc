// What a grain was given and what it wrote: pieces of its streams and files, from its host where the scheduler has not
// got them yet.
#include <algorithm>

#include "base/limits.h"
#include "scheduler/core/decisions.h"

namespace dcs::core {

void note_shown(Draft &d, const Caller &caller, const GrainKey &key) {
    const Grain &g = *d.state.grain(key);
    const SessionInfo &info = d.state.session(key.session)->info;
    const bool its_own = caller.has_token && info.token == caller.token && info.status == SessionStatus::active;
    if (its_own && !g.is_over() && g.course->told != g.course->sequence)
        d.grain(key).course.edit().told = g.course->sequence;
}

namespace {

// It brought this file back.
Status check_output(const Grain &grain, const GrainKey &key, const std::string &name) {
    const std::string what = "grain " + to_text(key) + ": ";
    for (const wire::GrainFile &file : grain.files->outputs) {
        if (file.name != name) continue;
        if (!file.digest.empty()) return Status::ok();
        return fail(Code::not_found, what + (grain.status() == GrainStatus::finished
                                                 ? "it ended without making the file " + name +
                                                       " (directories, links and patterns are not outputs)"
                                                 : "it has not ended, and its files arrive when it ends"));
    }
    return fail(Code::not_found, what + "a file " + name + " is not among the outputs of its submission");
}

struct Asked {
    ConnId conn{};
    Incarnation incarnation = 0;
    std::uint32_t after = 0;
    std::uint64_t recorded = 0;
};

// It runs, and more is wanted of it than the scheduler has.
std::optional<Asked> ask_its_host(const State &state, const GrainKey &key, const wire::Fetch &fetch) {
    const Grain &g = *state.grain(key);
    if (g.status() != GrainStatus::running) return std::nullopt;
    const Host *host = state.host(g.runs_on());
    const bool output = fetch.stream == wire::Stream::out || fetch.stream == wire::Stream::err;
    const std::uint64_t recorded = fetch.stream == wire::Stream::out ? g.course->out_length : g.course->err_length;
    if (!output || !host || host->conn == no_connection || fetch.offset < recorded) return std::nullopt;
    if (host->form == wire::positional_form) return std::nullopt;  // release 0.1 does not know the question
    return Asked{host->conn, g.lease, g.course->sequence, recorded};
}

}  // namespace

void fetch_stream(Draft &d, const Caller &caller, const wire::Fetch &call) {
    wire::Fetch fetch = call;
    if (fetch.user.empty()) fetch.user = caller.user;
    const GrainKey key{SessionKey{fetch.user, fetch.session}, fetch.grain};
    if (!d.state.session(key.session)) return d.refuse(caller, missing_session(d.state, key.session));
    const bool of_grain = fetch.stream != wire::Stream::log;
    if (of_grain && !d.state.grain(key)) return d.refuse(caller, missing_grain(d.state, key));
    if (fetch.stream == wire::Stream::file)
        if (Status s = check_output(*d.state.grain(key), key, fetch.file); !s) return d.refuse(caller, s);
    if (of_grain && fetch.stream != wire::Stream::input) note_shown(d, caller, key);
    const auto chunk = static_cast<std::uint32_t>(limits::fetch_chunk_bytes);
    fetch.max = fetch.max == 0 ? chunk : std::min(fetch.max, chunk);
    if (const auto live = of_grain && fetch.live ? ask_its_host(d.state, key, fetch) : std::nullopt)
        return d.effect(ReplyLive{caller.conn, caller.request, key, fetch, live->conn, live->incarnation, live->after,
                                  live->recorded});
    d.effect(ReplyPiece{caller.conn, caller.request, key, fetch});
}

}  // namespace dcs::core
