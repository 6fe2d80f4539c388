// A new copy of the store is made at the backup, file by file, while turns go on: what changes after it was sent is
// sent again, and in the end, when nothing is left, for a moment no turn is answered.
#include <algorithm>

#include "base/failpoint.h"
#include "scheduler/turn/mirror.h"
#include "store/names.h"
#include "store/pending.h"

namespace dcs::turn {

void Mirror::begin_copy(const std::string &why) {
    outside_.log(Level::info, "copying the store to the backup: " + why);
    whole_ = false;
    backlog_.clear();
    backlog_held_ = turn_offset_ = 0;
    making_.emplace();
    making_->directories.emplace_back();
    wire::MirrorPage begin;
    begin.step = wire::MirrorStep::begin;
    begin.name = setup_.identity.name, begin.epoch = setup_.identity.epoch;
    page(std::move(begin));
}

// What has been sent, or is being sent, and changes now.
void Mirror::touched(const CopiedTurn &turn) {
    const auto steps = store::steps_of_copy(turn.turn, turn.root);
    DCS_REQUIRE(steps, "a turn that cannot be read back");
    for (const store::Step &step : *steps) {
        if (step.kind == store::StepKind::noted) continue;
        if (step.kind == store::StepKind::remove) {
            const std::string directory(step.directory);
            store::erase_below(making_->unsent, directory);
            store::erase_below(making_->dirty, directory);
            wire::MirrorPage removed;
            removed.step = wire::MirrorStep::removed;
            removed.path = directory;
            page(std::move(removed));
            continue;
        }
        const std::string path = step.path();
        const std::uint64_t from = step.action == store::Action::append ? step.old_length : 0;
        if (const auto unsent = making_->unsent.find(path); unsent != making_->unsent.end()) {
            unsent->second = std::min(unsent->second, from);
            continue;
        }
        const auto dirty = making_->dirty.try_emplace(path, from).first;
        dirty->second = std::min(dirty->second, from);
    }
}

void Mirror::walk(const std::string &directory) {
    const auto names = store_.list(directory);
    if (!names && names.status().code == Code::not_found) return;  // it was removed in the meantime
    if (!names) return fail_link(directory + ": " + names.status().text);
    for (const std::string &name : *names) {
        const bool below = name.back() == '/';
        const std::string path = store::join(directory, below ? name.substr(0, name.size() - 1) : name);
        if (below && path == "lost+found") continue;
        if (below) {
            making_->directories.push_front(path);
        } else if (store::valid_copied_path(path)) {
            making_->dirty.erase(path);
            making_->unsent[path] = 0;
        }
    }
}

// One file after the other, the changed ones last; when there is none, the copy is what the store is now.
bool Mirror::send_of_copy() {
    if (!making_) return false;
    Making &m = *making_;
    wire::MirrorPage next;
    if (m.unsent.empty() && !m.directories.empty()) {
        const std::string directory = std::move(m.directories.front());
        m.directories.pop_front();
        walk(directory);
        return true;
    }
    if (m.unsent.empty() && !m.settling_since) m.settling_since = outside_.now();
    std::map<std::string, std::uint64_t> &files = m.unsent.empty() ? m.dirty : m.unsent;
    if (files.empty()) {
        failpoint("mirror.send.whole");
        next.step = wire::MirrorStep::whole;
        next.turn = last_turn_;
        sent_up_to(last_turn_);
        next_turn_ = last_turn_ + 1;
        making_.reset();
        page(std::move(next));
        whole_number_ = number_;
        return true;
    }
    const auto file = files.begin();
    auto bytes = store_.read(file->first, file->second, mirror_piece_bytes);
    if (!bytes && bytes.status().code == Code::not_found) {
        files.erase(file);
        return true;
    }
    if (!bytes) {
        fail_link(file->first + ": " + bytes.status().text);
        return false;
    }
    next.step = wire::MirrorStep::file;
    next.path = file->first;
    next.offset = file->second;
    next.bytes = std::move(*bytes);
    file->second += next.bytes.size();
    if (next.bytes.size() < mirror_piece_bytes) files.erase(file);
    page(std::move(next));
    return true;
}

}  // namespace dcs::turn
