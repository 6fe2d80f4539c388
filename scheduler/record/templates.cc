#include "scheduler/record/templates.h"

#include "store/identity.h"

namespace dcs::record {
namespace {

using store::Action;
using store::NodeTemplate;
using store::Shape;

NodeTemplate replaced(const char *name) { return {name, Shape::pair, Action::replace, ""}; }
NodeTemplate appended(const char *name) { return {name, Shape::pair, Action::append, ""}; }
// The roots of newer trees that recovery reads together with this one (lazy commitment).
NodeTemplate roots_of(const char *tree, const char *name) {
    return {name, Shape::singleton, Action::information, tree};
}

}  // namespace

const store::Forest &forest() {
    // Every node is a branch of its own: any subset of them may change in a turn, the root
    // (which records their lengths) always does.
    static const store::Forest all = {
        {session_tree,
         {{appended(grains_file)},
          {appended(inputs_file)},
          {appended(results_file)},
          {appended(events_file)},
          {roots_of(grain_tree, status_file)}},
         replaced(status_file)},
        {grain_tree,
         {{replaced(params_file)},
          {replaced(checkpoint_file)},
          {replaced(message_file)},
          {appended(out_file)},
          {appended(err_file)}},
         replaced(status_file)},
        {auth_tree, {{roots_of(session_tree, status_file)}}, replaced(auth_file)},
        {hosts_tree, {}, replaced(hosts_file)},
        {trust_tree, {}, replaced(trust_file)},
        {handed_over_tree, {}, replaced(handed_over_file)},
        store::identity_tree(),
    };
    return all;
}

}  // namespace dcs::record
