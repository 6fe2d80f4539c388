#include "scheduler/turn/mirror.h"

#include <algorithm>
#include <utility>

#include "base/known_words.h"
#include "base/failpoint.h"
#include "base/planted.h"
#include "wire/checks.h"

namespace dcs::turn {
namespace {

// What a page costs beside its bytes.
constexpr std::uint64_t page_bytes = 256;
// The log names commits that have waited this long for the copy.
constexpr Duration patience = seconds(5);
// So long, at most, turns wait while a new copy takes the last changes. Less than the above, when
// the Service looks again.
constexpr Duration settle_patience = seconds(4);

}  // namespace

std::optional<MirrorMode> mirror_mode_of(std::string_view word) {
    for (const MirrorMode mode : {MirrorMode::off, MirrorMode::lagging, MirrorMode::sync})
        if (word == word_of(mode)) return mode;
    return std::nullopt;
}

const char *word_of(MirrorMode mode) {
    switch (mode) {
    case MirrorMode::off: return "off";
    case MirrorMode::lagging: return "lagging";
    case MirrorMode::sync: break;
    }
    return "sync";
}

Mirror::Mirror(Setup setup, store::Store &store, const library::Library &library, MirrorOutside &outside)
    : setup_(setup),
      store_(store),
      library_(library),
      outside_(outside),
      attachment_(setup.mode == MirrorMode::sync ? setup.attachment : Attachment::never),
      last_turn_(store.turn()),
      trouble_(no_backup_words) {
    begin_watch();
}

bool Mirror::of_backup(std::uint16_t kind) {
    static const std::set<std::uint16_t> kinds = {wire::kind_of(wire::MirrorCall{}),
                                                  wire::kind_of(wire::MirrorContents{}),
                                                  wire::kind_of(wire::MirrorHas{}), wire::kind_of(wire::Refused{})};
    return kinds.count(kind) != 0;
}

// To detach is for people on the scheduler's host.
bool Mirror::concerns(std::uint16_t kind) { return of_backup(kind) || kind == wire::kind_of(wire::AskMirror{}); }

// ---- what arrives -------------------------------------------------------------------------

void Mirror::came(ConnId conn, const wire::AnyMessage &message, std::uint64_t request) {
    if (const auto *ask = std::get_if<wire::AskMirror>(&message)) return asked(conn, *ask, request);
    if (const auto *call = std::get_if<wire::MirrorCall>(&message)) return called(conn, *call);
    if (conn != conn_) return outside_.close(conn);
    if (const auto *told = std::get_if<wire::MirrorContents>(&message)) return told_contents(*told);
    if (const auto *has = std::get_if<wire::MirrorHas>(&message)) return acknowledged(*has);
    if (const auto *no = std::get_if<wire::Refused>(&message)) return told_why_not(*no);
}

void Mirror::drop_link(const std::string &why) {
    conn_ = no_connection;
    making_.reset();
    whole_ = barred_ = apart_ = false;
    trouble_ = why;
}

void Mirror::gone(ConnId conn) {
    if (conn != conn_) return;
    drop_link(failed_.empty() ? no_backup_words : failed_);
    if (attachment_ == Attachment::attached && failed_.empty())
        outside_.log(Level::warning,
                     "the backup's copy of the store is disconnected: commits wait for it; " + instead_of_waiting());
}

bool Mirror::turned_out(ConnId conn, const std::string &why) {
    const bool had = conn == conn_;
    if (!had && conn_ != no_connection) return false;
    drop_link(why);
    barred_ = true;
    return had;
}

Status Mirror::detach(const std::string &who) {
    if (!waits()) return fail(Code::refused, "no commit waits for the backup's copy: there is nothing to detach");
    if (Status s = outside_.remember(Attachment::detached, recorded_); !s) return s;
    attachment_ = Attachment::detached;
    apart_ = conn_ != no_connection && whole_ && !making_ && failed_.empty();
    outside_.log(Level::warning,
                 "audit: " + who + " detached the backup's copy of the store; commits do not wait until the " +
                     (apart_ ? "backup has been away and the copy is up to date again" : "copy is up to date"));
    return Status::ok();
}

void Mirror::called(ConnId conn, const wire::MirrorCall &call) {
    const store::Identity &ours = setup_.identity;
    const bool same = call.name == ours.name;
    const std::uint64_t seen = std::max(call.seen_name == ours.name ? call.seen : 0, same ? call.epoch : 0);
    if (seen > ours.epoch && !planted("mirror.no_fence")) {
        outside_.send(conn, wire::Refused{"this scheduler's epoch has ended"}, 0);
        return outside_.fenced(seen);
    }
    if (call.name != 0 && !same)
        return refuse(conn,
                      "it holds the copy of another store, which is not overwritten: to use that copy, run `dcs "
                      "backup promote`; to discard it, stop the backup and remove `mirror` from its directory");
    if (const std::string why = ahead(call); !why.empty()) return refuse(conn, why);
    if (conn_ != no_connection && conn_ != conn) outside_.close(conn_);
    conn_ = conn;
    trouble_.clear();
    barred_ = apart_ = false;
    making_.reset();
    sent_.clear();
    sent_bytes_ = number_ = whole_number_ = turn_offset_ = content_offset_ = 0;
    contents_told_ = false;
    contents_there_.clear();
    contents_unsent_.clear();
    whole_ = same && call.epoch == ours.epoch;
    if (whole_) found_own();
    copied_ = whole_ ? call.turn : 0;
    next_turn_ = copied_ + 1;
    forget_copied();
    settle();
}

void Mirror::told_contents(const wire::MirrorContents &told) {
    for (std::size_t at = 0; at + limits::digest_bytes <= told.bytes.size(); at += limits::digest_bytes)
        contents_there_.insert(told.bytes.substr(at, limits::digest_bytes));
    if (!told.last || contents_told_ || setup_.mode == MirrorMode::off) return;
    contents_told_ = true;
    compare_contents();
    const bool reachable = backlog_.empty() ? next_turn_ > last_turn_ : backlog_.front().turn <= next_turn_;
    if (!whole_) begin_copy("the backup has none");
    else if (!reachable) begin_copy("the backup's copy has missed too much");
}

void Mirror::acknowledged(const wire::MirrorHas &has) {
    if (has.free_bytes != 0) told_room(has.free_bytes);
    while (!sent_.empty() && sent_.front().number <= has.number) {
        sent_bytes_ -= sent_.front().bytes;
        sent_.pop_front();
    }
    // Before the new copy is whole there, it speaks of an older one.
    if (making_ || has.number < whole_number_ || !has.whole || has.turn > last_turn_ || has.turn < copied_) return;
    whole_ = true;
    found_own();
    const bool more = has.turn > std::exchange(copied_, has.turn);
    if (more || (copied_ == last_turn_ && sent_.empty())) failed_.clear();
    forget_copied();
    settle();
}

void Mirror::forget_copied() {
    while (!backlog_.empty() && backlog_.front().turn <= copied_) {
        backlog_held_ -= backlog_.front().root.size();
        backlog_.pop_front();
    }
}

// From the first time that the copy is as far as the store, commits wait for it.
void Mirror::settle() {
    const bool there = conn_ != no_connection && !apart_ && whole_ && !making_ && copied_ == last_turn_;
    if (!there || setup_.mode != MirrorMode::sync || attachment_ == Attachment::attached) return;
    if (const Status s = outside_.remember(Attachment::attached, recorded_); !s)
        return outside_.log(Level::error,
                            "commits do not wait for the backup's copy, because this cannot be recorded: " + s.text);
    attachment_ = Attachment::attached;
    outside_.log(Level::info, "the backup has a copy of the store up to turn " + std::to_string(copied_) +
                                  ": from now on commits wait for it");
}

void Mirror::asked(ConnId conn, const wire::AskMirror &ask, std::uint64_t request) {
    const auto answer = [&](const wire::AnyMessage &message) { outside_.send(conn, message, request); };
    if (!ask.detach) return answer(status());
    const bool keeps = waits() && is_ahead(trouble_);
    const Status s = keeps ? fail(Code::refused, "commits do not continue without what only the copy has: " + trouble_ +
                                                     "; " + copy_advice(trouble_))
                           : detach("the scheduler's account");
    if (!s) return answer(wire::error_reply(s));
    answer(status());
    settle();
}

// ---- what is committed --------------------------------------------------------------------

// The last changes of a copy are few; but commits do not wait for a backup that does not take them.
bool Mirror::settling() const {
    return making_ && making_->settling_since && outside_.now() < *making_->settling_since + settle_patience;
}

bool Mirror::holds() const {
    if (settling()) return true;
    return waits() && copied_ < last_turn_ && !planted("mirror.no_wait");
}

void Mirror::look(Instant now) {
    if (!holds()) {
        holding_since_.reset();
        if (std::exchange(holding_logged_, false)) outside_.log(Level::info, "commits no longer wait");
        return;
    }
    if (!holding_since_) holding_since_ = now;
    if (holding_logged_ || now < *holding_since_ + patience) return;
    holding_logged_ = true;
    outside_.log(Level::warning, "commits wait for the backup's copy of the store" +
                                     (why_not().empty() ? "" : " (" + why_not() + ")") +
                                     ": calls are not answered in the meantime; " + instead_of_waiting());
}

Instant Mirror::next_look() const {
    return holding_since_ && !holding_logged_ ? *holding_since_ + patience : Instant::never();
}

void Mirror::committed(std::vector<CopiedTurn> turns) {
    const Instant now = outside_.now();
    for (CopiedTurn &turn : turns) {
        last_turn_ = turn.turn;
        if (making_) {
            touched(turn);
            continue;
        }
        backlog_held_ += turn.root.size();
        backlog_.push_back({turn.turn, std::move(turn.root), now});
    }
    if (backlog_held_ <= setup_.backlog_bytes || backlog_.size() <= 1) return;
    backlog_.clear();
    backlog_held_ = 0;
    if (conn_ != no_connection && contents_told_) begin_copy("the backup's copy is too far behind");
}

// ---- contents, turns ----------------------------------------------------------------------

// What a turn names was in the library before it was decided, so it goes ahead of it.
void Mirror::compare_contents() {
    library_version_ = library_.version();
    contents_unsent_.clear();
    content_offset_ = 0;
    for (const auto &[digest, content] : library_.all())
        if (contents_there_.count(digest) == 0) contents_unsent_.emplace(digest, content.size);
    for (auto it = contents_there_.begin(); it != contents_there_.end();) {
        if (library_.find(*it)) {
            ++it;
            continue;
        }
        wire::MirrorPage forget;
        forget.step = wire::MirrorStep::forget;
        forget.key = *it;
        page(std::move(forget));
        it = contents_there_.erase(it);
    }
}

bool Mirror::send_content() {
    if (library_.version() != library_version_) compare_contents();
    if (contents_unsent_.empty()) return false;
    const auto content = contents_unsent_.begin();
    auto bytes = store_.read(library::path_of(content->first), content_offset_, mirror_piece_bytes);
    const bool short_one = bytes && bytes->empty() && content_offset_ < content->second;
    if (!bytes || short_one) {  // gone since, or damaged: the library finds that itself
        contents_unsent_.erase(content);
        content_offset_ = 0;
        return true;
    }
    wire::MirrorPage next;
    next.step = wire::MirrorStep::content;
    next.key = content->first;
    next.offset = content_offset_;
    next.size = content->second;
    next.bytes = std::move(*bytes);
    content_offset_ += next.bytes.size();
    if (content_offset_ >= next.size) {
        contents_there_.insert(next.key);
        contents_unsent_.erase(content);
        content_offset_ = 0;
    }
    page(std::move(next));
    return true;
}

bool Mirror::send_turn() {
    if (backlog_.empty() || next_turn_ > backlog_.back().turn) return false;
    DCS_REQUIRE(next_turn_ >= backlog_.front().turn, "a turn that the copy needs is no longer there");
    const Backlog &turn = backlog_[next_turn_ - backlog_.front().turn];
    wire::MirrorPage next;
    next.step = wire::MirrorStep::turn;
    next.turn = turn.turn;
    next.offset = turn_offset_;
    next.size = turn.root.size();
    next.bytes = turn.root.substr(turn_offset_, mirror_piece_bytes);
    turn_offset_ += next.bytes.size();
    sent_up_to(next_turn_);
    if (turn_offset_ >= turn.root.size()) {
        ++next_turn_;
        turn_offset_ = 0;
    }
    page(std::move(next));
    return true;
}

void Mirror::pump(bool may_read) {
    if (conn_ == no_connection || !contents_told_ || setup_.mode == MirrorMode::off) return;
    while (conn_ != no_connection && sent_bytes_ < setup_.window_bytes) {
        const bool contents = !contents_unsent_.empty() || library_.version() != library_version_;
        if ((contents || making_) && !may_read) return;
        if (contents && send_content()) continue;
        if (making_) {
            if (!send_of_copy()) return;
        } else if (!send_turn()) {
            return;
        }
    }
}

void Mirror::page(wire::MirrorPage page) {
    page.number = ++number_;
    sent_.push_back({page.number, page.bytes.size() + page_bytes});
    sent_bytes_ += sent_.back().bytes;
    failpoint("mirror.send.before");
    outside_.send(conn_, page, 0);
    failpoint("mirror.send.after");
}

void Mirror::fail_link(const std::string &why) {
    const ConnId conn = conn_;
    outside_.log(Level::error, "the store cannot be copied to the backup: " + why);
    gone(conn);
    trouble_ = why;
    outside_.close(conn);
}

}  // namespace dcs::turn
