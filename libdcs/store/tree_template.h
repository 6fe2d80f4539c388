#pragma once
// Update trees (paper, section 4.2). A template is data. A tree is in one directory; its branches
// are linear chains of nodes from leaf to root, and the root node is always a pair whose temporary
// replaces (or creates) the existing file. A tree's directory contains only files that its template names.

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace dcs::store {

enum class Shape : std::uint8_t { singleton, pair };
enum class Action : std::uint8_t {
    replace,      // pair: the temporary replaces or creates the existing file (rule v)
    append,       // pair: the temporary is appended at the recorded old length (rule vi)
    rename,       // singleton temporary: becomes the existing file, once (rule ii)
    discard,      // singleton temporary: information for the root only, removed at the end (rule iii)
    information,  // singleton: another tree's root, or a fixed file; never touched (rule i)
    alternate     // pair, one of two files that take turns: replaced, and written in place before the commit, for the
                  // root that is committed names the other one
};

struct NodeTemplate {
    std::string name;  // file name in the tree's directory
    Shape shape = Shape::pair;
    Action action = Action::replace;
    std::string root_of;  // information nodes: the template whose root this is
};

struct TreeTemplate {
    std::string name;
    std::vector<std::vector<NodeTemplate>> branches;  // each from leaf towards the root
    NodeTemplate root;
    // The node with that file name, or nullptr; also finds the root.
    const NodeTemplate *find(const std::string &file) const;
};

using Forest = std::vector<TreeTemplate>;

// Checks that names are unique within a tree, that roots are replacing pairs, that every root_of names a template, and
// that the forest with these references has no cycle (so locking cannot deadlock).
Status check_forest(const Forest &forest);

}  // namespace dcs::store
