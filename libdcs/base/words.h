#pragma once
// Hashes for people.
#include <string>

#include "base/ids.h"

namespace dcs {

// The first twelve bytes as six words that can be read out over the telephone, "lusab-babad-...": sixteen
// bits each, consonants and vowels by turns. Both sides of a join show them.
std::string in_words(const TokenHash &hash);

}  // namespace dcs
