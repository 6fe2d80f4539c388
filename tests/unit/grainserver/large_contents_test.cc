// Contents that are written past the page cache: what a grain server keeps, places, takes and sends of them.
#include <algorithm>

#include "base/files.h"
#include "base/large_file.h"
#include "base/limits.h"
#include "contents_bench.h"

using namespace bench;
using namespace dcs;
using namespace dcs::server;

namespace {
std::string large_bytes() {
    std::string bytes(large_file_bytes + 4096 + 123, '\0');
    std::uint32_t x = 99;
    for (char &c : bytes) c = static_cast<char>((x = x * 1664525 + 1013904223) >> 24);
    return bytes;
}

// The answer to the last piece.
Input fetch(Shell &s, const std::string &bytes, const std::string &digest) {
    for (std::size_t at = 0; at < bytes.size(); at += limits::content_piece_bytes) {
        s.told.clear();
        s.contents.keep(KeepPiece{digest, bytes.size(), at, bytes.substr(at, limits::content_piece_bytes)});
        REQUIRE(s.told.size() == 1);
        if (!std::holds_alternative<PieceKept>(s.told[0])) break;
    }
    Input last = std::move(s.told.at(0));
    s.told.clear();
    return last;
}
}  // namespace

TEST_CASE("a large content is verified as it comes, and placed whole") {
    Shell s;
    const std::string bytes = large_bytes(), digest = pki::sha256_text(bytes);
    std::string other = bytes;
    other[bytes.size() / 2] ^= 1;
    const Input refused = fetch(s, other, digest);
    REQUIRE(std::holds_alternative<PieceUnkept>(refused));
    CHECK(std::get<PieceUnkept>(refused).text.find("SHA-256") != std::string::npos);
    const Input kept = fetch(s, bytes, digest);
    REQUIRE(std::holds_alternative<PieceKept>(kept));
    CHECK(std::get<PieceKept>(kept).next == bytes.size());
    s.prepare({{FileRole::data, "in", digest, bytes.size(), ""}, {FileRole::input, "", digest, bytes.size(), ""}},
              "/bin/none", "checkpoint", 70'000);
    s.place();
    CHECK(get_file(s.work() + "/in") == bytes);
    CHECK(get_file(s.room() + "/input") == "checkpoint" + bytes.substr(70'000));
}

TEST_CASE("a large output is copied with its digest, and sent in pieces, again from the beginning too") {
    Shell s;
    const std::string bytes = large_bytes();
    s.make = [&] { put_file(s.work() + "/o", bytes); };
    const OutputsKept kept = s.outputs({"o"});
    REQUIRE(kept.files.at(0).digest == pki::sha256_text(bytes));
    CHECK(kept.files[0].size == bytes.size());
    for (const std::size_t pieces : {std::size_t{6}, bytes.size() / limits::content_piece_bytes + 1}) {
        std::string sent;
        for (std::size_t i = 0; i < pieces; ++i) {
            s.contents.send(SendPiece{kept.files[0].digest, bytes.size(), i * limits::content_piece_bytes});
            s.run();
            REQUIRE(s.put.size() == 1);
            sent += s.put[0].bytes;
            s.put.clear();
            if (i == 2) s.contents.tidy();
        }
        CHECK(sent == bytes.substr(0, sent.size()));
        CHECK(sent.size() == std::min(bytes.size(), pieces * limits::content_piece_bytes));
    }
}
