#pragma once
// What a fuzz target is: a function that takes bytes from anywhere, and the inputs it begins with, made by
// code from what the programs write. driver.cc makes a libFuzzer program of it.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace dcs::fuzz {

struct Seed {
    std::string name, bytes;
};

// Each target defines these two.
void run(std::string_view bytes);
std::vector<Seed> seeds();
// One may also define what it does for `PROGRAM --each N`.
[[gnu::weak]] void each(std::uint64_t times);

// What must hold whatever the bytes were; the fuzzer keeps the input if not.
inline void expect(bool good, const char *what) {
    if (good) return;
    std::fprintf(stderr, "fuzz: expected: %s\n", what);
    std::abort();
}
inline void expect(bool good, const std::string &what) { expect(good, what.c_str()); }

// Takes choices off the front of an input; zeros and nothing at its end.
class Choices {
public:
    explicit Choices(std::string_view bytes) : rest_(bytes) {}
    bool empty() const { return rest_.empty(); }
    std::uint8_t byte() {
        if (rest_.empty()) return 0;
        const auto value = static_cast<std::uint8_t>(rest_[0]);
        rest_.remove_prefix(1);
        return value;
    }
    std::uint32_t number() {
        const std::uint32_t low = byte();
        return low | std::uint32_t{byte()} << 8;
    }
    std::string_view text(std::size_t length) {
        const std::string_view piece = rest_.substr(0, length);
        rest_.remove_prefix(piece.size());
        return piece;
    }
    // A piece with its length in front of it; see piece_of().
    std::string_view piece() { return text(number()); }
    std::string_view rest() const { return rest_; }

private:
    std::string_view rest_;
};

// The opposite of Choices::piece(), for seeds.
inline std::string piece_of(std::string_view bytes) {
    const std::size_t length = bytes.size() < 0xffff ? bytes.size() : 0xffff;
    std::string piece{static_cast<char>(length & 0xff), static_cast<char>(length >> 8)};
    return piece.append(bytes.substr(0, length));
}

}  // namespace dcs::fuzz
