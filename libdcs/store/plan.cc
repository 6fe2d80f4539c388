// Converts a turn's updates to its steps: checks templates, orders leaves before roots, joins the steps of a
// file, and decides for every node whether its bytes are stored inside the root or beside it.
#include <algorithm>
#include <map>

#include "base/bytes.h"
#include "base/require.h"
#include "store/engine.h"
#include "store/names.h"

namespace dcs::store {
namespace {

const TreeTemplate *find_tree(const Forest &forest, std::string_view name) {
    for (const TreeTemplate &tree : forest)
        if (tree.name == name) return &tree;
    return nullptr;
}

// Position on the way from the leaves to the root; the root is last (rule vii).
std::size_t rank(const TreeTemplate &tree, const std::string &file) {
    std::size_t position = 0;
    for (const auto &branch : tree.branches)
        for (const NodeTemplate &node : branch) {
            if (node.root_of.empty() && node.name == file) return position;
            ++position;
        }
    return position;
}

Status bytes_missing(const Step &step, std::uint64_t length) {
    return fail(Code::io_error, step.path() + " has " + std::to_string(length) + " bytes, " +
                                    std::to_string(step.old_length) +
                                    " were recorded: bytes are missing, restore the file");
}

// Joins the updates of a turn in their order. The result has one step per
// file, without steps that a later removal undoes.
class Joiner {
public:
    Joiner(const Forest &forest, TurnPlan &plan) : forest_(forest), plan_(plan) {}

    Status add(const TreeUpdate &update) {
        find_template(update);
        Place &place = find_place(update.directory);
        if (update.remove) {
            DCS_REQUIRE(update.nodes.empty(), "a removed tree has no nodes to update");
            remove(update.directory);
            return Status::ok();
        }
        sorted_.clear();
        for (const NodeUpdate &node : update.nodes) sorted_.push_back(&node);
        const auto leaf_first = [&](const NodeUpdate *a, const NodeUpdate *b) {
            return rank(*tree_, a->file) < rank(*tree_, b->file);
        };
        if (sorted_.size() > 1) std::stable_sort(sorted_.begin(), sorted_.end(), leaf_first);
        for (const NodeUpdate *node : sorted_)
            if (Status status = add_node(update, *node, place); !status) return status;
        return Status::ok();
    }

    void finish() {
        DCS_REQUIRE(dropped_.size() == plan_.steps.size(), "each step is kept or dropped");
        std::vector<Step> kept;
        kept.reserve(plan_.steps.size());
        for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
            if (dropped_[i]) continue;
            kept.push_back(plan_.steps[i]);
            Step &step = kept.back();
            if (step.kind != StepKind::remove) step.checksum = crc32c(step.bytes);
        }
        plan_.steps = std::move(kept);
    }

private:
    struct Place {
        std::vector<std::size_t> steps;  // of files in that directory
        std::size_t removal = none;
    };
    static constexpr std::size_t none = ~std::size_t{0};

    // Cached, because most updates of a turn are of a few kinds and places.
    void find_template(const TreeUpdate &update) {
        if (tree_ && tree_->name == update.tree) return;
        tree_ = find_tree(forest_, update.tree);
        DCS_REQUIRE(tree_, "an updated tree has a template");
    }

    Place &find_place(std::string_view directory) {
        if (place_ && directory == place_name_) return *place_;
        auto found = places_.find(directory);
        if (found == places_.end()) {
            DCS_REQUIRE(valid_tree_directory(directory), "the directory of an update tree is valid");
            found = places_.emplace(directory, Place()).first;
        }
        place_name_ = found->first;
        place_ = &found->second;
        return *place_;
    }

    std::size_t push(const Step &step) {
        plan_.steps.push_back(step);
        dropped_.push_back(false);
        return plan_.steps.size() - 1;
    }

    // Drops all steps at and below the directory; only the removal remains.
    void remove(std::string_view directory) {
        const auto drop = [&](Place &place) {
            for (const std::size_t i : place.steps) dropped_[i] = true;
            if (place.removal != none) dropped_[place.removal] = true;
            place = Place();
        };
        drop(*place_);
        const std::string first = std::string(directory) + "/", last = std::string(directory) + "0";
        for (auto below = places_.lower_bound(first); below != places_.end() && below->first < last; ++below)
            drop(below->second);
        Step step{.kind = StepKind::remove, .directory = directory};
        place_->removal = push(step);
    }

    Status add_node(const TreeUpdate &update, const NodeUpdate &from, Place &place) {
        const NodeTemplate *node = tree_->find(from.file);
        DCS_REQUIRE(node, "an updated node is in the template");
        DCS_REQUIRE(node->action != Action::information, "an information node is never updated");
        DCS_REQUIRE(node->action == Action::append || from.old_length == 0, "an old length belongs to appends");
        Step step;
        step.directory = update.directory;
        step.tree = update.tree;
        step.file = from.file;
        step.action = node->action == Action::alternate ? Action::replace : node->action;
        step.old_length = from.old_length;
        step.length = from.content().size();
        step.bytes = from.content();
        if (node->action == Action::discard) step.kind = StepKind::noted;
        for (std::size_t &i : place.steps) {
            if (plan_.steps[i].file != step.file || plan_.steps[i].kind != step.kind) continue;
            if (step.action == Action::append && step.old_length > plan_.steps[i].old_length)
                return join_append(i, step);
            // The later step replaces the earlier one.
            dropped_[i] = true;
            i = push(step);
            return Status::ok();
        }
        place.steps.push_back(push(step));
        return Status::ok();
    }

    // Appends to bytes of the same turn: one longer step, in the place of the earlier one.
    Status join_append(std::size_t i, const Step &step) {
        Step &earlier = plan_.steps[i];
        const std::uint64_t end = earlier.old_length + earlier.length;
        if (step.old_length > end) return bytes_missing(step, end);
        auto joined = joined_.find(i);
        if (joined == joined_.end()) {
            plan_.joined.emplace_back(earlier.bytes);
            joined = joined_.emplace(i, &plan_.joined.back()).first;
        }
        DCS_REQUIRE(step.old_length >= earlier.old_length, "a step that begins earlier replaces the other");
        joined->second->resize(step.old_length - earlier.old_length);
        joined->second->append(step.bytes);
        earlier.bytes = *joined->second;
        earlier.length = earlier.bytes.size();
        return Status::ok();
    }

    const Forest &forest_;
    TurnPlan &plan_;
    std::map<std::string, Place, std::less<>> places_;
    std::map<std::size_t, std::string *> joined_;
    std::vector<bool> dropped_;
    std::vector<const NodeUpdate *> sorted_;
    const TreeTemplate *tree_ = nullptr;
    std::string_view place_name_;
    Place *place_ = nullptr;
};

}  // namespace

Result<std::uint64_t> Engine::length_now(const std::string &path) const {
    if (const auto known = pending_.lengths.find(path); known != pending_.lengths.end()) return known->second;
    Result<std::uint64_t> size = disk_.size(path);
    if (!size && size.status().code == Code::not_found) return std::uint64_t{0};
    return size;
}

// Only a file that exists is written in place: what an interrupted turn makes must have a name that recovery discards,
// and so must the directories that it makes.
Result<bool> Engine::goes_in_place(const Step &step, const std::string &path) const {
    const TreeTemplate *tree = find_tree(forest_, step.tree);
    const NodeTemplate *node = tree ? tree->find(std::string(step.file)) : nullptr;
    if (!node || node->action != Action::alternate) return false;
    Result<std::uint64_t> size = disk_.size(path);
    if (!size && size.status().code != Code::not_found) return size.status();
    return static_cast<bool>(size);
}

Status Engine::check_not_set_aside(const Step &step) const {
    if (planted("commit_to_damaged") || !set_aside_.count(step.directory)) return Status::ok();
    const std::string directory(step.directory);
    return fail(Code::io_error, directory + " is damaged and set aside; the file " + marker_of(directory) +
                                    " describes the loss: remove the tree and create it again, or restore the "
                                    "state directory from a backup");
}

// Decides inside or beside, and whether pending turns must be flushed first. In the order of application, because an
// earlier removal in the turn affects the result.
Status Engine::place(TurnPlan &plan) const {
    std::set<std::string, std::less<>> removed;
    const auto made_new = [&](std::string_view directory) {
        if (removed.empty()) return false;
        for (std::string d(directory); !d.empty(); d = parent_of(d))
            if (removed.count(d)) return true;
        return false;
    };
    for (Step &step : plan.steps) {
        if (step.kind == StepKind::remove) {
            removed.emplace(step.directory);
            if (!planted("no_flush_before_remove") && pending_.touched_below(std::string(step.directory)))
                plan.flush_first = true;
            continue;
        }
        const bool fresh = made_new(step.directory);
        if (!fresh && !set_aside_.empty())
            if (Status status = check_not_set_aside(step); !status) return status;
        plan.all_bytes += step.length;
        if (step.kind == StepKind::noted) continue;
        const bool append = step.action == Action::append;
        const std::size_t limit = append ? options_.append_inline_limit : options_.inline_limit;
        if (!append && step.length <= limit) continue;
        const std::string path = step.path();
        if (append) {
            Result<std::uint64_t> length = fresh ? Result<std::uint64_t>(std::uint64_t{0}) : length_now(path);
            if (!length) return length.status();
            if (*length < step.old_length) return bytes_missing(step, *length);
            const bool cut = step.old_length < *length && pending_.lengths.count(path) && !fresh;
            if (cut && !planted("no_flush_before_shrink")) plan.flush_first = true;
        }
        // The new bytes of a tree that an earlier step of this turn removes must not be in its directory beforehand.
        if (step.length <= limit || fresh) continue;
        plan.big_bytes += step.length;
        Result<bool> in_place = goes_in_place(step, path);
        if (!in_place) return in_place.status();
        step.kind = *in_place ? StepKind::placed : StepKind::beside;
        if (*in_place) {
            plan.placed_bytes += step.length;
            // Replay would put what a pending turn has for this file in the place of what is newer.
            const bool pending = pending_.files.count(path) != 0 || behind_.has(path);
            if (pending && !planted("no_flush_before_placed")) plan.flush_first = true;
        }
        if (pending_.removed_above(std::string(step.directory)) && !planted("no_flush_before_big"))
            plan.flush_first = true;
        if (pending_.big.count(path)) plan.flush_first = true;  // avoids a third version of it
    }
    return Status::ok();
}

Status Engine::plan(const std::vector<TreeUpdate> &updates, TurnPlan &plan) const {
    Joiner joiner(forest_, plan);
    for (const TreeUpdate &update : updates)
        if (Status status = joiner.add(update); !status) return status;
    joiner.finish();
    return place(plan);
}

}  // namespace dcs::store
