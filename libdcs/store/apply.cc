// The steps after the commit (rules i-vii). Each step is idempotent: repeated from any state that a crash in it, or
// in a later one, can leave, it has the same result. Recovery relies on that.
#include "base/failpoint.h"
#include "base/require.h"
#include "store/copy.h"
#include "store/engine.h"
#include "store/names.h"

namespace dcs::store {
namespace {

constexpr std::size_t most_known = 64 * 1024;

}  // namespace

// Makes parents first. `made`, if not null, receives the directories that did not exist.
Status Engine::make_directories(const std::string &directory, std::vector<std::string> *made) {
    if (known_.count(directory)) return Status::ok();
    std::size_t end = 0;
    while (end != std::string::npos) {
        end = directory.find('/', end + 1);
        const std::string part = directory.substr(0, end);
        Result<bool> is_new = disk_.make_dir(part);
        // After a kill a directory may be visible that is not durable: in recovery all count as
        // new. After an error it may exist nevertheless.
        const bool assume_new = recovering_ && !planted("trust_visible_dirs");
        if (is_new && !*is_new && !assume_new) continue;
        pending_.fresh.insert(part);
        pending_.directories.insert(parent_of(part));
        if ((!is_new || *is_new) && made) made->push_back(part);
        if (!is_new) return is_new.status();
    }
    if (known_.size() >= most_known) known_.clear();
    known_.insert(directory);
    return Status::ok();
}

void Engine::forget_below(const std::string &directory) {
    pending_.forget_below(directory);
    erase_below(known_, directory);
}

// Rules ii and v. A big temporary is linked into place and keeps its own name until the flush: a power failure within a
// rename could leave neither name, but replay needs one.
Status Engine::apply_replace(const Step &step, std::uint64_t turn) {
    DCS_REQUIRE(step.kind == StepKind::inside || step.kind == StepKind::beside, "the step has bytes");
    const std::string path = step.path();
    // In place, because replay has the whole content, and a new file costs the file system more than its bytes do. Not
    // where a temporary that replay needs is the same file, as after a crash it may be.
    if (step.kind == StepKind::inside && !recovering_ && !pending_.big.count(path)) {
        Status written = disk_.rewrite(path, step.bytes);
        const bool absent = written.code == Code::not_found;
        if (absent) written = disk_.create(path, step.bytes);
        pending_.files.insert(path);
        if (absent) pending_.directories.emplace(step.directory);
        return written;
    }
    const std::string fresh = path + ".new";
    Status status;
    if (step.kind == StepKind::inside) {
        status = disk_.create(fresh, step.bytes);
        failpoint("store.apply_replace.between");
        if (status) status = disk_.rename(fresh, path);
    } else {
        const std::string big = big_temporary(step.directory, step.file, turn);
        if (planted("move_big")) {
            status = disk_.rename(big, path);
            return status.code == Code::not_found ? Status::ok() : status;
        }
        status = disk_.link(big, fresh);
        if (status) status = disk_.rename(fresh, path);
        // On replay both names may already be the same file; then the rename does nothing and this name remains.
        if (status) status = disk_.remove(fresh);
    }
    if (!status) {
        (void)disk_.remove(fresh);
        return status;
    }
    pending_.files.insert(path);
    pending_.directories.emplace(step.directory);
    return status;
}

// Rule vi, by recorded length: truncates, then appends.
Status Engine::apply_append(const Step &step, std::uint64_t turn) {
    const std::string path = step.path();
    DCS_REQUIRE(step.action == Action::append, "only appends have an old length");
    bool existed = pending_.files.count(path) != 0;
    std::uint64_t length = step.old_length;
    if (!existed || planted("append_at_end")) {
        Result<std::uint64_t> size = disk_.size(path);
        if (!size && size.status().code != Code::not_found) return size.status();
        existed = bool(size);
        if (planted("append_at_end")) length = size ? *size : 0;
    }
    if (step.kind == StepKind::inside || step.bytes.data()) {
        if (Status s = disk_.truncate_append(path, length, step.bytes); !s) return s;
    } else {
        const std::string big = big_temporary(step.directory, step.file, turn);
        for (std::uint64_t at = 0; at < step.length; at += chunk_bytes) {
            Result<std::string> chunk = disk_.read(big, at, chunk_bytes);
            if (!chunk) return chunk.status();
            if (Status s = disk_.truncate_append(path, length + at, *chunk); !s) return s;
        }
    }
    pending_.lengths[path] = step.old_length + step.length;
    pending_.files.insert(path);
    if (!existed || recovering_) pending_.directories.emplace(step.directory);
    return Status::ok();
}

// A directory exists as long as it has content, so parents that became empty are removed too.
Status Engine::apply_remove(const std::string &directory) {
    DCS_REQUIRE(!directory.empty(), "the store itself is never removed");
    if (Status status = remove_tree(disk_, directory); !status) return status;
    forget_below(directory);
    erase_below(set_aside_, directory);
    std::string parent = parent_of(directory);
    while (!parent.empty()) {
        Status status = disk_.remove_dir(parent);
        if (status.code == Code::refused) break;
        if (!status) return status;
        forget_below(parent);
        parent = parent_of(parent);
    }
    pending_.directories.insert(parent);
    return Status::ok();
}

Status Engine::apply_once(const Step &step, std::uint64_t turn) {
    if (step.kind == StepKind::noted || step.kind == StepKind::placed) return Status::ok();
    const std::string directory(step.directory);
    Status status;
    if (step.kind == StepKind::remove) {
        failpoint("store.apply_remove.before");
        status = apply_remove(directory);
        failpoint("store.apply_remove.after");
        return status;
    }
    if (status = make_directories(directory, nullptr); !status) return status;
    if (step.action == Action::append) {
        failpoint("store.apply_append.before");
        status = apply_append(step, turn);
        failpoint("store.apply_append.after");
    } else {
        failpoint("store.apply_replace.before");
        status = apply_replace(step, turn);
        failpoint("store.apply_replace.after");
    }
    return status;
}

// The turn is committed, so on a full disk the reserve is used to apply it.
Status Engine::apply(const Step &step, std::uint64_t turn) {
    return with_reserve(step.length + options_.step_room, [&] { return apply_once(step, turn); });
}

}  // namespace dcs::store
