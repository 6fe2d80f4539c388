#include "colour.h"

#include <cstdlib>
#include <unistd.h>

namespace dcs::commands {
namespace {

enum class When { automatic, always, never } when = When::automatic;

struct Colour {
    const char *words, *code;
};
constexpr Colour colours[] = {{"|running|active|up|ok|", "32"},
                              {"|ready|starting|delinquent|unknown|", "33"},
                              {"|failed|killed|dead|down|damaged|", "31"}};

std::string set_in_environment(const char *name) {
    const char *value = std::getenv(name);
    return value == nullptr ? "" : value;
}

}  // namespace

void set_colour(std::string_view word) {
    when = word == "always" ? When::always : word == "never" ? When::never : When::automatic;
}

bool has_colour() {
    if (when != When::automatic) return when == When::always;
    const std::string terminal = set_in_environment("TERM");
    return set_in_environment("NO_COLOR").empty() && !terminal.empty() && terminal != "dumb" &&
           ::isatty(STDOUT_FILENO) == 1;
}

std::string coloured(std::string_view word, const std::string &text) {
    const std::string key = "|" + std::string(word.substr(0, word.find_first_of(", "))) + "|";
    for (const Colour &colour : colours)
        if (std::string_view(colour.words).find(key) != std::string_view::npos)
            return "\033[" + std::string(colour.code) + "m" + text + "\033[0m";
    return text;
}

}  // namespace dcs::commands
