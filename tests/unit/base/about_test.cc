// The comparison of texts for people by their key words.
#include "support/about.h"

#include "support/catch.h"

TEST_CASE("key words are whole, all of them, and in their order") {
    const std::string text = "grains:2: \"queue\" is 7, like that of grain 2 (line 2): another one";
    CHECK(text == about("grains:2: \"queue\" 7 line"));
    CHECK(text == about("\"queue\" 7 grain 2 2"));
    CHECK(text == about(""));
    CHECK_FALSE(text == about("7 \"queue\""));
    CHECK_FALSE(text == about("rain"));
    CHECK_FALSE(text == about("not"));
    CHECK_FALSE(text == about("7 7"));
    CHECK_FALSE(std::string() == about("7"));
}
