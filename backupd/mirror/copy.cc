#include "backupd/mirror/copy.h"

#include <map>
#include <utility>

#include "base/failpoint.h"
#include "base/text.h"
#include "base/limits.h"
#include "base/require.h"
#include "store/copy.h"

namespace dcs::backup {
namespace {

constexpr const char *current_file = "current";
constexpr const char *current_temporary = "current.tmp";
constexpr const char *library_directory = "library";
constexpr const char *incoming_directory = "incoming";
// A turn of the scheduler is bounded far below this; a larger size is invalid.
constexpr std::uint64_t most_turn_bytes = std::uint64_t{4} << 30;

const store::Forest &forest() {
    static const store::Forest only = {store::identity_tree()};
    return only;
}

Status nonsense(const std::string &what) { return fail(Code::protocol, "the scheduler's copy: " + what); }

}  // namespace

Result<std::unique_ptr<Copy>> Copy::open(store::Disk &disk, store::StoreOptions options, std::string_view plant) {
    std::unique_ptr<Copy> copy(new Copy(disk, std::move(options), plant));
    if (Status s = copy->find(); !s) return s;
    return copy;
}

Status Copy::find() {
    Status s = disk_.sync_dir("");  // after a kill a visible name may not be durable
    if (!s) return s;
    Result<std::string> current = disk_.read(current_file, 0, 8);
    if (!current && current.status().code != Code::not_found) return current.status();
    if (current && *current != "a\n" && *current != "b\n") {
        if (s = choose(); !s) return s;
    } else if (current) {
        current_ = current->substr(0, 1);
    }
    for (const std::string slot : {"a", "b"})
        if (slot != current_)
            if (s = store::remove_tree(disk_, slot); !s) return s;
    if (s = store::remove_tree(disk_, incoming_directory); !s) return s;
    if (s = disk_.remove(current_temporary); !s) return s;
    if (current_.empty()) return Status::ok();
    auto slot = open_slot(current_);
    if (!slot) return slot.status();
    use(std::move(*slot));
    return Status::ok();
}

// `current` is damaged. A copy in the making has nothing in `turns/` before it has everything, so usually one
// directory has that. The other one is removed, and so must not be the only good copy, or a later one.
Status Copy::choose() {
    std::map<std::string, Slot> founded;
    for (const std::string name : {"a", "b"}) {
        const auto names = disk_.list(name + "/turns");
        if (!names && names.status().code == Code::not_found) continue;
        if (!names) return names.status();
        if (names->empty()) continue;
        auto slot = open_slot(name);
        if (!slot) return slot.status();
        founded[name] = std::move(*slot);
    }
    const auto good = [](const Slot &slot) { return slot.store != nullptr && slot.spoilt.empty(); };
    if (founded.size() == 2) {
        const Slot &a = founded["a"], &b = founded["b"];
        if (!good(a) || !good(b) || a.identity.name != b.identity.name)
            return fail(Code::io_error,
                        "the file `current` of the copy is damaged: write `a` or `b` into it, whichever of "
                        "the two directories beside it is complete, or remove all three");
        const bool b_later =
            std::pair(b.identity.epoch, b.store->turn()) > std::pair(a.identity.epoch, a.store->turn());
        founded.erase(b_later ? "a" : "b");
    }
    mended_ = "the file `current` was damaged; ";
    if (founded.empty()) {
        mended_ += "there is no complete copy beside it, so a new one is made";
        const Status s = disk_.remove(current_file);
        return s ? disk_.sync_dir("") : s;
    }
    const auto &[name, slot] = *founded.begin();
    mended_ += good(slot) ? "the copy is `" + name + "`, complete as of turn " + std::to_string(slot.store->turn())
                          : "the copy `" + name + "` is damaged, too: " + slot.spoilt;
    current_ = name;
    return replace(current_file, name + "\n");
}

// An unreadable copy is not removed before there is a better one.
Result<Copy::Slot> Copy::open_slot(const std::string &name) {
    Slot slot{.disk = std::make_unique<store::SubDisk>(disk_, name)};
    store::RecoveryReport report;
    auto store = store::Store::open(*slot.disk, forest(), options_, &report);
    if (!store && (store.status().code == Code::no_space || store.status().code == Code::limit)) return store.status();
    if (!store) {
        slot.spoilt = store.status().text;
        return slot;
    }
    const auto identity = store::read_identity(**store);
    if (!identity || identity->name == 0) slot.spoilt = identity ? "it has no name" : identity.status().text;
    if (!report.damaged.empty()) slot.spoilt = report.damaged[0].path + ": " + report.damaged[0].what;
    if (identity) slot.identity = *identity;
    slot.store = std::move(*store);
    return slot;
}

void Copy::use(Slot slot) {
    slot_ = std::move(slot);
    spoilt_ = slot_.spoilt;
}

Status Copy::make_directories(const std::string &path) {
    for (std::size_t end = 0; end != std::string::npos;) {
        end = path.find('/', end + 1);
        if (Result<bool> made = disk_.make_dir(path.substr(0, end)); !made) return made.status();
    }
    return Status::ok();
}

Status Copy::replace(const std::string &path, const std::string &bytes) {
    Status s = disk_.remove(current_temporary);
    if (s) s = disk_.create(current_temporary, bytes);
    if (s) s = disk_.sync_file(current_temporary);
    failpoint("mirror.current.before_rename");
    if (s) s = disk_.rename(current_temporary, path);
    if (s && !planted("no_sync_current")) s = disk_.sync_dir("");
    failpoint("mirror.current.after_rename");
    return s;
}

Status Copy::take(const wire::MirrorPage &page) {
    switch (page.step) {
    case wire::MirrorStep::begin: return begin(page);
    case wire::MirrorStep::file: return file(page);
    case wire::MirrorStep::removed: return removed(page);
    case wire::MirrorStep::whole: return make_whole(page);
    case wire::MirrorStep::turn: return turn_piece(page);
    case wire::MirrorStep::content: return content(page);
    case wire::MirrorStep::forget: return forget(page);
    }
    return nonsense("an unknown step");
}

// ---- a new copy ---------------------------------------------------------------------------

Status Copy::begin(const wire::MirrorPage &page) {
    if (page.name == 0) return nonsense("a store without a name");
    // A complete copy is replaced only by a later state of the same store.
    if (slot_.identity.name != 0 && (slot_.identity.name != page.name || slot_.identity.epoch > page.epoch))
        return nonsense("it is of another store than the copy here");
    making_ = Making{current_ == "a" ? "b" : "a", {page.name, page.epoch}};
    DCS_REQUIRE(making_->slot != current_, "a new copy is made beside the current one");
    Status s = store::remove_tree(disk_, making_->slot);
    if (s) s = make_directories(making_->slot);
    return s;
}

Status Copy::file(const wire::MirrorPage &page) {
    if (!making_) return nonsense("a file without the beginning of a copy");
    if (!store::valid_copied_path(page.path)) return nonsense("an invalid file name " + page.path);
    const std::string path = store::join(making_->slot, page.path);
    const Status s = make_directories(store::parent_of(path));
    return s ? disk_.truncate_append(path, page.offset, page.bytes) : s;
}

Status Copy::removed(const wire::MirrorPage &page) {
    if (!making_) return nonsense("a removal without the beginning of a copy");
    if (!store::valid_tree_directory(page.path)) return nonsense("an invalid directory " + page.path);
    return store::remove_tree(disk_, store::join(making_->slot, page.path));
}

// Verifies the copy before it becomes current, because it may be incomplete.
Status Copy::make_whole(const wire::MirrorPage &page) {
    if (!making_) return nonsense("the end of a copy without its beginning");
    const Making made = *std::exchange(making_, std::nullopt);
    DCS_REQUIRE(made.slot != current_, "a new copy is made beside the current one");
    failpoint("mirror.whole.before");
    const std::string old = current_;
    store::SubDisk place(disk_, made.slot);
    Status s;
    if (planted("drop_old_first") && !old.empty()) s = store::remove_tree(disk_, old);
    if (s && planted("early_current")) s = replace(current_file, made.slot + "\n");
    if (s) s = store::found_copy(place, page.turn);
    if (s) s = disk_.sync_dir("");  // for the slot's own name
    if (!s) return s;
    failpoint("mirror.whole.founded");
    auto slot = open_slot(made.slot);
    if (!slot) return slot.status();
    if (!slot->spoilt.empty()) return fail(Code::io_error, "the received copy is incomplete: " + slot->spoilt);
    if (slot->identity.name != made.identity.name || slot->identity.epoch != made.identity.epoch)
        return nonsense("the received store is not the announced one");
    if (s = replace(current_file, made.slot + "\n"); !s) return s;
    current_ = made.slot;
    use(std::move(*slot));
    failpoint("mirror.whole.after");
    return old.empty() ? s : store::remove_tree(disk_, old);
}

// ---- turn by turn -------------------------------------------------------------------------

Status Copy::turn_piece(const wire::MirrorPage &page) {
    if (page.offset != turn_bytes_.size() && page.offset == 0) turn_bytes_.clear();
    if (page.offset != turn_bytes_.size() || page.size > most_turn_bytes || page.bytes.size() > page.size - page.offset)
        return nonsense("inconsistent pieces of a turn");
    turn_bytes_ += page.bytes;
    if (turn_bytes_.size() < page.size) return Status::ok();
    const std::string root = std::exchange(turn_bytes_, {});
    if (!whole()) return nonsense("a turn without a complete copy");
    if (planted("skip_turn") && page.turn % 7 == 0) return Status::ok();
    DCS_REQUIRE(slot_.store != nullptr, "a complete copy has a store");
    failpoint("mirror.turn.before");
    const store::CommitResult done = slot_.store->commit_copied(page.turn, root);
    failpoint("mirror.turn.after");
    if (done.answer == store::Answer::done) return Status::ok();
    const bool passing = done.status.code == Code::no_space || done.status.code == Code::limit;
    if (done.answer == store::Answer::nothing && !passing) spoilt_ = done.status.text;
    return done.status;
}

Status Copy::tidy() {
    if (!slot_.store || slot_.store->pending_bytes() == 0) return Status::ok();
    const store::CommitResult done = slot_.store->flush();
    return done.answer == store::Answer::done ? Status::ok() : done.status;
}

// ---- contents -----------------------------------------------------------------------------

namespace {
std::string content_path(const std::string &key) {
    DCS_REQUIRE(key.size() == limits::digest_bytes, "a content is named by its digest");
    const std::string hex = hex_of(key);
    return std::string(library_directory) + "/" + hex.substr(0, 2) + "/" + hex.substr(2);
}
}  // namespace

Status Copy::content(const wire::MirrorPage &page) {
    if (page.key.size() != limits::digest_bytes || page.offset > page.size ||
        page.bytes.size() > page.size - page.offset)
        return nonsense("an inconsistent content");
    const std::string temporary = std::string(incoming_directory) + "/" + hex_of(page.key);
    Status s = make_directories(incoming_directory);
    if (s && page.offset == 0) s = disk_.remove(temporary);
    if (s) s = disk_.truncate_append(temporary, page.offset, page.bytes);
    if (!s || page.offset + page.bytes.size() < page.size) return s;
    const std::string path = content_path(page.key), directory = store::parent_of(path);
    s = make_directories(directory);
    if (s && !planted("content_unsynced")) s = disk_.sync_file(temporary);
    if (s) s = disk_.rename(temporary, path);
    if (s) s = disk_.sync_dir(directory);
    if (s) s = disk_.sync_dir(library_directory);
    return s ? disk_.sync_dir("") : s;
}

Status Copy::forget(const wire::MirrorPage &page) {
    if (page.key.size() != limits::digest_bytes) return nonsense("a content without a name");
    return disk_.remove(content_path(page.key));
}

// A visible name may not be durable yet, but from now on the scheduler relies on it.
Result<std::vector<std::string>> Copy::contents() {
    std::vector<std::string> found;
    Result<std::vector<std::string>> groups = disk_.list(library_directory);
    if (!groups)
        return groups.status().code == Code::not_found ? Result<std::vector<std::string>>(found) : groups.status();
    for (const std::string &group : *groups) {
        if (group.size() != 3 || group.back() != '/') continue;
        Result<std::vector<std::string>> names = disk_.list(std::string(library_directory) + "/" + group.substr(0, 2));
        if (!names) return names.status();
        for (const std::string &name : *names)
            if (const auto key = bytes_of_hex(group.substr(0, 2) + name, limits::digest_bytes)) found.push_back(*key);
        if (Status s = disk_.sync_dir(std::string(library_directory) + "/" + group.substr(0, 2)); !s) return s;
    }
    Status s = disk_.sync_dir(library_directory);
    if (s) s = disk_.sync_dir("");
    if (!s) return s;
    return found;
}

Result<std::string> Copy::settled() {
    const std::string why = spoilt_.empty() ? "" : ": " + spoilt_;
    if (!slot_.store) return fail(Code::refused, "there is no complete copy here" + why);
    if (!spoilt_.empty()) return fail(Code::refused, "the copy is damaged" + why);
    DCS_REQUIRE(!current_.empty(), "a readable copy has a directory");
    if (Status s = tidy(); !s) return s;
    return current_;
}

Result<std::string> Copy::promote(std::uint64_t epoch) {
    if (const auto sound = settled(); !sound) return fail(Code::refused, sound.status().text);
    if (epoch > slot_.identity.epoch) {
        const store::TreeUpdate update = store::identity_update({slot_.identity.name, epoch, true});
        const store::CommitResult done = slot_.store->commit({update});
        if (done.answer == store::Answer::nothing) return fail(Code::refused, done.status.text);
        if (done.answer != store::Answer::done) return done.status;
        slot_.identity.epoch = epoch;
    }
    return settled();
}

}  // namespace dcs::backup
