// From a turn's updates to its steps: templates checked, leaves before roots, what the turn itself
// undoes left out, and for every node the decision whether it travels inside the root or beside it.
#include <algorithm>
#include <map>

#include "base/checksum.h"
#include "store/engine.h"
#include "store/names.h"

namespace dcs::store {
namespace {

const TreeTemplate *find_tree(const Forest &forest, const std::string &name) {
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

StepKind kind_of(Action action) {
    return action == Action::discard ? StepKind::noted : StepKind::inside;
}

bool below_any(const std::set<std::string> &directories, const std::string &path) {
    for (std::string d = path; !d.empty(); d = parent_of(d))
        if (directories.count(d)) return true;
    return false;
}

// Is `earlier` without any effect once `later`, on the same file, is applied? An append that starts
// further back or at the same place cuts it off; left in, it could not be repeated after that cut.
bool undone_by(const Step &earlier, std::uint64_t later_old_length) {
    return earlier.action != Action::append || later_old_length <= earlier.old_length;
}

// Keeps only steps whose effect outlives the turn.
void drop_undone(std::vector<Step> &steps) {
    std::set<std::string> removed;
    std::map<std::string, std::uint64_t> later;  // path -> old length of the next step on it
    std::vector<Step> kept;
    for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
        if (below_any(removed, step->directory)) continue;
        if (step->kind == StepKind::remove) {
            removed.insert(step->directory);
            kept.push_back(std::move(*step));
            continue;
        }
        if (step->kind == StepKind::inside) {
            const auto next = later.find(step->path());
            if (next != later.end() && undone_by(*step, next->second)) continue;
            later[step->path()] = step->old_length;
        }
        kept.push_back(std::move(*step));
    }
    std::reverse(kept.begin(), kept.end());
    steps = std::move(kept);
}

}  // namespace

void Engine::flatten(const TreeUpdate &update, std::vector<Step> &steps) const {
    DCS_REQUIRE(valid_tree_directory(update.directory),
                "an update tree in an impossible directory");
    const TreeTemplate *tree = find_tree(forest_, update.tree);
    DCS_REQUIRE(tree, "an update of a tree without a template");
    if (update.remove) {
        DCS_REQUIRE(update.nodes.empty(), "a removed tree has no nodes to update");
        Step step;
        step.kind = StepKind::remove;
        step.directory = update.directory;
        steps.push_back(std::move(step));
        return;
    }
    const std::size_t first = steps.size();
    for (const NodeUpdate &update_of_node : update.nodes) {
        const NodeTemplate *node = tree->find(update_of_node.file);
        DCS_REQUIRE(node, "an update of a node that the template does not have");
        DCS_REQUIRE(node->action != Action::information, "an information node is never updated");
        DCS_REQUIRE(node->action == Action::append || update_of_node.old_length == 0,
                    "an old length belongs to appends");
        Step step;
        step.kind = kind_of(node->action);
        step.directory = update.directory;
        step.tree = update.tree;
        step.file = update_of_node.file;
        step.action = node->action;
        step.old_length = update_of_node.old_length;
        step.length = update_of_node.bytes.size();
        step.checksum = crc32c(update_of_node.bytes);
        step.bytes = update_of_node.bytes;
        steps.push_back(std::move(step));
    }
    std::stable_sort(steps.begin() + static_cast<std::ptrdiff_t>(first), steps.end(),
                     [&](const Step &a, const Step &b) {
                         return rank(*tree, a.file) < rank(*tree, b.file);
                     });
}

Result<std::uint64_t> Engine::length_now(const std::string &path) const {
    const auto known = pending_.lengths.find(path);
    if (known != pending_.lengths.end()) return known->second;
    Result<std::uint64_t> size = disk_.size(path);
    if (!size && size.status().code == Code::not_found) return std::uint64_t{0};
    return size;
}

// Inside or beside, and whether what is pending must be synced away first. In the order of
// application, because a removal earlier in the turn changes the answers.
Status Engine::place(TurnPlan &plan) const {
    std::set<std::string> removed;
    std::map<std::string, std::uint64_t> lengths;
    std::set<std::string> seen;
    for (Step &step : plan.steps) {
        if (step.kind == StepKind::remove) {
            removed.insert(step.directory);
            if (!planted(plant_no_flush_before_remove) && pending_.touched_below(step.directory))
                plan.flush_first = true;
            continue;
        }
        plan.all_bytes += step.length;
        if (step.kind == StepKind::noted) continue;
        const std::string path = step.path();
        const bool made_anew = below_any(removed, step.directory);
        const bool again = !seen.insert(path).second;
        if (step.action == Action::append) {
            std::uint64_t length = 0;
            if (again) {
                length = lengths[path];
            } else if (!made_anew) {
                Result<std::uint64_t> now = length_now(path);
                if (!now) return now.status();
                length = *now;
            }
            if (length < step.old_length)
                return fail(Code::io_error,
                            path + " has " + std::to_string(length) + " bytes, " +
                                std::to_string(step.old_length) +
                                " were recorded: bytes are missing, restore the file");
            const bool cut = step.old_length < length && pending_.lengths.count(path) && !made_anew;
            if (cut && !planted(plant_no_flush_before_shrink)) plan.flush_first = true;
            lengths[path] = step.old_length + step.length;
        }
        // What an earlier step of the turn removes or writes cannot lie there beforehand.
        if (step.length <= options_.inline_limit || made_anew || again) continue;
        step.kind = StepKind::beside;
        plan.big_bytes += step.length;
        if (pending_.removed_above(step.directory) && !planted(plant_no_flush_before_big))
            plan.flush_first = true;
        if (pending_.big.count(path)) plan.flush_first = true;  // B5: not three versions of it
    }
    return Status::ok();
}

Result<TurnPlan> Engine::plan(const std::vector<TreeUpdate> &updates) const {
    TurnPlan plan;
    for (const TreeUpdate &update : updates) flatten(update, plan.steps);
    drop_undone(plan.steps);
    if (Status status = place(plan); !status) return status;
    return plan;
}

}  // namespace dcs::store
