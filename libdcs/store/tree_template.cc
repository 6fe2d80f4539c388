#include "store/tree_template.h"

#include <algorithm>
#include <map>
#include <set>

#include "store/names.h"

namespace dcs::store {
namespace {

// Leaves room for ".<20 digits>.tmp" after the longest name.
constexpr std::size_t node_name_bytes = 200;

std::string quoted(const TreeTemplate &tree, const NodeTemplate &node) {
    return "update tree `" + tree.name + "`, node `" + node.name + "`: ";
}

bool fits(const NodeTemplate &node) {
    const bool for_pairs =
        node.action == Action::replace || node.action == Action::append || node.action == Action::alternate;
    return for_pairs == (node.shape == Shape::pair);
}

Status check_node(const TreeTemplate &tree, const NodeTemplate &node) {
    if (!valid_node_name(node.name) || node.name.size() > node_name_bytes)
        return fail(Code::invalid, quoted(tree, node) + "not a file name, or a name that is reserved for the store");
    if (!fits(node))
        return fail(Code::invalid, quoted(tree, node) +
                                       "pairs are replaced or appended to, singletons renamed, "
                                       "discarded or read for information");
    if (!node.root_of.empty() && node.action != Action::information)
        return fail(Code::invalid, quoted(tree, node) + "another tree's root can only be an information node");
    return Status::ok();
}

Status check_tree(const TreeTemplate &tree, const std::set<std::string> &trees) {
    if (tree.name.empty()) return fail(Code::invalid, "an update tree without a name");
    if (tree.root.shape != Shape::pair || tree.root.action != Action::replace)
        return fail(Code::invalid, quoted(tree, tree.root) + "a root is a pair that is replaced");
    Status status = check_node(tree, tree.root);
    std::set<std::string> names{tree.root.name};
    for (const auto &branch : tree.branches) {
        for (const NodeTemplate &node : branch) {
            if (status) status = check_node(tree, node);
            // Another tree's root is in that tree's directory and may have the name of a node here.
            const bool own = node.root_of.empty();
            if (status && own && !names.insert(node.name).second)
                status = fail(Code::invalid, quoted(tree, node) + "the name occurs twice");
            if (status && !own && !trees.count(node.root_of))
                status = fail(Code::invalid, quoted(tree, node) + "there is no tree `" + node.root_of + "`");
        }
    }
    return status;
}

// Removes, repeatedly, trees that refer to no remaining tree; a rest is a cycle.
Status check_cycles(const Forest &forest) {
    std::map<std::string, std::set<std::string>> uses;
    for (const TreeTemplate &tree : forest) {
        std::set<std::string> &used = uses[tree.name];
        for (const auto &branch : tree.branches)
            for (const NodeTemplate &node : branch)
                if (!node.root_of.empty()) used.insert(node.root_of);
    }
    while (!uses.empty()) {
        const auto free =
            std::find_if(uses.begin(), uses.end(), [](const auto &entry) { return entry.second.empty(); });
        if (free == uses.end())
            return fail(Code::invalid,
                        "the update trees refer to each other in a cycle, through `" + uses.begin()->first + "`");
        const std::string name = free->first;
        uses.erase(free);
        for (auto &entry : uses) entry.second.erase(name);
    }
    return Status::ok();
}

}  // namespace

const NodeTemplate *TreeTemplate::find(const std::string &file) const {
    for (const auto &branch : branches)
        for (const NodeTemplate &node : branch)
            if (node.root_of.empty() && node.name == file) return &node;
    return root.name == file ? &root : nullptr;
}

Status check_forest(const Forest &forest) {
    std::set<std::string> trees;
    for (const TreeTemplate &tree : forest)
        if (!trees.insert(tree.name).second)
            return fail(Code::invalid, "two update trees are named `" + tree.name + "`");
    for (const TreeTemplate &tree : forest)
        if (Status status = check_tree(tree, trees); !status) return status;
    return check_cycles(forest);
}

}  // namespace dcs::store
