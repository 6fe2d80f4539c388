// Bytes as text and back.
#include <catch2/catch.hpp>

#include "base/text.h"

using namespace dcs;

TEST_CASE("hexadecimal goes both ways, in lower case only") {
    CHECK(hex_of(std::string("\x00\xab\xff", 3)) == "00abff");
    CHECK(bytes_of_hex("00abff") == std::string("\x00\xab\xff", 3));
    CHECK(bytes_of_hex("00abff", 3).has_value());
    CHECK_FALSE(bytes_of_hex("00abff", 2));
    for (const char *wrong : {"", "0", "0g", "AB", "0x", " 1", "-1"}) CHECK_FALSE(bytes_of_hex(wrong));
    CHECK(hex_of_number(0) == "0000000000000000");
    CHECK(hex_of_number(0xfedcba9876543210) == "fedcba9876543210");
}

TEST_CASE("UTF-8: characters by their shortest form, no halves of pairs, nothing above U+10FFFF") {
    struct {
        const char *text;
        std::size_t length;
        char32_t value;
    } const good[] = {{"a", 1, 'a'},
                      {"\xc2\x80", 2, 0x80},
                      {"\xdf\xbf!", 2, 0x7ff},
                      {"\xe0\xa0\x80", 3, 0x800},
                      {"\xed\x9f\xbf", 3, 0xd7ff},
                      {"\xee\x80\x80", 3, 0xe000},
                      {"\xf0\x90\x80\x80", 4, 0x10000},
                      {"\xf4\x8f\xbf\xbf", 4, 0x10ffff}};
    for (const auto &row : good) {
        char32_t value = 0;
        INFO(row.text);
        CHECK(utf8_character(row.text, &value) == row.length);
        CHECK(value == row.value);
    }
    for (const char *wrong : {"", "\x80", "\xc0\x80", "\xc1\xbf", "\xc3", "\xc3(", "\xe0\x9f\xbf", "\xe2\x82",
                              "\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff"}) {
        INFO(hex_of(wrong));
        CHECK(utf8_character(wrong) == 0);
    }
    CHECK(valid_utf8(""));
    CHECK(
        valid_utf8("Stra\xc3\x9f"
                   "e"));
    CHECK_FALSE(
        valid_utf8("Stra\xdf"
                   "e"));
}

TEST_CASE("names: what is not plain is %XX, and only one text decodes to a name") {
    CHECK(percent_encoded("a/b c.d%\xff", "._") == "a%2Fb%20c.d%25%FF");
    CHECK(percent_decoded("a%2Fb%20c.d%25%FF", "._") == "a/b c.d%\xff");
    CHECK(percent_decoded("", "") == "");
    for (const char *wrong : {"%41", "%2f", "%", "%2", "a b", "a/b", "%2G", "%5F"}) {
        INFO(wrong);
        CHECK_FALSE(percent_decoded(wrong, "_"));
    }
    for (int c = 0; c < 256; ++c) {
        const std::string name(1, static_cast<char>(c));
        CHECK(percent_decoded(percent_encoded(name, "_-"), "_-") == name);
    }
}

TEST_CASE("lines, words and whole numbers of a text") {
    std::string_view text = "one\n\ntwo three\t four\r";
    CHECK(take_line(text) == "one");
    CHECK(take_line(text).empty());
    CHECK(words_of(text) == std::vector<std::string_view>{"two", "three", "four"});
    CHECK(take_line(text) == "two three\t four\r");
    CHECK(text.empty());
    CHECK(take_line(text).empty());
    CHECK(words_of(",a,,b,", ",") == std::vector<std::string_view>{"a", "b"});
    CHECK(words_of(" \t").empty());
    const std::vector<std::string> argv = {"a", ""};
    const std::vector<char *> pointers = pointers_to(argv);
    REQUIRE(pointers.size() == 3);
    CHECK(pointers[0] == argv[0].c_str());
    CHECK(pointers[1] == argv[1].c_str());
    CHECK(pointers[2] == nullptr);
    std::int32_t number = 7;
    for (const char *wrong : {"", "x", "1x", " 1", "+1", "2147483648", "1.5"}) {
        CAPTURE(wrong);
        CHECK_FALSE(read_number(wrong, number));
        CHECK(number == 7);
    }
    CHECK(read_number("-2147483648", number));
    CHECK(number == INT32_MIN);
    CHECK(read_number("ff", number, 16));
    CHECK(number == 255);
}

TEST_CASE("names are of harmless characters and do not begin like an option or a hidden file") {
    for (const char *name : {"a", "A-9", "_x", "0", "a.b_c-d"}) CHECK(is_name(name));
    for (const char *name : {"", ".a", "-a", "a b", "a/b", "\xc3\xa4", "a\n"}) CHECK_FALSE(is_name(name));
    CHECK(is_name(std::string(64, 'n')));
    CHECK_FALSE(is_name(std::string(65, 'n')));
    CHECK_FALSE(is_name("abc", 2));
}
