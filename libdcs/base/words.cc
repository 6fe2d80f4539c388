#include "base/words.h"

namespace dcs {

std::string in_words(const TokenHash &hash) {
    // Sixteen bits a word: consonant, vowel, consonant, vowel, consonant.
    constexpr char consonants[] = "bdfghjklmnprstvz", vowels[] = "aiou";
    std::string words;
    for (std::size_t at = 0; at < 12; at += 2) {
        const unsigned bits = static_cast<unsigned>(hash[at]) << 8 | hash[at + 1];
        if (at > 0) words += '-';
        words += consonants[bits >> 12];
        words += vowels[bits >> 10 & 3];
        words += consonants[bits >> 6 & 15];
        words += vowels[bits >> 4 & 3];
        words += consonants[bits & 15];
    }
    return words;
}

}  // namespace dcs
