#pragma once
// Texts for people are compared by their key words: `text == about("h1 not permitted")` if each word is in the text,
// whole and in this order.
#include <cctype>
#include <ostream>
#include <sstream>
#include <string>
#include <string_view>

struct About {
    std::string words;
};
inline About about(std::string words) { return {std::move(words)}; }

// The end of the first whole `word` of `text` from `at` on; npos if there is none.
inline std::size_t end_of_word(std::string_view text, std::string_view word, std::size_t at) {
    const auto joins = [](char a, char b) {
        return std::isalnum(static_cast<unsigned char>(a)) && std::isalnum(static_cast<unsigned char>(b));
    };
    for (at = text.find(word, at); at != std::string_view::npos; at = text.find(word, at + 1)) {
        const std::size_t end = at + word.size();
        if ((at == 0 || !joins(text[at - 1], word.front())) && (end == text.size() || !joins(word.back(), text[end])))
            return end;
    }
    return at;
}

inline bool operator==(std::string_view text, const About &key) {
    std::istringstream words(key.words);
    std::size_t at = 0;
    for (std::string word; words >> word;) {
        at = end_of_word(text, word, at);
        if (at == std::string_view::npos) return false;
    }
    return true;
}
inline std::ostream &operator<<(std::ostream &out, const About &key) { return out << "about(" << key.words << ")"; }
