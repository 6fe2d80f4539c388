#pragma once
// Lets the effects of a turn out, after its commit. This is where bulk joins what the core
// decided: results, pieces, launches are completed with bytes read from the store.
#include <cstdint>
#include <string>
#include <vector>

#include "scheduler/state/decision.h"
#include "scheduler/record/read_blob.h"
#include "scheduler/record/scrub.h"
#include "scheduler/turn/age_clock.h"
#include "scheduler/turn/contents.h"
#include "scheduler/turn/figures.h"
#include "scheduler/turn/live.h"
#include "scheduler/turn/outside.h"
#include "store/store.h"

namespace dcs::turn {

// What the scheduler says about its own process in answers to queries.
struct AboutProcess {
    std::int64_t pid = 0;
    Instant started{};
    std::string version;
    std::vector<wire::ProblemRow> problems;  // found at the start, and not told by the State
};

class Effects {
public:
    Effects(const core::State &state, store::Store &store, record::Scrub &scrub, AgeClock &ages, Contents &contents,
            Live &live, Figures &figures, Outside &outside, AboutProcess about)
        : state_(state),
          store_(store),
          scrub_(scrub),
          ages_(ages),
          contents_(contents),
          live_(live),
          figures_(figures),
          outside_(outside),
          about_(std::move(about)) {}

    void perform(const core::Effect &effect);

    // Launches that could not be sent because their bytes cannot be read: to be decided as if the
    // server had said so. Emptied by the call.
    std::vector<core::Input> take_failed_launches() { return std::exchange(failed_, {}); }
    // Connections to be closed now that everything for them is queued. Emptied by the call.
    std::vector<std::string> take_closed_hosts() { return std::exchange(closed_hosts_, {}); }  // ClosePrograms
    const record::Verified &verified() const { return verified_; }
    std::vector<ConnId> take_closed() { return std::exchange(closed_, {}); }

private:
    void act(const core::Reply &e);
    void complete(wire::SystemRow &row);
    void act(const core::ReplyResult &e);
    void act(const core::ReplyResults &e);
    void act(const core::ReplyPiece &e);
    void send_log(const core::ReplyPiece &e);
    void act(const core::ReplyDifference &e);
    void act(const core::ReplyGrainDetail &e);
    void act(const core::ReplyExport &e);
    void act(const core::ReplyDoctor &e);
    void act(const core::SendServer &e);
    void act(const core::SendLaunch &e);
    void act(const core::CloseConnection &e);
    void act(const core::ProbeHost &e) { outside_.probe(e); }
    void act(const core::Reread &e);
    void act(const core::SendCertificate &e);
    void act(const core::SendProgram &e);
    void act(const core::ClosePrograms &e) { closed_hosts_.push_back(e.host); }
    void act(const core::RemoveHostLine &e);
    void act(const core::ReplyLive &e) { live_.ask(e); }
    void act(const core::SetOwnLogLevel &e) { outside_.set_log_level(e.level); }

    record::Verified *verified(const GrainKey &key);
    // With the first 20 KiB of its outputs.
    Result<wire::GrainResult> complete_result(const GrainKey &key, const core::Grain &grain, wire::GrainResult head);
    Status complete_row(const GrainKey &key, wire::GrainRow &row);
    Result<wire::GrainSpec> read_spec(const GrainKey &key, const core::Grain &grain);
    Result<wire::Piece> read_piece(const GrainKey &key, const wire::Fetch &fetch);
    // True: its bytes lie in the library, which answers.
    Result<bool> library_answers(const core::ReplyPiece &e, const core::Grain &grain);
    Status complete_launch(const GrainKey &key, const core::Grain &grain, wire::Launch &launch);
    void reply_error(ConnId conn, core::RequestId request, const GrainKey &key, const Status &why);
    // The grain, or nothing and an error reply: a later input of the same turn removed it.
    const core::Grain *grain_for(ConnId conn, core::RequestId request, const GrainKey &key);

    const core::State &state_;
    store::Store &store_;
    record::Scrub &scrub_;
    AgeClock &ages_;
    Contents &contents_;
    Live &live_;
    Figures &figures_;
    Outside &outside_;
    AboutProcess about_;
    record::Verified verified_;
    std::vector<core::Input> failed_;
    std::vector<ConnId> closed_;
    std::vector<std::string> closed_hosts_;
};

}  // namespace dcs::turn
