// Payloads that somebody wrote who means harm: the checksum is right, the content is not.
#include <cstdlib>
#include <new>
#include <random>

#include "base/bytes.h"
#include "base/checksum.h"
#include "samples.h"
#include "support/catch.h"
#include "wire/reader.h"

using namespace dcs;
using namespace dcs::wire;

namespace {
// Largest single allocation since the counter was reset.
std::size_t largest_allocation = 0;
}  // namespace

void *operator new(std::size_t n) {
    if (n > largest_allocation) largest_allocation = n;
    if (void *p = std::malloc(n)) return p;
    throw std::bad_alloc();
}
void *operator new(std::size_t n, const std::nothrow_t &) noexcept {
    if (n > largest_allocation) largest_allocation = n;
    return std::malloc(n);
}
// malloc and free are the pair here, which the compiler does not see where it inlines only one of the two.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
void operator delete(void *p) noexcept { std::free(p); }
void operator delete(void *p, const std::nothrow_t &) noexcept { std::free(p); }
void operator delete(void *p, std::size_t) noexcept { std::free(p); }

namespace {

Result<AnyMessage> decode_as(std::uint16_t kind, const std::string &payload) {
    FrameHeader h;
    h.kind = kind, h.protocol = protocol_version;
    h.length = static_cast<std::uint32_t>(payload.size());
    h.crc = crc32c(payload);
    return decode_payload(h, payload);
}

}  // namespace

TEST_CASE("counts of 4 GiB allocate nothing") {
    // Wherever a message has four bytes in a row, claim the most that they can claim.
    for (const AnyMessage &m : samples::all()) {
        const std::string good = encode(m, 1).substr(header_bytes);
        for (std::size_t at = 0; at + 4 <= good.size(); ++at)
            for (const unsigned char top : {0xffu, 0x7fu, 0x01u}) {
                std::string bad = good;
                bad[at] = bad[at + 1] = bad[at + 2] = '\xff';
                bad[at + 3] = static_cast<char>(top);
                largest_allocation = 0;
                (void)decode_as(kind_of(m), bad);
                INFO(kind_name(m) << " at " << at);
                REQUIRE(largest_allocation < 16 * good.size() + 4096);
            }
    }
}

TEST_CASE("a vector may not claim more elements than there are bytes") {
    ByteWriter w;
    w.u16(protocol_version);
    for (int i = 0; i < 3; ++i) w.u32(0);  // host, binary_class, boot_id
    w.u64(1);
    w.u32(1000);  // 1000 held grains of at least 24 bytes each
    w.raw(std::string(999 * 24 + 23, '\0'));
    largest_allocation = 0;
    auto r = decode_as(19, w.bytes());
    REQUIRE(!r);
    CHECK(r.status().text.find("held") != std::string::npos);
    CHECK(largest_allocation < 4096);
    w.u8(0);
    w.u32(0);  // confinement
    CHECK(decode_as(19, w.bytes()));
}

TEST_CASE("the name of the bad field is told") {
    ByteWriter w;
    w.u32(3), w.u32(17), w.u32(1), w.u32(0xffffffff);  // argv[0] of 4 GiB
    auto r = decode_as(9, w.bytes());
    REQUIRE(!r);
    CHECK(r.status().text.find("Gexec: field argv: claims 4294967295 elements") == 0);
}

TEST_CASE("a spoilt reader gives nothing more") {
    ByteWriter w;
    w.u32(7), w.u32(100), w.raw("short");
    Reader reader(w.bytes());
    std::int32_t a = -1, c = -1;
    std::string b = "before";
    reader & a & b & c;
    CHECK(!reader.good());
    CHECK(a == 7);
    CHECK(b.empty());
    CHECK(c == 0);
    CHECK(!reader.status());
}

TEST_CASE("100000 mutated payloads") {
    std::mt19937 random(20260101);
    std::vector<std::string> seeds;
    std::vector<std::uint16_t> kinds;
    for (const AnyMessage &m : samples::all()) {
        seeds.push_back(encode(m, 1).substr(header_bytes));
        kinds.push_back(kind_of(m));
    }
    std::size_t taken = 0, refused = 0;
    for (int i = 0; i < 100000; ++i) {
        const auto kind = static_cast<std::uint16_t>(random() % seeds.size());
        std::string bytes = seeds[random() % 8 == 0 ? random() % seeds.size() : kind];
        for (unsigned n = 1 + random() % 4; n > 0 && !bytes.empty(); --n) {
            const std::size_t at = random() % bytes.size();
            switch (random() % 5) {
            case 0: bytes[at] = static_cast<char>(random()); break;
            case 1: bytes[at] = static_cast<char>(bytes[at] ^ (1 << (random() % 8))); break;
            case 2: bytes.erase(at, random() % 9); break;
            case 3: bytes.insert(at, std::string(random() % 9, static_cast<char>(random()))); break;
            case 4: bytes.resize(at); break;
            }
        }
        auto r = decode_as(kinds[kind], bytes);
        if (!r) {
            ++refused;
            continue;
        }
        ++taken;  // whatever is taken has exactly one encoding: these bytes
        REQUIRE(encode(*r, 1).substr(header_bytes) == bytes);
    }
    CHECK(taken > 1000);
    CHECK(refused > 1000);
}
