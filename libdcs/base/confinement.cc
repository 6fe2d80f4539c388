#include "base/confinement.h"

#include "base/option_table.h"

namespace dcs {
namespace {
constexpr struct {
    Rungs rung;
    std::string_view word;
} names[] = {
    {rung_accounts, "accounts"}, {rung_filter, "filter"},         {rung_scope, "scope"},
    {rung_files, "files"},       {rung_namespaces, "namespaces"}, {rung_no_network, "no_network"},
};
constexpr std::string_view none = "limits";

Rungs rung_of(std::string_view word) {
    for (const auto &name : names)
        if (name.word == word) return name.rung;
    return 0;
}
}  // namespace

std::string to_words(Rungs rungs) {
    std::string words;
    for (const auto &name : names)
        if (rungs & name.rung) words += (words.empty() ? "" : ",") + std::string(name.word);
    return words.empty() ? std::string(none) : words;
}

Result<Rungs> rungs_of(std::string_view words) {
    if (words == none) return Rungs{0};
    Rungs rungs = 0;
    for (const std::string &word : split(words, ',')) {
        const Rungs rung = rung_of(word);
        if (rung == 0)
            return fail(Code::invalid,
                        "`" + word + "` is not a kind of confinement; the kinds are " + to_words(all_rungs));
        if (rungs & rung) return fail(Code::invalid, "`" + word + "` occurs twice");
        rungs |= rung;
    }
    return rungs;
}

}  // namespace dcs
