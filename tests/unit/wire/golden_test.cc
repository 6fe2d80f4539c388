// Bytes that release 0.1 wrote, of every kind: read to the same fields, and written by this release to the same bytes.
#include <algorithm>
#include <set>

#include "base/limits.h"
#include "golden/fields.h"
#include "golden/read.h"
#include "support/catch.h"
#include "wire/message.h"

using namespace dcs;
using namespace dcs::wire;

namespace {

template <class T> using OurField = FieldOf<T>;
using Told = golden::Told<OurField>;

template <class T> std::vector<std::string> fields_of(const T &value) {
    Told all;
    all << value;
    std::sort(all.lines.begin(), all.lines.end());
    return std::move(all.lines);
}

std::vector<std::string> sorted(std::vector<std::string> lines) {
    std::sort(lines.begin(), lines.end());
    return lines;
}

// Of the demands a Launch had three there: those that a host sees to.
bool has_told(const golden::Block &b, const std::vector<std::string> &lines) {
    const std::vector<std::string> want = sorted(b.lines);
    return b.what == "Launch" ? std::includes(lines.begin(), lines.end(), want.begin(), want.end()) : lines == want;
}

constexpr std::uint64_t request = 0x0102030405060708ull;

// What this release sets in place of what the recorder had set there.
std::string frame_of(const AnyMessage &message, std::uint16_t kind) {
    std::string frame = *encode(message, request, positional_form);
    if (opens(kind)) frame.replace(12, 8, std::string("\x08\x07\x06\x05\x04\x03\x02\x01", 8));
    return frame;
}

template <class T> void same_packed(const golden::Block &b, Result<T> (*unpack)(std::string_view)) {
    INFO(b.what << " " << b.how);
    const auto value = unpack(b.bytes);
    REQUIRE(value);
    CHECK(fields_of(*value) == sorted(b.lines));
    CHECK(pack(*value) == b.bytes);
}

}  // namespace

TEST_CASE("frames of release 0.1, of every kind") {
    std::set<std::string> seen;
    for (const golden::Block &b : golden::blocks_of("messages.txt")) {
        INFO(b.what << " " << b.how);
        const std::string_view bytes = b.bytes;
        const auto header = decode_header(bytes.substr(0, header_bytes), limits::server_frame_bytes);
        REQUIRE(header);
        CHECK(header->protocol == positional_form);
        CHECK(header->request == request);
        const auto message = decode_payload(*header, bytes.substr(header_bytes));
        REQUIRE(message);
        CHECK(kind_name(*message) == b.what);
        CHECK(has_told(b, std::visit([](const auto &m) { return fields_of(m); }, *message)));
        CHECK(frame_of(*message, header->kind) == b.bytes);
        // And by numbered fields to the same.
        const std::string tagged = encode(*message, request);
        const auto again = decode_payload(*decode_header(tagged.substr(0, header_bytes), limits::server_frame_bytes),
                                          tagged.substr(header_bytes));
        REQUIRE(again);
        CHECK(has_told(b, std::visit([](const auto &m) { return fields_of(m); }, *again)));
        seen.insert(b.what);
    }
    CHECK(seen.size() == 80);  // the kinds that it has
}

TEST_CASE("what release 0.1 stored and took fingerprints of") {
    std::size_t count = 0;
    for (const golden::Block &b : golden::blocks_of("stored.txt")) {
        ++count;
        if (b.what == "GrainSpec") same_packed<GrainSpec>(b, unpack_spec);
        else if (b.what == "GrainReport") same_packed<GrainReport>(b, unpack_report);
        else if (b.what == "ExportedSession") same_packed<ExportedSession>(b, unpack_exported_session);
        else if (b.what == "ExportedGrain") same_packed<ExportedGrain>(b, unpack_exported_grain);
        else FAIL(b.what);
    }
    CHECK(count == 19 + 3 * 3);
}
