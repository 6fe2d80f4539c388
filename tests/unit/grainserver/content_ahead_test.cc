// Contents of many pieces: some are on their way at a time, and what is lost, stray or refused among them costs no
// byte.
#include <algorithm>

#include "base/limits.h"
#include "content_bench.h"

using namespace bench;

namespace {

constexpr std::uint64_t piece_bytes = limits::content_piece_bytes;
constexpr std::uint64_t total = 20 * piece_bytes + 5;

struct AheadBench : ContentBench {
    void fetch() {
        launch_with(id(), {data('a', total)});
        clear();
        in(FilesMissing{id(), {data('a', total)}});
    }
    void put() {
        run_with_outputs(id(), {output("o")});
        end(id());
        in(OutputsKept{id(), {made_file("o", 'o', total)}, ""});
    }
    std::vector<std::uint64_t> wanted() {
        std::vector<std::uint64_t> offsets;
        for (const auto &want : sent<wire::WantContent>()) offsets.push_back(want.offset);
        return offsets;
    }
    std::vector<std::uint64_t> put_at() {
        std::vector<std::uint64_t> offsets;
        for (const auto &piece : take<SendPiece>()) offsets.push_back(piece.offset);
        return offsets;
    }
    void answer(std::uint64_t offset) {
        const std::uint64_t size = std::min(piece_bytes, total - offset);
        message(wire::ContentPiece{digest('a'), total, offset, std::string(size, 'x'), 0, ""});
    }
    void reconnect() {
        clear();
        in(LinkClosed{"gone"});
        pass(seconds(2));
        in(LinkOpened{});
        message(wire::Configure{9, 2, 1});
    }
};

std::vector<std::uint64_t> pieces(std::uint64_t first, std::uint64_t count) {
    std::vector<std::uint64_t> offsets;
    for (std::uint64_t i = 0; i < count; ++i) offsets.push_back((first + i) * piece_bytes);
    return offsets;
}

}  // namespace

TEST_CASE("after the first piece of a content some are asked for ahead, no more than the disk keeps up with") {
    AheadBench b;
    b.fetch();
    REQUIRE(b.wanted() == pieces(0, 1));
    b.answer(0);
    REQUIRE(b.wanted() == pieces(1, pieces_ahead - 1));
    for (std::uint64_t i = 1; i < pieces_ahead; ++i) b.answer(i * piece_bytes);
    REQUIRE(b.wanted().empty());  // none of them is on the disk yet
    auto kept = b.take<KeepPiece>();
    REQUIRE(kept.size() == pieces_ahead);
    std::vector<std::uint64_t> asked;
    for (std::uint64_t offset = 0; b.none<PlaceFiles>();) {
        for (const KeepPiece &piece : kept) {
            REQUIRE(piece.offset == offset);
            offset += piece.bytes.size();
            b.in(PieceKept{piece.digest, offset});
        }
        for (const std::uint64_t want : b.wanted()) b.answer(want);
        kept = b.take<KeepPiece>();
        REQUIRE((!kept.empty() || offset == total));
        if (offset == total) break;
    }
    REQUIRE(b.state.fetches.empty());
    REQUIRE(b.one<PlaceFiles>().id == id());
}

TEST_CASE("a content goes on with its next piece alone on another link, and what was on its way does no harm") {
    AheadBench b;
    b.fetch();
    b.answer(0);
    b.answer(piece_bytes);
    b.in(PieceKept{digest('a'), piece_bytes});
    b.reconnect();
    REQUIRE(b.wanted() == pieces(2, 1));  // the second one is being written
    b.in(PieceKept{digest('a'), 2 * piece_bytes});
    b.answer(piece_bytes);
    REQUIRE(b.none<KeepPiece>());
    b.answer(2 * piece_bytes);
    REQUIRE(b.one<KeepPiece>().offset == 2 * piece_bytes);
    REQUIRE(b.wanted().front() == 3 * piece_bytes);
}

TEST_CASE("a piece that was not answered is asked for again") {
    AheadBench b;
    b.fetch();
    b.answer(0);
    b.in(PieceKept{digest('a'), piece_bytes});
    b.clear();
    b.answer(2 * piece_bytes);
    REQUIRE(b.none<KeepPiece>());
    REQUIRE(b.wanted() == pieces(1, 1));
    b.answer(3 * piece_bytes);
    b.answer(piece_bytes);
    REQUIRE(b.one<KeepPiece>().offset == piece_bytes);
}

TEST_CASE("a disk that refuses one of several pieces begins the content again, once") {
    AheadBench b;
    b.fetch();
    b.answer(0);
    b.in(PieceKept{digest('a'), piece_bytes});
    for (std::uint64_t i = 1; i < pieces_ahead; ++i) b.answer(i * piece_bytes);
    b.clear();
    for (std::uint64_t i = 1; i < pieces_ahead; ++i) b.in(PieceUnkept{digest('a'), Code::io_error, "a bad block"});
    REQUIRE(b.state.fetches.size() == 1);  // not given up
    REQUIRE(b.state.fetches.begin()->second.failures == 1);
    b.pass(seconds(2));
    REQUIRE(b.wanted() == pieces(0, 1));
}

TEST_CASE("after the first piece of an output some leave ahead of their answers") {
    AheadBench b;
    b.put();
    REQUIRE(b.put_at() == pieces(0, 1));
    b.taken('o', piece_bytes);
    REQUIRE(b.put_at() == pieces(1, pieces_ahead));
    std::uint64_t next = piece_bytes;
    while (next < total) {
        next = std::min(total, next + piece_bytes);
        REQUIRE(b.none<SendReport>());
        b.taken('o', next);
    }
    REQUIRE(b.put_at() == pieces(pieces_ahead + 1, 20 - pieces_ahead));
    REQUIRE(b.one<SendReport>().ended);
}

TEST_CASE("an output that the scheduler has already costs one piece") {
    AheadBench b;
    b.put();
    b.clear();
    b.taken('o', total);
    REQUIRE(b.none<SendPiece>());
    REQUIRE(b.one<SendReport>().ended);
}

TEST_CASE("where the scheduler expects another piece, it gets that one when all answers have come") {
    AheadBench b;
    b.put();
    b.taken('o', piece_bytes);
    b.clear();
    const std::uint64_t expects = GENERATE(0, piece_bytes);  // it dropped the upload, or one piece
    for (std::uint64_t i = 0; i < pieces_ahead; ++i) {
        REQUIRE(b.none<SendPiece>());
        b.taken('o', expects);
    }
    REQUIRE(b.put_at() == std::vector{expects});
    b.taken('o', expects + piece_bytes);
    REQUIRE(b.put_at().size() == pieces_ahead);
}

TEST_CASE("an output begins again on another link") {
    AheadBench b;
    b.put();
    b.taken('o', piece_bytes);
    b.reconnect();
    REQUIRE(b.put_at() == pieces(0, 1));
}

TEST_CASE("only failures in a row give outputs up") {
    ContentBench b;
    b.launch_with(id(), {data('a', 1), output("o")});
    for (int i = 0; i < 3; ++i) {
        REQUIRE(b.one<PlaceFiles>().id == id());
        b.in(FilesMissing{id(), {data('a', 1)}});
        b.piece(1, 1);
        b.write();
    }
    REQUIRE(b.one<PlaceFiles>().id == id());
    b.in(FilesPlaced{id()});
    b.in(GrainStarted{id()});
    b.clear();
    b.end(id());
    const auto fail_thrice = [&] {
        for (int i = 0; i < 3; ++i) {
            REQUIRE(b.one<KeepOutputs>().id == id());
            b.in(OutputsUnkept{id(), Code::io_error, "a bad block"});
            b.pass(seconds(10));
            REQUIRE(b.state.grains.size() == 1);
        }
    };
    fail_thrice();
    REQUIRE(b.one<KeepOutputs>().id == id());
    b.in(OutputsKept{id(), {made_file("o", 'o', 600), made_file("p", 'p', 600)}, ""});
    b.taken('o', 600);
    b.clear();
    b.in(PieceUnreadable{digest('p'), "a bad block"});
    REQUIRE(b.state.grains.size() == 1);
}
