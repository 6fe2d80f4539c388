#include "pki/subject.h"

#include <algorithm>

#include "base/text.h"

namespace dcs::pki {
namespace {

constexpr std::string_view scheme = "dcs:";
struct RoleWord {
    Role role;
    const char *word, *said;
};
constexpr RoleWord roles[] = {
    {Role::authority, "authority", "a pool's authority"},  {Role::scheduler, "scheduler", "a scheduler"},
    {Role::grain_server, "grainserver", "a grain server"}, {Role::client, "client", "a host of control programs"},
    {Role::program, "program", "a control program"},       {Role::backup, "backup", "a passive backup"}};

}  // namespace

const char *name_of(Role role) {
    for (const RoleWord &r : roles)
        if (r.role == role) return r.said;
    return "nobody";
}

std::string subject_uri(Role role, const std::string &name) {
    for (const RoleWord &r : roles)
        if (r.role == role) return std::string(scheme) + r.word + "/" + name;
    return {};
}

std::optional<ProgramName> program_name(const std::string &name) {
    const std::size_t first = name.find('/'), second = name.find('/', first + 1);
    if (first == std::string::npos || second == std::string::npos) return std::nullopt;
    ProgramName parts{name.substr(0, first), name.substr(first + 1, second - first - 1), name.substr(second + 1)};
    const bool good = is_name(parts.user) && is_name(parts.host) && is_name(parts.ident);
    return good ? std::optional(parts) : std::nullopt;
}

std::string name_of(const ProgramName &program) { return program.user + "/" + program.host + "/" + program.ident; }

bool good_subject(Role role, const std::string &name) {
    return role == Role::program ? program_name(name).has_value() : is_name(name);
}

std::optional<Subject> subject_of(std::string_view uri) {
    const std::size_t slash = uri.find('/');
    if (uri.substr(0, scheme.size()) != scheme || slash == std::string_view::npos) return std::nullopt;
    const std::string_view word = uri.substr(scheme.size(), slash - scheme.size());
    for (const RoleWord &r : roles)
        if (word == r.word && good_subject(r.role, std::string(uri.substr(slash + 1))))
            return Subject{r.role, std::string(uri.substr(slash + 1))};
    return std::nullopt;
}

}  // namespace dcs::pki
