#pragma once
// The library as control programs and grain servers see it: who may put and ask, what is on its way in, who
// waits for a job. None of it needs a turn: nothing of the State changes, and what was said about a
// content is true by the library's own syncs. After a lost connection its peer starts again.
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/state/state.h"
#include "scheduler/library/library.h"
#include "scheduler/turn/line_budget.h"
#include "scheduler/turn/outside.h"

namespace dcs::turn {

// Who asks, and in which words it is answered.
struct Peer {
    ConnId conn{};
    core::RequestId request{};
    bool server = false;
    std::string owner;        // whose share of the uploads it takes: a user, or "host NAME"
    bool privileged = false;  // a user who is not limited by what is free
};

// For whom contents exist: users have those that they uploaded whole, and those that their grains name. Of others they
// learn nothing by digest, or guessed digests would reveal short secrets.
struct Holder {
    const core::Stored &stored;
    const std::string &user;
    bool privileged = false;  // may read the contents of every grain
    bool has(const std::string &digest) const;
};

class Contents {
public:
    Contents(std::unique_ptr<library::Library> library, Outside &outside)
        : library_(std::move(library)), outside_(outside) {}

    const library::Library &library() const { return *library_; }
    wire::AnyMessage missing(const wire::AskContents &call, const Holder &holder);
    void put(const Peer &peer, const wire::PutContent &piece, const core::State &state);
    // A piece of a content, to a server as ContentPiece, to a control program as Piece. Whether it may have it
    // was asked before.
    void send(const Peer &peer, const std::string &digest, std::uint64_t offset, std::uint64_t max);
    void refuse_want(const Peer &peer, const std::string &digest, const Status &why);
    void refuse_put(const Peer &peer, const std::string &digest, const Status &why);

    bool has(const wire::GrainFile &file) const;
    // Is it here, and did this host bring it, or has the user of the grain that made it the same already? What a host
    // did not bring lately it brings again.
    bool has(const wire::GrainFile &output, const std::string &host, const Holder &holder) const;
    bool use(const wire::GrainFile &file, const Holder &holder);  // here and the holder's, and it counts as used
    // not_found, naming the first content of these that is not here. Those that are count as asked for.
    Status check(const std::vector<wire::GrainFile> &files, const Holder &holder);

    void drop(ConnId conn);
    // Who has stored what is kept in step from tell() on, which says what is there.
    void tell(core::Stored &stored) const;
    // What the log should say of it, at the expense of who caused it.
    std::optional<Line> done(const library::JobDone &done, core::State &state);
    // Pieces that waited for a check are sent some at a time, to each owner in turn.
    bool has_waiting_pieces() const { return !waiting_.empty(); }
    void send_waiting_pieces();
    // In an idle moment: stalled uploads go, and a few contents that no grain names and no peer requests.
    void sweep(const core::State &state, core::Stored &stored);
    // never() while there is nothing that could go.
    Instant sweep_wakeup() const;
    const std::map<std::string, std::string> &damaged() const { return damaged_; }  // digest -> why

private:
    struct Upload {
        Peer peer;
        std::string temporary;
        std::uint64_t total = 0, next = 0;
        Instant last_piece{};
        std::uint64_t complete = 0;  // a number that counts up; 0: pieces are missing
        bool gone = false;           // its connection; it stays its owner's while a job works on it
        std::uint64_t read = 0;      // by the library's jobs, or by the one that is under way
        bool reading = false;
        // Pieces of a very large one that are answered when the disk has caught up: who sent it, and where it ends.
        std::vector<std::pair<Peer, std::uint64_t>> unanswered;
    };
    using Key = std::pair<ConnId, std::string>;
    struct Parked {
        Peer peer;
        std::string digest;
        std::uint64_t offset = 0, max = 0;
    };

    Status begin(const Peer &peer, const wire::PutContent &piece, const core::State &state);
    Status check_room(const Peer &peer, std::uint64_t size, const core::State &state);
    bool is_known(const Peer &peer, const std::string &digest, const core::State &state) const;
    void drop_upload(ConnId conn, const std::string &digest);
    void drop_stalled();
    void read_back(const std::string &digest, Upload &upload);
    void was_read(const library::JobDone &done);
    void answer_all(const std::string &digest, Upload &upload);
    void seal(const Key &key, Upload &upload);
    std::optional<Line> sealed(const library::JobDone &done, core::State &state);
    void settle(const Upload &upload, const library::JobDone &done, core::State &state);
    void seal_next(const std::string &digest, const std::string &last_owner);
    void brought_by(const Peer &server, const std::string &digest, core::State &state);
    void checked(const library::JobDone &done, core::Stored &stored);
    bool in_work(const std::string &digest) const;
    void forget(std::map<Key, Upload>::iterator upload);
    void answer_put(const Peer &peer, const std::string &digest, std::uint64_t next);
    void send_now(const Peer &peer, const std::string &digest, std::uint64_t offset, std::uint64_t max);

    std::unique_ptr<library::Library> library_;
    Outside &outside_;
    std::map<Key, Upload> uploads_;
    std::map<std::string, std::string> sealing_;  // digest -> temporary of the job
    std::uint64_t completed_ = 0;
    std::map<std::string, std::vector<Parked>> checking_;  // digest -> who waits for it
    std::map<std::string, std::deque<Parked>> waiting_;    // by owner: contents that are checked now
    struct Brought {
        std::deque<std::string> unowned;  // without an owner yet
        std::deque<std::string> last;     // whose bytes it showed
    };
    std::map<std::string, Brought> of_hosts_;  // by "host NAME"
    std::map<std::string, std::string> damaged_;
    std::string swept_up_to_;
    Instant sweep_not_before_{};
};

}  // namespace dcs::turn
