#pragma once
// The world of turn::Mirror: sockets, the clock, and the small file that says whether commits wait for the backup's
// copy.
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "net/loop.h"
#include "base/fd.h"
#include "scheduler/turn/mirror.h"

namespace dcs::shell {

// A word, and a number with the epoch that it is about, in a file of its own, `attached`, beside the state directory:
// they are about this scheduler, not its state. Also whether the backup's copy has taken this scheduler's place.
class AttachedFile {
public:
    // Makes it if it is missing. What cannot be read counts as attached: then commits wait, and nothing is lost.
    static Result<std::unique_ptr<AttachedFile>> open(const std::string &path);

    // Of the store that the scheduler has: its epoch goes into what is written from now on.
    void is_of(std::uint64_t epoch) { epoch_ = epoch; }
    turn::Attachment read() const;
    // turn::Mirror::Setup; 0 if it cannot be read, or is about a store of another epoch.
    std::uint64_t own_up_to() const;
    Status write(turn::Attachment attachment, std::uint64_t own_up_to);  // durable when it returns ok

    // The copy is the scheduler's store since that epoch: this one does not start again. Durable when it returns ok.
    Status end(std::uint64_t later_epoch);
    // 0: none is known that is later than the epoch of the store here.
    std::uint64_t later_epoch() const;

private:
    struct Line {
        std::string word;
        std::uint64_t number = 0, epoch = 0;
    };
    explicit AttachedFile(Fd fd) : fd_(std::move(fd)) {}
    Line read_line() const;
    Status write_line(const char *word, std::uint64_t number);
    const Fd fd_;
    std::uint64_t epoch_ = 0;
};

// "the backup's copy has been made the scheduler of this pool (epoch 2, here 1)".
std::string words_of_end(std::uint64_t later, std::uint64_t own);
// refused: the file of the scheduler in `directory`, whose store is of `epoch`, says that it has been replaced.
Status still_in_office(AttachedFile &file, std::uint64_t epoch, const std::string &directory);

// Turns as they are committed, from the thread that commits to the one that sends.
class CommittedTurns {
public:
    explicit CommittedTurns(bool wanted) : wanted_(wanted) {}
    void add(std::uint64_t turn, const std::vector<store::Step> &steps);
    // Of an earlier process: its last ones without a gap, as far as their bytes are in the journal.
    void add_recovered(std::uint64_t turn, const std::vector<store::Step> &steps);
    std::vector<turn::CopiedTurn> take();

private:
    const bool wanted_;
    std::mutex mutex_;
    std::vector<turn::CopiedTurn> turns_;
};

class MirrorHost final : private turn::MirrorOutside {
public:
    // What is given by reference outlives it.
    MirrorHost(turn::Mirror::Setup setup, AttachedFile &file, CommittedTurns &turns, store::Store &store,
               const library::Library &library, net::Loop &loop, std::function<void(const std::string &)> ended);

    // A frame of a process of the scheduler's own account; false: it is not about copies.
    bool frame(const net::Arrival &arrival);
    void gone(ConnId conn) { mirror_.gone(conn); }
    // Turns the peer out if it is not the backup; true: it was.
    bool turn_out(ConnId conn, const core::Certified &peer, const core::State &state);
    // `state` is durable here. If by it the host that had the copy is no longer the backup, commits do not wait.
    void let_go(const core::State &state);
    void committed() { mirror_.committed(turns_.take()); }
    void pump(bool may_read);
    bool holds() const { return mirror_.holds(); }
    std::vector<wire::ProblemRow> problems(const core::State &state) const;
    wire::MirrorStatus status() const { return mirror_.status(); }
    Instant next_look() const { return mirror_.next_look(); }

private:
    Instant now() override;
    void send(ConnId conn, const wire::AnyMessage &message, std::uint64_t request) override;
    void close(ConnId conn) override;
    void log(turn::Level level, const std::string &line) override;
    Status remember(turn::Attachment attachment, std::uint64_t own_up_to) override {
        return file_.write(attachment, own_up_to);
    }
    void fenced(std::uint64_t epoch) override;

    AttachedFile &file_;
    CommittedTurns &turns_;
    net::Loop &loop_;
    std::function<void(const std::string &)> ended_;
    const std::uint64_t epoch_;
    turn::Mirror mirror_;
    std::optional<core::Certified> turned_out_;  // had the copy
};

}  // namespace dcs::shell
