#include "grainserver/core/checkpoint_file.h"

#include <array>
#include <charconv>

namespace dcs::server {
namespace {
constexpr std::array<std::uint32_t, 256> make_table() {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t i = 0; i < 256; ++i) {
        std::uint32_t c = i;
        for (int k = 0; k < 8; ++k) c = (c & 1) != 0 ? 0xEDB88320u ^ (c >> 1) : c >> 1;
        table[i] = c;
    }
    return table;
}
constexpr std::array<std::uint32_t, 256> crc_table = make_table();

constexpr std::string_view first_line = "dcs-checkpoint 1\n";
constexpr std::string_view trailer_word = "dcs-end ";
constexpr std::size_t trailer_max = 64;  // word, 20 digits, checksum and newline, with reserve

Status broken(const char *why) { return fail(Code::invalid, std::string("checkpoint: ") + why); }

template <class T> bool number(std::string_view &text, T &value, int base = 10) {
    const char *end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value, base);
    if (error != std::errc{} || stop == text.data()) return false;
    text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
    return true;
}
bool literal(std::string_view &text, std::string_view what) {
    if (text.substr(0, what.size()) != what) return false;
    text.remove_prefix(what.size());
    return true;
}

struct Header {
    int offsets = 0, usages = 0, messages = 0;  // number of occurrences
    std::uint64_t message_length = 0;
};

// Parses a "name value" line; unknown names are skipped.
bool header_line(std::string_view line, Header &header, Checkpoint &found) {
    if (literal(line, "input_offset ")) {
        ++header.offsets;
        return number(line, found.input_offset) && line.empty();
    }
    if (literal(line, "usage_us ")) {
        ++header.usages;
        return number(line, found.user_us) && literal(line, " ") && number(line, found.system_us) && line.empty() &&
               found.user_us >= 0 && found.system_us >= 0;
    }
    if (literal(line, "message ")) {
        ++header.messages;
        return number(line, header.message_length) && line.empty();
    }
    return true;
}

bool checksum_text(std::string_view text, std::uint32_t &value) {
    for (const char c : text)
        if (!((c >= '0' && c <= '9') || (c >= 'A' && c <= 'F'))) return false;
    return text.size() == 8 && number(text, value, 16) && text.empty();
}
}  // namespace

std::uint32_t crc32_ieee(std::string_view bytes) {
    std::uint32_t c = 0xFFFFFFFFu;
    for (const char b : bytes) c = crc_table[(c ^ static_cast<unsigned char>(b)) & 0xFF] ^ (c >> 8);
    return c ^ 0xFFFFFFFFu;
}

Result<Checkpoint> parse_checkpoint(std::string_view bytes, std::uint64_t input_size) {
    Checkpoint found;
    Header header;
    std::string_view rest = bytes;
    if (!literal(rest, first_line)) return broken("the first line is not `dcs-checkpoint 1`");
    for (;;) {
        const std::size_t end = rest.find('\n');
        if (end == std::string_view::npos) return broken("the header has no end");
        const std::string_view line = rest.substr(0, end);
        rest.remove_prefix(end + 1);
        if (line.empty()) break;
        if (!header_line(line, header, found)) return broken("a header line is malformed");
    }
    if (header.offsets != 1 || header.usages != 1 || header.messages != 1)
        return broken("a header line is missing or occurs twice");
    if (found.input_offset > input_size) return broken("input_offset is beyond the end of the input");
    if (header.message_length >= rest.size() || rest[header.message_length] != '\n')
        return broken("the message has another length");
    found.message = rest.substr(0, header.message_length);
    rest.remove_prefix(header.message_length + 1);

    const std::size_t window = rest.size() > trailer_max ? rest.size() - trailer_max : 0;
    const std::size_t at = rest.substr(window).rfind(trailer_word);
    if (at == std::string_view::npos) return broken("no trailer");
    std::string_view trailer = rest.substr(window + at + trailer_word.size());
    std::uint64_t length = 0;
    std::uint32_t sum = 0;
    if (trailer.find('\n') == std::string_view::npos) return broken("no newline ends the trailer, its last line");
    if (!number(trailer, length) || !literal(trailer, " ") || trailer.size() != 9 || trailer[8] != '\n' ||
        !checksum_text(trailer.substr(0, 8), sum))
        return broken("the trailer is malformed");
    found.state = rest.substr(0, window + at);
    if (found.state.size() != length) return broken("the state text has another length");
    if (crc32_ieee(found.state) != sum) return broken("the state text has another checksum");
    return found;
}

Normalised normalise(std::uint64_t input_offset, std::uint64_t checkpoint_length, std::uint64_t input_base) {
    if (input_offset >= checkpoint_length) return {input_base + (input_offset - checkpoint_length), checkpoint_length};
    return {input_base, input_offset};
}

}  // namespace dcs::server
