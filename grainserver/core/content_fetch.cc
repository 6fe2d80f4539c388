// Fetches contents that grains need and that are not on this host, one after the other, in pieces, of which some are on
// their way at a time. Then the files are placed, and the grain may start.
#include <algorithm>
#include <tuple>

#include "base/limits.h"
#include "base/planted.h"
#include "base/require.h"
#include "grainserver/core/turn.h"

namespace dcs::server {
namespace {
using Now = Transfer::Now;
constexpr Duration retry = seconds(1);
constexpr int failures_max = 4;
constexpr int rounds_max = 4;

std::vector<GrainId> waiting_for(const State &state, const std::string &digest) {
    std::vector<GrainId> found;
    for (const GrainId &id : state.derived.files)
        if (state.grains.at(id).content.missing.count(digest) != 0) found.push_back(id);
    return found;
}

// Grains that wait for the content cannot start on this host now; that is not their fault.
void give_up_fetch(Turn &t, const std::string &digest, Code code, const std::string &why) {
    settle(t);
    for (const GrainId &id : waiting_for(t.state, digest))
        drop_unstarted(t, id, code, "cannot get content " + wire::digest_text(digest) + ": " + why);
}

void failed(Turn &t, const std::string &digest, Transfer &f, Code code, const std::string &why) {
    stop_waiting(f, Now::idle);
    f.again = t.now + retry;
    if (++f.failures >= failures_max) give_up_fetch(t, digest, code, why);
}

void place_files(Turn &t) {
    for (const GrainId &id : t.state.derived.files) {
        Grain &g = *t.find(id);
        GrainContents &c = g.content;
        if (!c.to_place || !c.recorded || c.placing || !c.missing.empty()) continue;
        DCS_REQUIRE(!g.written && g.phase == Phase::queued, "files are placed before the grain may start");
        c.placing = true;
        t.emit(PlaceFiles{id});
    }
}

void forget_unwanted(Turn &t) {
    for (auto it = t.state.fetches.begin(); it != t.state.fetches.end();) {
        if (!waiting_for(t.state, it->first).empty()) {
            ++it;
            continue;
        }
        t.emit(DropPieces{it->first});
        it = t.state.fetches.erase(it);
    }
}

void keep_the_received(Transfer &) {}

void ask_piece(Turn &t, const std::string &digest, const Transfer &f) {
    t.emit(Send{wire::WantContent{digest, f.asked, static_cast<std::uint32_t>(limits::content_piece_bytes)}});
}

void request(Turn &t, const std::string &digest, Transfer &x, AskPiece ask) {
    ask(t, digest, x);
    x.asked = std::min(x.total, x.asked + limits::content_piece_bytes);
    ++x.unanswered;
}

// Users take turns, and of one user the smallest goes first: who has gigabytes to move holds the others up by one
// content at most.
bool goes_before(const State &state, const Transfer &a, const Transfer &b) {
    const auto rank = [&](const Transfer &x) {
        const auto begun = state.begun_for.find(x.user);
        return std::tuple(begun == state.begun_for.end() ? 0 : begun->second, x.total - x.done, x.order);
    };
    if (planted("server.transfers_in_order")) return a.order < b.order;
    return rank(a) < rank(b);
}

void note_begun(State &state, const Transfer &x) {
    const auto has_none = [&](const auto &entry) {
        const auto is_of = [&](const auto &transfer) { return transfer.second.user == entry.first; };
        return std::none_of(state.fetches.begin(), state.fetches.end(), is_of) &&
               std::none_of(state.puts.begin(), state.puts.end(), is_of);
    };
    std::erase_if(state.begun_for, has_none);
    state.begun_for[x.user] = state.next_order++;
}

// The transfer to begin, if none is busy.
std::map<std::string, Transfer>::iterator next_transfer(Turn &t, std::map<std::string, Transfer> &transfers,
                                                        void (*lost)(Transfer &)) {
    const bool ready = t.state.with_scheduler();
    auto next = transfers.end();
    bool busy = false;
    for (auto it = transfers.begin(); it != transfers.end(); ++it) {
        Transfer &x = it->second;
        if (x.now == Now::waiting && (!ready || t.now >= x.until)) stop_waiting(x, Now::idle);
        if (x.now == Now::idle && !ready) lost(x);
        if (t.now >= x.again) x.again = Instant::never();
        busy = busy || x.now != Now::idle;
        const bool may = x.again == Instant::never();
        if (may && (next == transfers.end() || goes_before(t.state, x, next->second))) next = it;
    }
    return busy || !ready ? transfers.end() : next;
}

// Asks for the rest of it alone.
void begin_again(Transfer &f) { stop_waiting(f, f.kept < f.done ? Now::writing : Now::idle); }
}  // namespace

void stop_waiting(Transfer &x, Now now) {
    x.now = now;
    x.until = Instant::never();
    x.unanswered = 0;
    x.flows = x.astray = false;
}

void transfer_on(Turn &t, std::map<std::string, Transfer> &transfers, void (*lost)(Transfer &), AskPiece ask) {
    if (const auto next = next_transfer(t, transfers, lost); next != transfers.end()) {
        Transfer &x = next->second;
        DCS_REQUIRE(x.now == Now::idle && x.until == Instant::never(), "the transfer is idle");
        note_begun(t.state, x);
        x.now = Now::waiting;
        x.until = t.now + answer_patience;
        x.asked = x.done;
        request(t, next->first, x, ask);
    }
    constexpr std::uint64_t ahead = pieces_ahead * limits::content_piece_bytes;
    for (auto &[digest, x] : transfers)
        while (x.now == Now::waiting && x.flows && !x.astray && x.asked < x.total && x.asked - x.kept < ahead)
            request(t, digest, x, ask);
}

void take_files(Grain &g, const std::vector<wire::GrainFile> &files) {
    for (const wire::GrainFile &file : files) {
        if (file.role == wire::FileRole::output) g.content.declares = true;
        else g.content.needs.insert(file.digest);
    }
}

void files_placed(Turn &t, const GrainId &id) {
    Grain *g = t.find(id);
    if (g == nullptr || !g->content.placing) return;
    g->content.placing = g->content.to_place = false;
    g->content.rounds = 0;
    complete(t, id, *g);
}

void files_missing(Turn &t, const FilesMissing &x) {
    Grain *g = t.find(x.id);
    if (g == nullptr || !g->content.placing) return;
    g->content.placing = false;
    if (++g->content.rounds > rounds_max)
        return drop_unstarted(t, x.id, Code::io_error, "the contents of its files do not stay on this host");
    for (const wire::GrainFile &file : x.files) {
        g->content.missing.insert(file.digest);
        const auto [it, fresh] = t.state.fetches.try_emplace(file.digest);
        if (!fresh) continue;
        it->second.order = t.state.next_order++;
        it->second.user = x.id.key.session.user;
        it->second.total = file.size;
    }
}

void files_unplaced(Turn &t, const FilesUnplaced &x) {
    const Grain *g = t.find(x.id);
    if (g != nullptr && g->content.placing) drop_unstarted(t, x.id, x.code, x.text);
}

void content_piece(Turn &t, wire::ContentPiece &piece) {
    const auto it = t.state.fetches.find(piece.digest);
    if (it == t.state.fetches.end() || it->second.now != Now::waiting) return;  // no longer needed
    Transfer &f = it->second;
    const auto code = static_cast<Code>(piece.code);
    if (code == Code::not_found || code == Code::refused)
        return give_up_fetch(t, piece.digest, Code::io_error, "the scheduler says: " + piece.text);
    if (code != Code::ok) return failed(t, piece.digest, f, Code::io_error, "the scheduler says: " + piece.text);
    if (piece.offset < f.done && piece.total == f.total) return;                 // answer to an earlier request
    if (piece.offset > f.done && piece.total == f.total) return begin_again(f);  // one before it was not answered
    if (piece.total != f.total || piece.bytes.size() > f.total - f.done || (piece.bytes.empty() && f.done < f.total))
        return failed(t, piece.digest, f, Code::io_error, "the scheduler sent a piece that does not fit");
    DCS_REQUIRE(f.done <= f.total && piece.bytes.size() <= f.total - f.done, "the piece follows the received bytes");
    const std::uint64_t offset = f.done;
    f.done += piece.bytes.size();
    f.asked = std::max(f.asked, f.done);
    f.until = t.now + answer_patience;
    f.flows = true;
    if (f.unanswered > 0) --f.unanswered;
    if (f.unanswered == 0 && (f.done == f.total || f.done < f.asked)) stop_waiting(f, Now::writing);
    t.emit(KeepPiece{piece.digest, f.total, offset, std::move(piece.bytes)});
}

void piece_kept(Turn &t, const PieceKept &x) {
    const auto it = t.state.fetches.find(x.digest);
    if (it == t.state.fetches.end() || x.next > it->second.done) return;
    Transfer &f = it->second;
    DCS_REQUIRE(f.done <= f.total, "the kept bytes do not exceed the total");
    f.kept = x.next;
    f.failures = 0;
    if (f.now == Now::writing && f.kept == f.done) f.now = Now::idle;
    if (f.kept < f.total) return;
    t.state.fetches.erase(it);
    for (const GrainId &id : t.state.derived.files) t.find(id)->content.missing.erase(x.digest);
}

// None of its pieces are kept now. Of pieces that were to follow it is reported as well.
void piece_unkept(Turn &t, const PieceUnkept &x) {
    const auto it = t.state.fetches.find(x.digest);
    if (it == t.state.fetches.end()) return;
    if (it->second.done == it->second.kept && it->second.now != Now::writing) return;
    it->second.done = it->second.kept = 0;
    if (x.code != Code::no_space) return failed(t, x.digest, it->second, x.code, x.text);
    stop_waiting(it->second, Now::idle);
    give_up_fetch(t, x.digest, x.code, x.text);
}

void fetch_on(Turn &t) {
    settle(t);
    if (t.state.derived.files.empty() && t.state.fetches.empty()) return;
    place_files(t);
    forget_unwanted(t);
    transfer_on(t, t.state.fetches, keep_the_received, ask_piece);
}

}  // namespace dcs::server
