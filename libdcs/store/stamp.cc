#include "store/stamp.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "base/bytes.h"
#include "base/require.h"

namespace dcs::store {
namespace {

constexpr std::string_view format_start = "dcs backing store ";
constexpr std::size_t prefix = 12, turn_digits = 20, stamp_bytes = prefix + turn_digits + 1 + 8 + 1;

// Line feeds between the copies, so that the file is readable.
std::string doubled(const std::string &text, std::size_t block) {
    DCS_REQUIRE(block > 0, "the copies lie in blocks of the disk");
    std::string file = text;
    file.resize((text.size() + block - 1) / block * block, '\n');
    return file + text;
}

std::string stamp_text(std::uint64_t turn) {
    char text[64];
    std::snprintf(text, sizeof text, "dcs applied %020llu ", static_cast<unsigned long long>(turn));
    std::string stamp = text;
    std::snprintf(text, sizeof text, "%08x\n", crc32c(stamp));
    return stamp + text;
}

bool read_stamp(std::string_view text, bool check_sums, std::uint64_t &turn) {
    if (text.size() != stamp_bytes) return false;
    (void)std::from_chars(text.data() + prefix, text.data() + prefix + turn_digits, turn);
    return !check_sums || stamp_text(turn) == text;
}

std::string_view tail_of(std::string_view file, std::size_t bytes) {
    return file.size() < bytes ? std::string_view() : file.substr(file.size() - bytes);
}

bool well_formed(std::string_view line) {
    if (line.size() <= format_start.size() || line.substr(0, format_start.size()) != format_start) return false;
    line.remove_prefix(format_start.size());
    return line.size() <= 9 && std::all_of(line.begin(), line.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::string_view first_line(std::string_view file) {
    const std::size_t end = file.find('\n');
    return end == file.npos ? std::string_view() : file.substr(0, end);
}

std::string_view last_line(std::string_view file) {
    if (file.empty() || file.back() != '\n') return {};
    file.remove_suffix(1);
    const std::size_t before = file.rfind('\n');
    return before == file.npos ? file : file.substr(before + 1);
}

}  // namespace

std::string encode_stamp(std::uint64_t turn, std::size_t block) { return doubled(stamp_text(turn), block); }
std::string encode_format(std::size_t block) { return doubled(std::string(format_text), block); }

// Two valid copies with different numbers: both were written at once, so the disk lost one of the writes and its block
// still contains an older stamp, never a newer one. So the higher number is correct.
Result<Stamp> decode_stamp(std::string_view file, bool check_sums) {
    std::uint64_t first = 0, second = 0;
    const bool first_good = read_stamp(file.substr(0, stamp_bytes), check_sums, first);
    const std::string_view tail = file.size() < 2 * stamp_bytes ? std::string_view() : tail_of(file, stamp_bytes);
    const bool second_good = read_stamp(tail, check_sums, second);
    if (!first_good && !second_good) return fail(Code::io_error, "neither copy is a stamp with a valid checksum");
    Stamp stamp{.turn = !second_good || (first_good && first > second) ? first : second};
    if (first_good && second_good && first != second) stamp.damage = "its copies differ";
    else if (!first_good) stamp.damage = "the first copy is not a stamp, or its checksum is wrong";
    else if (!second_good) stamp.damage = "the second copy is not a stamp, or its checksum is wrong";
    return stamp;
}

Format decode_format(std::string_view file) {
    const bool first = file.substr(0, format_text.size()) == format_text;
    const bool second = file.size() > format_text.size() && tail_of(file, format_text.size()) == format_text;
    if (first && second) return Format::good;
    if (first || second) return Format::one_copy;
    if (file.starts_with(older_format_text) || file.ends_with(older_format_text)) return Format::older;
    return format_line(file).empty() ? Format::damaged : Format::foreign;
}

std::string format_line(std::string_view file) {
    for (const std::string_view line : {first_line(file), last_line(file)})
        if (well_formed(line)) return std::string(line);
    return {};
}

}  // namespace dcs::store
