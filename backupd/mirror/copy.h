#pragma once
// The running copy of the scheduler's store that the backup holds (docs/BACKUP.md). It accepts pages in the order of
// the scheduler's numbers, and what it reports as durable is durable. Below its disk:
//   a/, b/       a store each: one of them is the complete copy, a new copy is made in the other
//   current      "a" or "b": the complete one; absent: none is
//   library/     contents, in the layout of the scheduler's library; common to both
//   incoming/    contents in transfer
// A new copy becomes `current` only when it is complete and durable, so the old one remains until then.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "store/identity.h"
#include "store/sub_disk.h"
#include "wire/backup_calls.h"

namespace dcs::backup {

class Copy {
public:
    // Recovers the existing copy. `disk` outlives it. `plant`: a bug of the test build, by name.
    static Result<std::unique_ptr<Copy>> open(store::Disk &disk, store::StoreOptions options,
                                              std::string_view plant = {});

    bool whole() const { return slot_.store != nullptr && spoilt_.empty(); }
    const store::Identity &identity() const { return slot_.identity; }
    std::uint64_t turn() const { return slot_.store ? slot_.store->turn() : 0; }
    bool copying() const { return making_.has_value(); }
    // Why the copy cannot continue and must be replaced; empty: it can continue.
    const std::string &spoilt() const { return spoilt_; }
    // What open() had to decide because `current` was damaged; empty: nothing.
    const std::string &mended() const { return mended_; }
    Result<std::vector<std::string>> contents();  // SHA-256s, 32 bytes each
    // On ok, a copy reported as complete, a turn or a content is durable. After a failure the pages that
    // follow are meaningless: destroy the Copy, open it again, and report its state to the scheduler.
    Status take(const wire::MirrorPage &page);
    // For idle moments: flushes committed turns into the trees.
    Status tidy();
    bool untidy() const { return slot_.store && slot_.store->pending_bytes() > 0; }

    // The directory of the complete copy with all that is committed. refused: there is none.
    Result<std::string> settled();
    // Makes the complete copy a scheduler's store: a durable turn of its own records the epoch. Returns its place.
    // refused: it is unchanged.
    Result<std::string> promote(std::uint64_t epoch);

private:
    Copy(store::Disk &disk, store::StoreOptions options, std::string_view plant)
        : disk_(disk), options_(std::move(options)), plant_(plant) {}
    struct Making {
        std::string slot;
        store::Identity identity;
    };
    struct Slot {
        std::unique_ptr<store::SubDisk> disk;
        std::unique_ptr<store::Store> store;
        store::Identity identity;
        std::string spoilt;  // why it is incomplete
    };
    bool planted(std::string_view bug) const { return plant_ == bug; }

    Status find();
    Status choose();
    Result<Slot> open_slot(const std::string &slot);
    void use(Slot slot);
    Status make_directories(const std::string &path);
    Status replace(const std::string &path, const std::string &bytes);
    Status begin(const wire::MirrorPage &page);
    Status file(const wire::MirrorPage &page);
    Status removed(const wire::MirrorPage &page);
    Status make_whole(const wire::MirrorPage &page);
    Status turn_piece(const wire::MirrorPage &page);
    Status content(const wire::MirrorPage &page);
    Status forget(const wire::MirrorPage &page);

    store::Disk &disk_;
    const store::StoreOptions options_;
    const std::string_view plant_;
    std::string current_;  // "", "a" or "b"
    Slot slot_;            // `current_`
    std::string spoilt_;   // why it cannot continue
    std::string mended_;
    std::optional<Making> making_;
    std::string turn_bytes_;  // of an incomplete turn
};

}  // namespace dcs::backup
