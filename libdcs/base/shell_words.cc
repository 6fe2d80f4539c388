#include "base/shell_words.h"

namespace dcs {

std::string shell_word(const std::string &word) {
    if (word == "{}") return word;
    const char *plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
    if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
    if (word.find_first_of("\n\t\r") != std::string::npos) {  // a line of the log stays a line, and has its columns
        std::string r = "$'";
        for (const char c : word) {
            if (c == '\'' || c == '\\') r += '\\';
            r += c == '\n' ? "\\n" : c == '\t' ? "\\t" : c == '\r' ? "\\r" : std::string(1, c);
        }
        return r + "'";
    }
    std::string r = "'";
    for (const char c : word) r += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return r + "'";
}

std::string shell_line(const std::vector<std::string> &words) {
    std::string line;
    for (const std::string &word : words) line += (line.empty() ? "" : " ") + shell_word(word);
    return line;
}

}  // namespace dcs
