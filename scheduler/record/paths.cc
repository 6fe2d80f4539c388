#include "scheduler/record/paths.h"

#include "base/text.h"
#include "store/identity.h"

namespace dcs::record {
namespace {

constexpr std::string_view plain = "._-", front_dot = "%2E";  // a name that begins with '.' would be hidden

}  // namespace

std::string encode_login(std::string_view login) {
    if (login.empty()) return "%";  // no other name ends in a bare percent sign
    if (login[0] != '.') return percent_encoded(login, plain);
    return std::string(front_dot) + percent_encoded(login.substr(1), plain);
}

std::optional<std::string> decode_login(std::string_view name) {
    if (name == "%") return std::string();
    const bool dot = name.starts_with(front_dot);
    const auto rest = percent_decoded(dot ? name.substr(front_dot.size()) : name, plain);
    if (!rest || name.empty() || name[0] == '.') return std::nullopt;
    return dot ? "." + *rest : *rest;
}

std::string session_directory(const SessionKey &key) {
    return std::string(sessions_directory) + "/" + encode_login(key.user) + "/" + std::to_string(key.number);
}

std::string grains_directory(const SessionKey &key) { return session_directory(key) + "/g"; }

std::string grain_directory(const GrainKey &key) {
    return grains_directory(key.session) + "/" + std::to_string(key.grain);
}

std::optional<std::int32_t> number_of(std::string_view name) {
    std::int32_t value = 0;
    return read_number(name, value) && std::to_string(value) == name ? std::optional(value) : std::nullopt;
}

namespace {

using store::Action;
using store::NodeTemplate;
using store::Shape;

NodeTemplate replaced(const char *name) { return {name, Shape::pair, Action::replace, ""}; }
NodeTemplate alternate(const char *name) { return {name, Shape::pair, Action::alternate, ""}; }
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
          {alternate(checkpoint_files[0])},
          {alternate(checkpoint_files[1])},
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
