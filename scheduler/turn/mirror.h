#pragma once
// The scheduler's side of the running copy that the backup holds of the store (docs/BACKUP.md): each committed turn is
// sent to it, in order; a copy that does not exist yet, or has missed too much, is first remade, file by file, while
// turns go on. It is beside the Turn, which knows nothing of it: in mode `sync` the Service does not tell the Turn
// that a commit is done before holds() says no.
//
//   commit here ──► turns ──► window ──► MirrorPage ──► commit there ──► MirrorHas ──► answer the Turn
//
// Always here first: so what the copy has, the store has, and no crash leaves a copy that knows more.
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/instant.h"
#include "base/limits.h"
#include "scheduler/library/library.h"
#include "scheduler/turn/outside.h"
#include "store/copy.h"
#include "store/identity.h"
#include "wire/message.h"

namespace dcs::turn {

enum class MirrorMode : std::uint8_t { off, lagging, sync };
std::optional<MirrorMode> mirror_mode_of(std::string_view word);
const char *word_of(MirrorMode mode);

// Whether commits wait for the copy; durable, outside of the store. `detached`: an operator let them continue without.
enum class Attachment : std::uint8_t { never, attached, detached };

struct CopiedTurn {
    std::uint64_t turn = 0;
    std::string root;
};

inline constexpr std::uint64_t mirror_piece_bytes = limits::fetch_chunk_bytes;

class MirrorOutside {
public:
    virtual ~MirrorOutside() = default;
    virtual Instant now() = 0;
    virtual void send(ConnId conn, const wire::AnyMessage &message, std::uint64_t request) = 0;
    virtual void close(ConnId conn) = 0;
    virtual void log(Level level, const std::string &line) = 0;
    // Durable when it returns ok. `own_up_to`: of Setup.
    virtual Status remember(Attachment attachment, std::uint64_t own_up_to) = 0;
    // Another scheduler has been made of the copy: this one must no longer acknowledge anything.
    // `epoch`: of that one.
    virtual void fenced(std::uint64_t epoch) = 0;
};

class Mirror {
public:
    struct Setup {
        store::Identity identity;
        MirrorMode mode = MirrorMode::off;
        Attachment attachment = Attachment::never;
        std::uint64_t window_bytes = 8u << 20;    // on their way at a time
        std::uint64_t backlog_bytes = 64u << 20;  // turns kept for a copy that is behind; then it is remade
        // While the copy has not been seen: later turns of it are not this store's, which was restored from an earlier
        // state. 0: it has been seen since.
        std::uint64_t own_up_to = 0;
    };
    // `store` and `library` outlive it, and are read by pump(true) and came() only.
    Mirror(Setup setup, store::Store &store, const library::Library &library, MirrorOutside &outside);

    static bool concerns(std::uint16_t kind);
    static bool of_backup(std::uint16_t kind);  // what a backup on another host may say
    // From a process of the scheduler's own account, or from the pool's backup.
    void came(ConnId conn, const wire::AnyMessage &message, std::uint64_t request);
    void gone(ConnId conn);
    // The host there is not the pool's backup, or no longer. True: the copy was taken over this connection.
    bool turned_out(ConnId conn, const std::string &why);
    bool waits() const { return setup_.mode == MirrorMode::sync && attachment_ == Attachment::attached; }
    // Commits no longer wait, until the copy is up to date again: one that can follow, over a later connection.
    Status detach(const std::string &who);
    void committed(std::vector<CopiedTurn> turns);
    // Sends what the window has room for. may_read: nothing else uses the store.
    void pump(bool may_read);
    // The answer to the last commit must wait.
    bool holds() const;
    // Says in the log that commits wait, once they have for a while.
    void look(Instant now);
    Instant next_look() const;
    // `awaited`: the backup of the host table, which has not joined; empty: there is none, or it has.
    std::vector<wire::ProblemRow> problems(const std::string &awaited = "") const;
    wire::MirrorStatus status() const;

private:
    struct Making {                                   // of a copy
        std::deque<std::string> directories;          // still to be listed
        std::map<std::string, std::uint64_t> unsent;  // files, and how far each has been sent
        std::map<std::string, std::uint64_t> dirty;   // changed after they were sent, from there on
        std::optional<Instant> settling_since;        // nothing but those is left
    };
    struct Sent {
        std::uint64_t number = 0, bytes = 0;
    };
    struct Backlog {
        std::uint64_t turn = 0;
        std::string root;
        Instant at{};
    };

    void called(ConnId conn, const wire::MirrorCall &call);
    void drop_link(const std::string &why);
    void refuse(ConnId conn, const std::string &why);
    void begin_watch();
    void sent_up_to(std::uint64_t turn);
    std::string ahead(const wire::MirrorCall &call) const;
    void found_own();
    Status record(std::uint64_t own_up_to);
    void told_contents(const wire::MirrorContents &told);
    void told_why_not(const wire::Refused &told);
    std::string instead_of_waiting() const;
    const std::string &why_not() const { return trouble_.empty() ? failed_ : trouble_; }
    void told_room(std::uint64_t free_bytes);
    void acknowledged(const wire::MirrorHas &has);
    void asked(ConnId conn, const wire::AskMirror &ask, std::uint64_t request);
    void begin_copy(const std::string &why);
    void touched(const CopiedTurn &turn);
    void settle();
    void forget_copied();
    void compare_contents();
    bool settling() const;
    // Each sends one page, or false: there is nothing of that kind to send.
    bool send_content();
    bool send_of_copy();
    bool send_turn();
    void walk(const std::string &directory);
    void page(wire::MirrorPage page);
    void fail_link(const std::string &why);

    const Setup setup_;
    store::Store &store_;
    const library::Library &library_;
    MirrorOutside &outside_;
    Attachment attachment_;
    std::uint64_t last_turn_;      // committed here
    std::uint64_t copied_ = 0;     // durable there
    std::uint64_t own_up_to_ = 0;  // no copy of this store has a later turn
    std::uint64_t recorded_ = 0;   // own_up_to of the record
    std::deque<Backlog> backlog_;  // without a gap, up to last_turn_; empty after a gap
    std::uint64_t backlog_held_ = 0;

    ConnId conn_{};
    bool whole_ = false;                     // the copy there
    bool apart_ = false;                     // detached over this connection, so that the backup can be stopped
    std::string trouble_;                    // why there is no link, or no copy
    std::string failed_;                     // what the backup said of its copy, until that is up to date
    std::uint64_t free_bytes_ = UINT64_MAX;  // there, as it said last
    bool barred_ = false;                    // because its host is not the backup
    std::uint64_t number_ = 0;               // of the last page
    std::uint64_t whole_number_ = 0;         // of the page with which a new copy was whole
    std::deque<Sent> sent_;                  // not answered
    std::uint64_t sent_bytes_ = 0;
    bool contents_told_ = false;
    std::set<std::string> contents_there_;
    std::map<std::string, std::uint64_t> contents_unsent_;
    std::uint64_t content_offset_ = 0, library_version_ = 0;
    std::optional<Making> making_;
    std::uint64_t next_turn_ = 0, turn_offset_ = 0;
    std::optional<Instant> holding_since_;
    bool holding_logged_ = false;
};

}  // namespace dcs::turn
