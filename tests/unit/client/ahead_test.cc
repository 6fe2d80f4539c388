// Pieces of files, of which some are on their way at a time.
#include <fstream>

#include <unistd.h>

#include "base/limits.h"
#include "c_calls.h"
#include "support/about.h"

using namespace dcs;
using namespace dcs::test;

namespace {

constexpr std::size_t piece_bytes = limits::content_piece_bytes;

std::string letters(std::size_t size) {
    std::string bytes(size, '\0');
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>('a' + (i * 7 + i / 1000) % 26);
    return bytes;
}

// A session, and a file that the scheduler lacks until all of it was brought.
struct FileBench {
    FakeScheduler fake;
    const std::string path = fake.dir() + "-file", bytes = letters(5 * piece_bytes + 10);
    bool here = false;

    FileBench() {
        get_auth();
        REQUIRE(d_open_ses(1) == NO_ERROR);
        std::ofstream(path, std::ios::binary) << bytes;
    }
    ~FileBench() { ::unlink(path.c_str()); }

    Act usual(const wire::AnyMessage &m) {
        Act a = as_usual(m);
        if (is<wire::Gexec>(m) && !here) a.reply = wire::ErrorReply{D_E_NOT_FOUND, "bring them"};
        if (const auto *ask = std::get_if<wire::AskContents>(&m)) a.reply = wire::MissingContents{ask->digests};
        if (const auto *piece = std::get_if<wire::PutContent>(&m))
            here = piece->offset + piece->bytes.size() == piece->total;
        return a;
    }
    int submit() const {
        d_grain g;
        d_grain_init(&g);
        g.gargv = words;
        const d_file file = file_of("name", path.c_str());
        g.files = &file;
        g.file_count = 1;
        return d_gexec_grain(1, 1, &g);
    }
    // The answer to the request before this one, and then to this one.
    std::string both(const wire::AnyMessage &earlier, const wire::AnyMessage &reply) const {
        const auto seen = fake.seen();
        return *wire::encode(earlier, seen[seen.size() - 2].request, wire::newest_form) +
               *wire::encode(reply, seen.back().request, wire::newest_form);
    }
    std::string brought() const {
        std::string all;
        for (const auto &[id, piece] : fake.all<wire::PutContent>()) {
            if (piece.offset == 0) all.clear();
            if (piece.offset == all.size()) all += piece.bytes;
        }
        return all;
    }
};

std::uint64_t offset_of(const wire::AnyMessage &m) {
    if (const auto *put = std::get_if<wire::PutContent>(&m)) return put->offset;
    const auto *fetch = std::get_if<wire::Fetch>(&m);
    return fetch ? fetch->offset : UINT64_MAX;
}

}  // namespace

TEST_CASE("a piece of a file leaves before the answer to the one before it") {
    FileBench b;
    b.fake.script([&](const wire::AnyMessage &m, int) {
        Act a = b.usual(m);
        a.park = offset_of(m) == piece_bytes;
        if (offset_of(m) == 2 * piece_bytes) a.raw = b.both(wire::Done{}, wire::Done{});
        return a;
    });
    CHECK(b.submit() == NO_ERROR);
    CHECK(b.brought() == b.bytes);
    CHECK(b.fake.all<wire::PutContent>().size() == 6);
}

TEST_CASE("a file begins again when the connection ends between its pieces") {
    FileBench b;
    int cut = 0;
    b.fake.script([&](const wire::AnyMessage &m, int) {
        Act a = b.usual(m);
        a.cut_before = offset_of(m) == 3 * piece_bytes && ++cut == 1;
        return a;
    });
    CHECK(b.submit() == NO_ERROR);
    CHECK(b.brought() == b.bytes);
    CHECK(cut == 2);
}

TEST_CASE("a scheduler that takes no pieces ahead gets one at a time") {
    FileBench b;
    int refused = 0;
    b.fake.script([&](const wire::AnyMessage &m, int) {
        Act a = b.usual(m);
        if (offset_of(m) == 2 * piece_bytes && refused++ == 0) a.reply = wire::ErrorReply{D_E_LIMIT, "too many"};
        // Alone: the next one is not there before the answer.
        if (offset_of(m) == 2 * piece_bytes) a.delay_ms = 50;
        return a;
    });
    CHECK(b.submit() == NO_ERROR);
    CHECK(b.brought() == b.bytes);
    CHECK(refused == 2);
    b.here = false;
    b.fake.script([&](const wire::AnyMessage &m, int) {
        Act a = b.usual(m);
        if (offset_of(m) == piece_bytes) a.reply = wire::ErrorReply{D_E_LIMIT, "too many"};
        return a;
    });
    CHECK(b.submit() == D_E_LIMIT);
}

TEST_CASE("a refused piece fails the call after all answers, and the connection serves on") {
    FileBench b;
    b.fake.script([&](const wire::AnyMessage &m, int) {
        Act a = b.usual(m);
        if (offset_of(m) == piece_bytes) a.reply = wire::ErrorReply{D_E_NO_SPACE, "the disk is full"};
        return a;
    });
    const int connections = b.fake.connections();
    CHECK(b.submit() == D_E_NO_SPACE);
    CHECK(std::string(d_errortext()) == about("disk full"));
    CHECK(d_close_ses(1) == NO_ERROR);
    CHECK(b.fake.connections() == connections);
}

TEST_CASE("pieces of a stream are asked for before the one before them has come") {
    FileBench b;
    const auto piece_at = [&](std::uint64_t offset, std::size_t size) {
        return wire::Piece{b.bytes.size(), b.bytes.substr(offset, size)};
    };
    const std::size_t size = GENERATE(false, true) ? piece_bytes : piece_bytes / 2 + 1;  // a scheduler may send less
    const bool cut = GENERATE(false, true);
    int cuts = 0, parked = 0;
    b.fake.script([&](const wire::AnyMessage &m, int) {
        Act a = b.usual(m);
        const std::uint64_t offset = offset_of(m);
        if (offset == UINT64_MAX) return a;
        a.reply = piece_at(offset, size);
        a.cut_before = cut && offset > 3 * piece_bytes && ++cuts == 1;
        // Once: after a cut, answers that were sent may be lost with the connection.
        if (size != piece_bytes || parked == 2) return a;
        a.park = offset == piece_bytes && parked++ == 0;
        if (offset == 2 * piece_bytes && parked++ == 1) a.raw = b.both(piece_at(piece_bytes, size), a.reply);
        return a;
    });
    std::FILE *file = nullptr;
    REQUIRE(d_grain_stream(nullptr, 1, 1, "out", &file) == NO_ERROR);
    std::string got(b.bytes.size() + 1, '\0');
    got.resize(std::fread(got.data(), 1, got.size(), file));
    std::fclose(file);
    CHECK(got == b.bytes);
}
