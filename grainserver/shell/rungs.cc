#include "grainserver/shell/rungs.h"

#include <optional>

namespace dcs::server {
namespace {
constexpr struct {
    std::string_view word;
    Rungs rungs;
} levels[] = {
    {"limits", 0},
    {"filter", rung_filter},
    {"scope", rung_filter | rung_scope},
    {"files", rung_filter | rung_scope | rung_files},
    {"namespaces", rung_filter | rung_scope | rung_files | rung_namespaces},
};
// The rungs that restrict no ordinary program.
constexpr Rungs by_itself = rung_filter | rung_scope;

std::optional<Rungs> rungs_of_level(const std::string &word) {
    for (const auto &level : levels)
        if (level.word == word) return level.rungs;
    return {};
}
}  // namespace

Status check(const RungOptions &options) {
    if (options.level != "auto" && !rungs_of_level(options.level))
        return fail(Code::invalid, "--confine must be auto, limits, filter, scope, files or namespaces");
    for (const std::string &path : options.writable)
        if (path.empty() || path[0] != '/')
            return fail(Code::invalid, "--writable must be a list of absolute paths separated by commas");
    return Status::ok();
}

Result<Rungs> rungs_for(const RungOptions &options, const files::Available &host) {
    const std::optional<Rungs> level = rungs_of_level(options.level);
    Rungs wanted = level ? *level : host.rungs & by_itself;
    if (!options.network) wanted |= rung_no_network;
    if ((wanted & ~host.rungs) == 0) return wanted | (host.rungs & rung_accounts);
    std::string why;
    for (const files::Lack &lack : host.lacks)
        if (lack.rungs & wanted) why += (why.empty() ? "" : "; ") + lack.why;
    return fail(Code::invalid, "this host cannot confine grains by " + to_words(wanted & ~host.rungs) + ": " + why +
                                   ". --confine auto uses what the host supports");
}

}  // namespace dcs::server
