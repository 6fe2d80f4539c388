// Files that grains made, as declared at submission: kept in the library of this host first, so that
// their bytes do not change when this server restarts, then sent to the scheduler in pieces, of which some are on their
// way at a time, then reported.
#include <algorithm>

#include "base/limits.h"
#include "base/require.h"
#include "grainserver/core/turn.h"

namespace dcs::server {
namespace {
using Now = Transfer::Now;
constexpr int put_rounds_max = 4;

// Every end that is a result returns the existing outputs, also a failure.
bool brings_back(const Grain &g) {
    return g.phase == Phase::ended && g.looked_after_end && g.content.declares && g.ending != Ending::discard &&
           !innocent_end(g);
}

void all_unsent(GrainContents &c) {
    DCS_REQUIRE(c.outputs.has_value(), "the outputs of the grain are known");
    for (const wire::GrainFile &file : *c.outputs)
        if (!file.digest.empty()) c.unsent.insert(file.digest);
}

void keep_outputs(Turn &t) {
    for (const GrainId &id : t.state.derived.files) {
        Grain &g = *t.find(id);
        GrainContents &c = g.content;
        if (t.now >= c.keep_again) c.keep_again = Instant::never();
        if (!brings_back(g) || c.outputs || c.keeping || c.keep_again != Instant::never()) continue;
        c.keeping = true;
        t.emit(KeepOutputs{id});
    }
}

std::uint64_t size_of(const GrainContents &c, const std::string &digest) {
    DCS_REQUIRE(c.outputs.has_value(), "an unsent digest is one of the outputs");
    for (const wire::GrainFile &file : *c.outputs)
        if (file.digest == digest) return file.size;
    return 0;
}

// Derives the transfers from the unsent outputs of the grains.
void plan_puts(State &state) {
    std::set<std::string> wanted;
    for (const GrainId &id : state.derived.files) {
        const Grain &g = state.grains.at(id);
        if (!brings_back(g)) continue;
        for (const std::string &digest : g.content.unsent) {
            wanted.insert(digest);
            const auto [it, fresh] = state.puts.try_emplace(digest);
            if (!fresh) continue;
            it->second.order = state.next_order++;
            it->second.user = id.key.session.user;
            it->second.total = size_of(g.content, digest);
        }
    }
    for (auto it = state.puts.begin(); it != state.puts.end();)
        it = wanted.count(it->first) != 0 ? std::next(it) : state.puts.erase(it);
}

void from_the_beginning(Transfer &p) { p.done = p.kept = 0; }  // pieces are sent in order on one connection

void send_piece(Turn &t, const std::string &digest, const Transfer &p) { t.emit(SendPiece{digest, p.total, p.asked}); }
}  // namespace

bool outputs_are_there(const Grain &g) { return !brings_back(g) || (g.content.outputs && g.content.unsent.empty()); }

// The scheduler answered the report with `later`: it may lack contents that it had acknowledged.
void put_again(Grain &g) {
    if (g.content.outputs) all_unsent(g.content);
}

void outputs_kept(Turn &t, const OutputsKept &x) {
    Grain *g = t.find(x.id);
    if (g == nullptr || !g->content.keeping) return;
    GrainContents &c = g->content;
    c.keeping = false;
    c.outputs = x.files;
    c.output_words = x.words;
    if (!x.words.empty()) t.log(Level::info, to_text(x.id) + ": " + x.words);
    all_unsent(c);
    consider_report(t, x.id, *g);  // there may be no outputs
}

void outputs_unkept(Turn &t, const OutputsUnkept &x) {
    Grain *g = t.find(x.id);
    if (g == nullptr || !g->content.keeping) return;
    g->content.keeping = false;
    g->content.keep_again = t.now + t.state.interval;
    t.log(Level::warning, to_text(x.id) + ": its output files cannot be kept: " + x.text);
    if (++g->content.rounds >= put_rounds_max) lose(t, x.id, "its output files cannot be kept: " + x.text);
}

void content_taken(Turn &t, const wire::ContentTaken &taken) {
    const auto it = t.state.puts.find(taken.digest);
    if (it == t.state.puts.end() || it->second.now != Now::waiting) return;
    Transfer &p = it->second;
    if (taken.code != 0 || taken.next > p.total) {
        if (p.failures++ == 0) t.log(Level::warning, "the scheduler does not accept an output file now: " + taken.text);
        stop_waiting(p, Now::idle);
        from_the_beginning(p);
        p.again = t.now + t.state.interval;
        return;
    }
    const bool follows = taken.next == std::min(p.total, p.done + limits::content_piece_bytes);
    p.failures = 0;
    p.done = p.kept = taken.next;
    p.until = t.now + answer_patience;
    p.flows = true;
    p.astray = p.astray || !follows;
    if (p.unanswered > 0) --p.unanswered;
    if (p.unanswered == 0 && (p.astray || p.done == p.total)) stop_waiting(p, Now::idle);
    if (p.done < p.total) return;
    const std::string digest = taken.digest;
    t.state.puts.erase(it);
    settle(t);
    const std::set<GrainId> all = t.state.derived.files;
    for (const GrainId &id : all)
        if (Grain &g = *t.find(id); g.content.unsent.erase(digest) != 0) {
            g.content.rounds = 0;
            consider_report(t, id, g);
        }
}

// A kept output is missing in the library or damaged: the grain's directory still has it.
void piece_unreadable(Turn &t, const PieceUnreadable &x) {
    if (t.state.puts.erase(x.digest) == 0) return;  // another one of its pieces
    t.log(Level::warning, "an output file that was kept cannot be read: " + x.text);
    std::vector<GrainId> lost;
    settle(t);
    for (const GrainId &id : t.state.derived.files) {
        Grain &g = *t.find(id);
        if (g.content.unsent.count(x.digest) == 0) continue;
        g.content.outputs.reset();
        g.content.unsent.clear();
        g.content.keep_again = t.now + t.state.interval;
        if (++g.content.rounds >= put_rounds_max) lost.push_back(id);
    }
    for (const GrainId &id : lost) lose(t, id, "its output files cannot be kept: " + x.text);
}

void put_on(Turn &t) {
    settle(t);
    if (t.state.derived.files.empty() && t.state.puts.empty()) return;
    keep_outputs(t);
    plan_puts(t.state);
    transfer_on(t, t.state.puts, from_the_beginning, send_piece);
}

}  // namespace dcs::server
