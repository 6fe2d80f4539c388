#include "plan.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/text.h"
#include "commands/dcs/frame/failure.h"
#include "pki/digest.h"

namespace dcs::commands {
namespace {

constexpr char prefix[] = "map-";
constexpr std::size_t digest_bytes = 12;  // 96 bits: no two of a user's maps ever meet by chance
// With settings so many digits are of words and inputs; the other 40 bits tell the maps of a sweep apart.
constexpr std::size_t word_digits = 14;

void add_words(ByteWriter &writer, const std::vector<std::string> &words, std::size_t most = SIZE_MAX) {
    const std::size_t count = std::min(words.size(), most);
    writer.u64(count);
    for (std::size_t i = 0; i < count; ++i) {
        writer.u64(words[i].size());
        writer.raw(words[i]);
    }
}

}  // namespace

Result<std::vector<std::string>> split_inputs(std::string_view text, char separator) {
    std::vector<std::string> inputs;
    while (!text.empty()) {
        const std::size_t end = text.find(separator);
        const std::string_view input = text.substr(0, end);
        if (input.find('\0') != std::string_view::npos)
            return fail(Code::invalid, "line " + std::to_string(inputs.size() + 1) +
                                           " of the input holds a NUL byte, which no argument can");
        inputs.emplace_back(input);
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
    return inputs;
}

std::string ident_of(const MapPlan &plan, std::size_t inputs) {
    ByteWriter writer;
    writer.raw("dcs map 1");
    add_words(writer, plan.command);
    add_words(writer, {plan.directory});
    if (plan.spread) writer.raw("spread");
    add_words(writer, plan.inputs, inputs);
    std::string digits = hex_of(pki::sha256_text(writer.bytes()).substr(0, digest_bytes));
    if (!plan.settings.empty()) {
        ByteWriter settings;
        add_words(settings, plan.settings);
        digits.replace(word_digits, std::string::npos, hex_of(pki::sha256_text(settings.bytes())), 0,
                       digits.size() - word_digits);
    }
    return prefix + digits;
}

std::string ident_of_run(const std::string &base, const std::string &fingerprint, const std::string &suffix) {
    return base + "." + fingerprint + "-" + suffix;
}

// Sessions of earlier releases have no fingerprint, and a suffix only where --new was said.
bool is_run_of(const std::string &ident, const std::string &base) {
    return ident == base || ident.rfind(base + "-", 0) == 0 || ident.rfind(base + ".", 0) == 0;
}

bool has_words_of(const std::string &ident, const std::string &base) {
    const std::size_t length = sizeof prefix - 1 + word_digits;
    return ident.compare(0, length, base, 0, length) == 0;
}

std::string fingerprint_in(const std::string &ident, const std::string &base) {
    if (ident.rfind(base + ".", 0) != 0) return "";
    const std::size_t at = base.size() + 1, end = ident.find('-', at);
    return end == std::string::npos ? "" : ident.substr(at, end - at);
}

int exit_for_failed(std::int64_t failed) { return failed > 100 ? exits::map_many : static_cast<int>(failed); }

}  // namespace dcs::commands
