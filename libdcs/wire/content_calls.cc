#include "wire/content_calls.h"

#include "base/text.h"

namespace dcs::wire {

const char *name_of(FileRole role) {
    constexpr const char *names[] = {"data", "executable", "program", "input", "output", "image"};
    static_assert(std::size(names) == static_cast<std::size_t>(last_of(FileRole())) + 1);
    return role <= last_of(role) ? names[static_cast<std::size_t>(role)] : "?";
}

std::string digest_text(const std::string &digest) { return "sha256:" + hex_of(digest); }

std::string to_text(const GrainFile &file) {
    std::string text = name_of(file.role);
    if (!file.name.empty()) text += " " + file.name;
    if (!file.digest.empty()) text += " " + digest_text(file.digest) + " (" + std::to_string(file.size) + " bytes)";
    if (!file.binary_class.empty()) text += " for " + file.binary_class;
    return text;
}

}  // namespace dcs::wire
