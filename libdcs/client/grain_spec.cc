#include "client/grain_spec.h"

#include "base/limits.h"
#include "base/resources.h"
#include "base/sized.h"
#include "client/call.h"

namespace dcs::client {
namespace {

Status too_much(const std::string &what, std::size_t is, std::size_t most) {
    return fail(Code::limit, what + " is " + std::to_string(is) + ", the limit is " + std::to_string(most));
}

// gargv and genvv share one limit for their number and one for their bytes.
struct Totals {
    std::size_t items = 0, bytes = 0;
};

Status copy_strings(char *const *from, Totals &used, std::vector<std::string> &to) {
    for (; from && *from; ++from) {
        if (++used.items > limits::argv_items)
            return too_much("the number of strings in gargv and genvv together", used.items, limits::argv_items);
        to.emplace_back(*from);
        used.bytes += to.back().size() + 1;
        if (used.bytes > limits::argv_env_bytes)
            return too_much("the length of gargv and genvv together", used.bytes, limits::argv_env_bytes);
    }
    return Status::ok();
}

Status check_environment(const std::vector<std::string> &env) {
    for (const std::string &entry : env) {
        const auto at = entry.find('=');
        if (at == std::string::npos || at == 0)
            return fail(Code::invalid, "genvv has the entry \"" + entry.substr(0, 80) + "\": it must be NAME=value");
    }
    return Status::ok();
}

}  // namespace

d_grain plain_grain() {
    d_grain grain{};
    wire::put_demands({}, grain);
    grain.input_fd = -1;
    return grain;
}

Result<d_grain> known_grain(const d_grain *grain) {
    if (!grain) return fail(Code::invalid, "the description of the grain is NULL");
    return known(grain, "grain", plain_grain());
}

Status fill_spec(const d_grain &g, wire::GrainSpec &spec) {
    if (!g.gargv || !g.gargv[0] || !*g.gargv[0])
        return fail(Code::invalid, "gargv[0] is missing: it is the path of the grain's executable");
    spec.demands = wire::demands_in(g);
    if (std::string wrong = wire::out_of_range(spec.demands); !wrong.empty())
        return fail(Code::invalid, std::move(wrong));
    Amounts resources = *amounts_of(spec.demands.resources);
    if (g.image && *g.image) resources.emplace(container_resource, 1);
    if (resources.size() > limits::grain_resources)
        return too_much("the number of resources, with that of the image,", resources.size(), limits::grain_resources);
    spec.demands.resources = resource_text(resources);  // one text for one meaning
    Totals used;
    if (Status s = copy_strings(g.gargv, used, spec.argv); !s) return s;
    if (Status s = copy_strings(g.genvv, used, spec.env); !s) return s;
    if (Status s = check_environment(spec.env); !s) return s;
    DCS_REQUIRE(!spec.argv.empty() && spec.argv.size() + spec.env.size() == used.items, "each string is counted once");
    if (g.input_length > limits::input_bytes)
        return too_much("the length of the input", g.input_length, limits::input_bytes);
    if (g.input_length > 0 && !g.input)
        return fail(Code::invalid, "input is NULL, but input_length is " + std::to_string(g.input_length));
    if (g.input_length > 0) spec.input.assign(static_cast<const char *>(g.input), g.input_length);
    spec.directory = text_or_empty(g.directory);
    if (spec.directory.size() > limits::path_bytes)
        return too_much("the length of directory", spec.directory.size(), limits::path_bytes);
    if (!spec.directory.empty() && spec.directory[0] != '/')
        return fail(Code::invalid, "directory is \"" + spec.directory + "\": give it as an absolute path of the host");
    spec.label = text_or_empty(g.label);
    if (spec.label.size() > limits::label_bytes)
        return too_much("the length of label", spec.label.size(), limits::label_bytes);
    return Status::ok();
}

}  // namespace dcs::client
