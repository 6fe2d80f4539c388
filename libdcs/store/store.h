#pragma once
// The backing store: a forest of update trees that changes by whole turns.
//
// A turn consists of updates of any number of trees, committed together by one root. Small
// temporaries are stored inside that root; large ones (above inline_limit) are files
// <node>.<turn>.tmp in their tree's directory, synced before the root. Of two nodes that take turns
// (Action::alternate) one is named by the last root and the other is written in place, synced before the
// root too: the owner never updates the one that is named. The root records name, action, old length,
// length and checksum of all of them. An ordinary root is written into turns/journal, a
// preallocated file, and one sync of it is the commit; a large one is a file of its own, and the
// rename of turns/<number>.tmp to .commit, made durable, is. Application from leaf to root (rules
// i-vii) follows unsynced, and for small turns in groups; until then reads are answered from memory.
// From time to time (or when an update requires it) everything that was touched is synced,
// turns/applied records the number, and only then is the journal used again from its start, and are
// the turn roots and large temporaries removed. Recovery applies every committed turn above
// `applied` again, in order: each step is idempotent. So after a crash each turn is visible whole or not at all, and an
// acknowledged one whole. docs/STATE_FORMAT.md, section 1, has the files.
//
// Not thread-safe: one thread at a time (the scheduler passes the store to its storage thread for
// the duration of a commit, and reads only between commits).
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "store/disk.h"
#include "store/tree_template.h"
#include "store/turn_root.h"

namespace dcs::store {

struct NodeUpdate {
    std::string file;              // node name of the tree's template
    std::string bytes;             // content of the temporary
    std::uint64_t old_length = 0;  // append nodes: length before the update, as the tree's owner recorded it
    std::shared_ptr<const std::string> shared;  // if set, the content instead of `bytes`
    std::string_view content() const { return shared ? std::string_view(*shared) : bytes; }
};
struct TreeUpdate {
    std::string directory;  // "sessions/ann/3"; created if missing, with its parents
    std::string tree;       // template name
    std::vector<NodeUpdate> nodes;
    bool remove = false;  // instead of nodes: removes the whole tree (files and sub-directories)
};

enum class Answer {
    done,     // durable
    nothing,  // failed before the commit; the store is unchanged (disk full, EMFILE ...)
    unknown   // a failed sync, or any failure at or after the commit: end the process, do not reply
};
struct CommitResult {
    Answer answer = Answer::done;
    Status status;
};

// Whether a commit may use the reserve on a full disk. Kill, close and finish may, because
// they free space.
enum class Room { ordinary, reserve };

struct StoreOptions {
    std::size_t inline_limit = 32 * 1024;        // larger temporaries are separate files
    std::size_t append_inline_limit = 1u << 20;  // for appends, which are copied in any case
    std::size_t flush_bytes = 8u << 20;          // pending turn roots above this size are flushed
    std::size_t flush_turns = 512;
    std::size_t journal_bytes = 4u << 20;         // 0: each root is a file
    std::size_t journal_turn_bytes = 512 * 1024;  // a turn that takes more of it is a file: its second sync is little
    std::size_t behind_turns = 64;                // committed turns that are applied together; 0: each at once
    std::size_t behind_bytes = 1u << 20;
    std::size_t sync_all_above = 16;       // for more files and directories: one sync_all instead
    std::size_t reserve_bytes = 4u << 20;  // to complete a committed turn on a full disk
    std::size_t step_room = 8 * 1024;      // blocks and names of a node, in addition to its bytes
    std::size_t turn_room = 64 * 1024;     // the same for a turn
    RootLayout layout;
    std::uint64_t accept_lost_turn = 0;  // both heads of this turn's root are damaged: continue without it
    // A bug of the test build, by name: it leaves out one barrier, order or check (tests/sim/plan.cc lists them). Empty
    // in production.
    std::string_view plant = {};
    // Whether the store is still protected from other writers. Called before each commit; false ends all commits. Null:
    // no other process can access the disk, as in tests.
    std::function<bool()> still_alone;
    // Called for each turn right after its commit, by the thread that commits; the steps are valid during the call.
    // May be null.
    std::function<void(std::uint64_t turn, const std::vector<Step> &steps)> committed;
    // Likewise for each turn that open() applies again, in their order. Steps with bytes beside the root lack them.
    std::function<void(std::uint64_t turn, const std::vector<Step> &steps)> recovered;
};

struct Damage {
    std::string path;  // one of the store's own files, or the directory of a tree that is set aside
    std::string what;
};
struct RecoveryReport {
    std::uint64_t turns_finished = 0;  // committed turns that were applied again
    std::uint64_t temporaries_discarded = 0;
    std::vector<Damage> damaged;  // found now, and trees that are still set aside
};

// The free space of the store's disk.
struct Space {
    std::uint64_t free_bytes = 0;
    std::uint64_t free_files = UINT64_MAX;  // inodes
    bool reserve = true;  // false: a turn on a full disk has used a part of it, which is not restored yet
};

class Store {
public:
    // Recovers: completes committed turns, discards others. Creates an empty store in an
    // empty directory. Damage is repaired from a copy, or costs one tree: a file DAMAGED
    // in its directory describes the loss, and the rest continues to work. Fails without any change if
    // the format is foreign or a whole turn cannot be read.
    static Result<std::unique_ptr<Store>> open(Disk &disk, const Forest &forest, StoreOptions options,
                                               RecoveryReport *report);
    virtual ~Store() = default;

    // Applies all updates or none; order within the vector is the order of application.
    // Programming errors (unknown template or node, wrong action) are DCS_REQUIREs. After `nothing`
    // the store is unchanged and fully usable; after `unknown` every further call answers unknown.
    // No updates: done, and no turn is counted. A tree that is set aside accepts no updates (nothing,
    // io_error) until it has been removed. On a full disk Room::reserve works while the reserve
    // lasts; an ordinary commit is refused (nothing, no_space) until the reserve is complete again.
    virtual CommitResult commit(const std::vector<TreeUpdate> &updates, Room room = Room::ordinary) = 0;

    // Commits a turn of another store, of which this one is a copy: `root` is the result of encode_for_copy() there.
    // Turns must arrive in order: one that is already present is `done` and changes nothing; one that does
    // not follow the last, or does not fit the content here, is `nothing` with Code::invalid or io_error.
    virtual CommitResult commit_copied(std::uint64_t turn, std::string_view root) = 0;

    // Syncs pending turns (commit also does so, by its own rules). For idle moments
    // and a clean stop. Never answers `nothing`. `done` with an error status: space or descriptors
    // did not suffice; nothing is lost (the turn roots stay) and a later flush retries it.
    virtual CommitResult flush() = 0;

    // For a clean stop, after flush(): removes the journal, which a later start recreates, so that the trees and
    // the stamp are all that is left. Without an effect if a turn is pending.
    virtual void retire_journal() = 0;

    // Sets a tree aside for a reason of the caller: the marker with this text is durable on
    // return. For use at the start, before the first commit.
    virtual Status set_aside(const std::string &directory, const std::string &why) = 0;

    virtual std::uint64_t turn() const = 0;           // number of the last committed turn
    virtual std::uint64_t pending_bytes() const = 0;  // that a flush would free
    virtual Result<Space> space() = 0;

    // Reads reflect every committed turn. A listing omits temporaries and the store's own
    // files at the top (turns/, format, reserve). A file DAMAGED: the tree there is set aside.
    virtual Result<std::string> read(const std::string &path, std::uint64_t offset, std::uint64_t max) = 0;
    // The same into memory that the caller has, for files that may be large: how many bytes.
    virtual Result<std::uint64_t> read_into(const std::string &path, std::uint64_t offset, std::span<char> room) = 0;
    // Before a listing everything in that directory is applied.
    virtual Result<std::vector<std::string>> list(const std::string &directory) = 0;
};

}  // namespace dcs::store
