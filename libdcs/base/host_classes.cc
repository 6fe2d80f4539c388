#include "base/host_classes.h"

#include <algorithm>
#include <cstdio>

#include "base/option_table.h"

namespace dcs {
namespace {

Status unknown_class(std::string_view word, const HostClasses &known) {
    std::vector<std::string> names;
    for (const HostClass &c : known) names.push_back(c.name);
    const std::string meant = nearest(word, names);
    return fail(Code::not_found,
                "there is no host class " + std::string(word) + (meant.empty() ? "" : "; did you mean " + meant + "?"));
}

}  // namespace

Result<std::uint32_t> mask_of(std::string_view words, const HostClasses &known) {
    std::uint32_t mask = 0;
    for (const std::string &word : split(words, ',')) {
        const auto named = std::find_if(known.begin(), known.end(), [&](const HostClass &c) { return c.name == word; });
        const auto number = class_of(word);
        if (named != known.end()) mask |= named->mask;
        else if (number) mask |= *number;
        else if (is_class_name(word)) return unknown_class(word, known);
        else return fail(Code::invalid, "`" + word + "` is neither a name nor a mask of host classes");
    }
    return mask;
}

std::string class_names(std::uint32_t mask, const HostClasses &known) {
    std::uint32_t left = mask;
    std::string names;
    for (const HostClass &c : known) {
        if (c.mask == mask && mask != 0) return c.name;
        if ((c.mask & ~mask) != 0 || (c.mask & left) == 0) continue;
        names += (names.empty() ? "" : ",") + c.name;
        left &= ~c.mask;
    }
    if (names.empty() || left == 0) return names;
    char rest[16];
    std::snprintf(rest, sizeof rest, ",0x%x", left);
    return names + rest;
}

}  // namespace dcs
