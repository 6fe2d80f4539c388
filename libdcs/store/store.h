#pragma once
// The backing store: a forest of update trees, changed a whole turn at a time.
//
// One turn = updates of any number of trees, committed together by one root: the file
// turns/<number>.commit. Small temporaries travel inside that root, large ones (above
// inline_limit) are files <node>.<turn>.tmp in their tree's directory, synced before it; the root
// records name, action, old length, length and checksum of all of them. The rename of
// turns/<number>.tmp to .commit, made durable, is the commit. Applying leaf to root (rules i-vii)
// follows at once but unsynced; every so often (or when an update demands it) everything that was
// touched is synced, turns/applied records the number, and only then do the turn roots and large
// temporaries go away. Recovery applies every committed turn above `applied`, in order, again: each
// step is harmless when repeated. So a crash shows each turn whole or not at all, and an
// acknowledged one whole. docs/BACKING_STORE.md tells the rule step by step.
//
// Not thread-safe: one thread at a time (the scheduler hands the store to its storage thread for
// the length of a commit, and reads only between commits).
#include <cstdint>
#include <functional>
#include <memory>
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
    std::uint64_t old_length = 0;  // append nodes: length before, as the tree's owner recorded it
};
struct TreeUpdate {
    std::string directory;     // "sessions/ann/3", made if it is missing (parents too)
    std::string tree;          // template name
    std::vector<NodeUpdate> nodes;
    bool remove = false;       // instead of nodes: the whole tree (files and sub-directories) goes
};

enum class Answer {
    done,     // durable
    nothing,  // failed before the commit; the store is as before (disk full, EMFILE ...)
    unknown   // a failed sync, or any failure at or after the commit: end the process, do not reply
};
struct CommitResult { Answer answer = Answer::done; Status status; };

// Planted bugs of the test build: each removes one barrier, order or check. 0 in production.
enum Plant : std::uint32_t {
    plant_none = 0,
    plant_no_sync_temp = 1u << 0,       // big temporaries not synced before the root
    plant_no_sync_temp_dir = 1u << 1,   // their directories neither
    plant_no_sync_root = 1u << 2,       // turn root not synced before the rename
    plant_no_sync_commit = 1u << 3,     // directory not synced after the rename
    plant_no_sync_applied_trees = 1u << 4,  // roots dropped though trees are not synced
    plant_no_sync_applied_stamp = 1u << 5,  // roots dropped before the stamp is durable
    plant_append_at_end = 1u << 6,      // append without truncating to the recorded length
    plant_no_flush_before_big = 1u << 7,    // big node prepared below a pending removal
    plant_skip_root_checksum = 1u << 8,
    plant_reverse_replay = 1u << 9,
    plant_no_sync_new_dirs = 1u << 10,  // a new directory's own name never synced
    plant_no_flush_before_remove = 1u << 11,  // a tree removed while updates of it are pending
    plant_no_flush_before_shrink = 1u << 12,  // a file cut below the start of a pending append
    plant_drop_temps_early = 1u << 13,  // big temporaries removed once applied, not once synced
    plant_move_big = 1u << 14,          // a big temporary renamed instead of linked into place
    plant_trust_visible_roots = 1u << 15,   // recovery acts on names before it has synced them
    plant_trust_visible_dirs = 1u << 16,    // recovery takes a directory that it sees for a durable one
    plant_ignore_failed_sync = 1u << 17,
    plant_keep_strays = 1u << 18,       // recovery leaves discarded temporaries where they are
    plant_no_sync_marker = 1u << 19,    // roots dropped before the marker of a damaged tree is durable
    plant_trust_visible_marker = 1u << 20,  // recovery takes a marker that it sees for a durable one
    plant_heads_in_one_block = 1u << 21,    // the copies in a root and in a stamp not in different blocks
    plant_skip_stamp_checksum = 1u << 22,   // the copies of the stamp believed as they are
    plant_apply_to_damaged = 1u << 23,  // replay goes on in a tree that is set aside
    plant_commit_to_damaged = 1u << 24, // commit accepts updates of it
    plant_reserve_for_all = 1u << 25,   // ordinary commits may use the reserve
    plant_reserve_all_at_once = 1u << 26,   // nothing of the reserve kept for finishing the turn
    plant_no_sync_reserve = 1u << 27    // a reserve that a power failure gives away
};

// On a full disk: what may use the space that was set aside. Kill, close and finish may, because
// they are what makes room.
enum class Room { ordinary, reserve };

struct StoreOptions {
    std::size_t inline_limit = 32 * 1024;     // larger temporaries are files of their own
    std::size_t append_inline_limit = 1u << 20;  // of appends, which are copied in any case
    std::size_t flush_bytes = 8u << 20;       // pending turn roots above this are synced away
    std::size_t flush_turns = 512;
    std::size_t sync_all_above = 16;          // more files and directories: one sync_all instead
    std::size_t reserve_bytes = 4u << 20;     // for finishing a committed turn on a full disk
    std::size_t step_room = 8 * 1024;         // blocks and names that a node may cost beyond its bytes
    std::size_t turn_room = 64 * 1024;        // and a turn
    RootLayout layout;
    std::uint64_t accept_lost_turn = 0;       // of this turn's root both heads are bad: go on without it
    std::uint32_t plant = plant_none;
    // Is the store still guarded against other writers? Asked before each commit; a no ends all commits. Null:
    // no other process can come to the disk, as in tests.
    std::function<bool()> still_alone;
    // Told of each turn as soon as it is committed, by the thread that commits; the steps last as long as the call.
    // Null: it is not called.
    std::function<void(std::uint64_t turn, const std::vector<Step> &steps)> committed;
};

struct Damage {
    std::string path;  // a file of the store's own, or the directory of a tree that is set aside
    std::string what;
};
struct RecoveryReport {
    std::uint64_t turns_finished = 0;         // committed turns that were applied again
    std::uint64_t temporaries_discarded = 0;
    std::vector<Damage> damaged;              // found now, and trees that still are set aside
};

// What is left where the store lies.
struct Space {
    std::uint64_t free_bytes = 0;
    bool reserve = true;  // false: a part of it went into a turn on a full disk, and is not made anew yet
};

class Store {
public:
    // Recovers: finishes what was committed, discards what was not. Creates an empty store in an
    // empty directory. What is damaged is repaired from its copy, or costs one tree: a file DAMAGED
    // in its directory says what happened, and the rest runs on. Fails, with nothing changed, when
    // the format is foreign or a whole turn cannot be read any more.
    static Result<std::unique_ptr<Store>> open(Disk &disk, const Forest &forest, StoreOptions options,
                                               RecoveryReport *report);
    virtual ~Store() = default;

    // Applies all updates or none; order within the vector is the order of application.
    // Programmer errors (unknown template or node, wrong action) are DCS_REQUIREs. After `nothing`
    // the store is as it was and fully usable; after `unknown` every further call answers unknown.
    // No updates: done, and no turn is counted. A tree that is set aside takes no updates (nothing,
    // io_error) until it has been removed. On a full disk Room::reserve goes on while the reserve
    // lasts; an ordinary commit is refused (nothing, no_space) until the reserve is whole again.
    virtual CommitResult commit(const std::vector<TreeUpdate> &updates, Room room = Room::ordinary) = 0;

    // The same with a turn of another store, of which this one is a copy: `root` is what encode_for_copy() made of
    // it there. Turns are taken in their order: one that is there already is `done` and changes nothing, one that
    // does not follow the last, or does not fit what lies here, is `nothing` with Code::invalid or io_error.
    virtual CommitResult commit_copied(std::uint64_t turn, std::string_view root) = 0;

    // Syncs what is pending (also called by commit itself by its own rules). For idle moments
    // and a clean stop. `nothing` cannot happen. `done` with a failing status: there was no room or
    // no descriptor to do it with; nothing is lost (the turn roots stay) and it is done later.
    virtual CommitResult flush() = 0;

    // Sets a tree aside for a reason that its owner has: the marker with this text is durable when it
    // returns. For the start, before anything is committed.
    virtual Status set_aside(const std::string &directory, const std::string &why) = 0;

    virtual std::uint64_t turn() const = 0;    // number of the last committed turn
    virtual std::uint64_t pending_bytes() const = 0;  // that a flush would let go of
    virtual Result<Space> space() = 0;

    // Reads see every committed turn. A listing shows no temporaries, and not what the store keeps
    // for itself at the top (turns/, format, reserve). A file DAMAGED: the tree there is set aside.
    virtual Result<std::string> read(const std::string &path, std::uint64_t offset, std::uint64_t max) = 0;
    virtual Result<std::vector<std::string>> list(const std::string &directory) = 0;
};

}  // namespace dcs::store
