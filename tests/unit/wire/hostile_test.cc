// Payloads that a party wrote who means harm: the checksum is right, the content is not.
#include <cstdlib>
#include <new>
#include <random>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "samples.h"
#include "support/about.h"
#include "support/catch.h"
#include "wire/archives.h"

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

Result<AnyMessage> decode_as(std::uint16_t kind, const std::string &payload, Form form) {
    FrameHeader h;
    h.kind = kind, h.protocol = form;
    h.length = static_cast<std::uint32_t>(payload.size());
    h.crc = crc32c(payload);
    return decode_payload(h, payload);
}

std::string payload_of(const AnyMessage &m, Form form) {
    const auto frame = encode(m, 1, form);
    REQUIRE(frame);
    return frame->substr(header_bytes);
}

std::vector<std::pair<AnyMessage, Form>> in_both_forms() {
    std::vector<std::pair<AnyMessage, Form>> all;
    for (const AnyMessage &m : samples::all()) {
        if (encode(m, 1, positional_form)) all.emplace_back(m, positional_form);
        if (!opens(kind_of(m))) all.emplace_back(m, newest_form);
    }
    return all;
}

}  // namespace

TEST_CASE("counts of 4 GiB allocate nothing") {
    // Wherever a message has four bytes in a row, claim the most that they can claim.
    for (const auto &[m, form] : in_both_forms()) {
        const std::string good = payload_of(m, form);
        for (std::size_t at = 0; at + 4 <= good.size(); ++at)
            for (const unsigned char top : {0xffu, 0x7fu, 0x01u}) {
                std::string bad = good;
                bad[at] = bad[at + 1] = bad[at + 2] = '\xff';
                bad[at + 3] = static_cast<char>(top);
                largest_allocation = 0;
                (void)decode_as(kind_of(m), bad, form);
                INFO(kind_name(m) << " at " << at);
                REQUIRE(largest_allocation < 32 * good.size() + 8192);
            }
    }
}

TEST_CASE("a vector may not claim more elements than there are bytes") {
    ByteWriter w;
    w.u16(opening_form);
    for (int i = 0; i < 3; ++i) w.u32(0);  // host, binary_class, boot_id
    w.u64(1);
    w.u32(1000);  // 1000 held grains of at least 24 bytes each
    w.raw(std::string(999 * 24 + 23, '\0'));
    largest_allocation = 0;
    auto r = decode_as(19, w.bytes(), positional_form);
    REQUIRE(!r);
    CHECK(r.status().text.find("FirstCall: field ") == 0);
    CHECK(largest_allocation < 32 * w.size());
    w.u8(0);
    w.u32(0);  // confinement
    CHECK(decode_as(19, w.bytes(), positional_form));
}

TEST_CASE("the name of the bad field is told") {
    ByteWriter w;
    w.u32(3), w.u32(17), w.u32(1), w.u32(0xffffffff);  // argv[0] of 4 GiB
    auto r = decode_as(9, w.bytes(), positional_form);
    REQUIRE(!r);
    CHECK(r.status().text == about("Gexec 4294967295 elements"));
}

TEST_CASE("a spoilt reader gives nothing more") {
    ByteWriter w;
    w.u32(7), w.u32(100), w.raw("short");
    Reader reader(w.bytes(), positional_form);
    std::int32_t a = -1, c = -1;
    std::string b = "before";
    reader &a &b &c;
    CHECK(!reader.good());
    CHECK(a == 7);
    CHECK(b.empty());
    CHECK(c == 0);
    CHECK(!reader.status());
}

TEST_CASE("100000 mutated payloads") {
    std::mt19937 random(20260101);
    std::vector<std::string> seeds;
    const auto all = in_both_forms();
    for (const auto &[m, form] : all) seeds.push_back(payload_of(m, form));
    std::size_t taken = 0, refused = 0;
    for (int i = 0; i < 100000; ++i) {
        const std::size_t seed = random() % seeds.size();
        const Form form = all[seed].second;
        std::string bytes = seeds[random() % 8 == 0 ? random() % seeds.size() : seed];
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
        auto r = decode_as(kind_of(all[seed].first), bytes, form);
        if (!r) {
            ++refused;
            continue;
        }
        ++taken;
        const std::string again = payload_of(*r, form);
        if (form == positional_form) REQUIRE(again == bytes);  // whatever is taken has exactly one encoding
        const auto same = decode_as(kind_of(all[seed].first), again, form);
        REQUIRE(same);
        REQUIRE(payload_of(*same, form) == again);
    }
    CHECK(taken > 1000);
    CHECK(refused > 1000);
}

TEST_CASE("elements of one byte each take no more memory than their bytes allow") {
    ByteWriter w;
    put_tag(w, 4, FieldKind::list);  // QueryReply.grains
    w.u8(static_cast<std::uint8_t>(FieldKind::fields));
    w.var(1u << 20);
    w.raw(std::string(1u << 20, '\0'));
    end_fields(w);
    largest_allocation = 0;
    CHECK(!decode_as(17, w.bytes(), newest_form));
    CHECK(largest_allocation < 4096);
}
