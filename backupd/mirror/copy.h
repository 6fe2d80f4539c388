#pragma once
// The running copy of the scheduler's store that the backup holds (docs/BACKUP.md). It takes pages in the order in
// which the scheduler numbers them, and what it says to be durable is. Below the disk that it is given:
//   a/, b/       a store each: the whole copy is in one of them, a new one is made in the other
//   current      "a" or "b": which one is whole; absent: none is
//   library/     contents, as the scheduler's library has them; of both
//   incoming/    contents on their way
// A new copy becomes `current` only when it is whole and durable, so while it is made there is still the old one.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "store/identity.h"
#include "store/sub_disk.h"
#include "wire/mirror_calls.h"

namespace dcs::backup {

// Bugs of the test build. 0 in production.
enum MirrorPlant : std::uint32_t {
    mirror_plant_none = 0,
    mirror_plant_early_current = 1u << 0,     // the new copy counts before it is durable
    mirror_plant_no_sync_current = 1u << 1,   // its name not synced
    mirror_plant_drop_old_first = 1u << 2,    // the old copy goes before the new one counts
    mirror_plant_skip_turn = 1u << 3,         // a turn is said to be there that was not committed
    mirror_plant_content_unsynced = 1u << 4   // a content is said to be there that is not durable
};

class Copy {
public:
    // Recovers what is there. `disk` outlives it.
    static Result<std::unique_ptr<Copy>> open(store::Disk &disk, store::StoreOptions options,
                                              std::uint32_t plant = mirror_plant_none);

    bool whole() const { return slot_.store != nullptr && spoilt_.empty(); }
    const store::Identity &identity() const { return slot_.identity; }
    std::uint64_t turn() const { return slot_.store ? slot_.store->turn() : 0; }
    bool copying() const { return making_.has_value(); }
    std::uint64_t bytes_taken() const { return bytes_; }  // since open()
    // Why the copy cannot go on, so that it wants a new one; empty: it can.
    const std::string &spoilt() const { return spoilt_; }
    Result<std::vector<std::string>> contents();  // SHA-256s, 32 bytes each
    // What is said to be whole, a turn or a content is durable when this returns ok. After a failure the pages that
    // follow mean nothing: drop the Copy, open it again, and tell the scheduler anew what there is.
    Status take(const wire::MirrorPage &page);
    // For idle moments: what was committed is synced away.
    Status tidy();
    bool untidy() const { return slot_.store && slot_.store->pending_bytes() > 0; }

    // The whole copy becomes a scheduler's: a durable turn of its own says the epoch. Its place, for who moves it.
    Result<std::string> promote(std::uint64_t epoch);

private:
    Copy(store::Disk &disk, store::StoreOptions options, std::uint32_t plant)
        : disk_(disk), options_(std::move(options)), plant_(plant) {}
    struct Making { std::string slot; store::Identity identity; };
    struct Slot {
        std::unique_ptr<store::SubDisk> disk;
        std::unique_ptr<store::Store> store;
        store::Identity identity;
        std::string spoilt;  // why it is not whole
    };
    bool planted(MirrorPlant bug) const { return (plant_ & bug) != 0; }

    Status find();
    Result<Slot> open_slot(const std::string &slot);
    void use(Slot slot);
    Status remove_tree(const std::string &path, int depth = 0);
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
    const std::uint32_t plant_;
    std::string current_;  // "", "a" or "b"
    Slot slot_;            // `current_`
    std::string spoilt_;   // why it cannot go on
    std::optional<Making> making_;
    std::string turn_bytes_;  // of a turn that has not come whole
    std::uint64_t bytes_ = 0;
};

}  // namespace dcs::backup
