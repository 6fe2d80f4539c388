#pragma once
// A client of export and import in a few lines, and a session with grains of every kind.
#include <algorithm>
#include <functional>

#include "base/bytes.h"
#include "pool.h"
#include "support/catch.h"
#include "wire/message.h"

namespace dcs::test {

struct Exported {
    wire::ExportedSession head;
    std::vector<wire::ExportedGrain> grains;
};

inline void fetch(Pool &pool, ConnId conn, const wire::ExportedSession &head, int grain, wire::Stream which,
                  wire::ExportedStream &stream) {
    while (!stream.whole && stream.content.size() < stream.length)
        stream.content +=
            pool.ask<wire::Piece>(conn, wire::Fetch{head.user, head.session, grain, which, stream.content.size(), 0})
                .bytes;
    stream.whole = true;
}

inline Exported export_session(Pool &pool, ConnId conn, std::int32_t number) {
    Exported all;
    for (std::int32_t after = -1;;) {
        auto page = pool.ask<wire::ExportReply>(conn, wire::ExportPage{"", number, after, 3});
        REQUIRE(page.grains.size() <= 3);
        all.head = page.head;
        for (wire::ExportedGrain &g : page.grains) {
            fetch(pool, conn, page.head, g.grain, wire::Stream::out, g.out);
            fetch(pool, conn, page.head, g.grain, wire::Stream::err, g.err);
            fetch(pool, conn, page.head, g.grain, wire::Stream::checkpoint, g.checkpoint);
            fetch(pool, conn, page.head, g.grain, wire::Stream::message, g.message);
            after = g.grain;
            all.grains.push_back(std::move(g));
        }
        if (!page.more) return all;
    }
}

inline std::string stream_of(const Exported &e) {
    ByteWriter w;
    w.text(wire::pack(e.head));
    for (const wire::ExportedGrain &g : e.grains) w.text(wire::pack(g));
    return std::move(w.bytes());
}

inline void upload(Pool &pool, ConnId conn, const std::string &stream) {
    wire::ImportPiece piece{0, stream.size(), ""};
    do {
        piece.bytes = stream.substr(piece.offset, 60'000);
        pool.ask<wire::Done>(conn, piece);
        piece.offset += piece.bytes.size();
    } while (piece.offset < stream.size());
}

inline Code import_session(Pool &pool, ConnId conn, const std::string &stream, std::int32_t number,
                           bool replace = false) {
    upload(pool, conn, stream);
    return pool.refusal(conn, wire::ImportSession{number, replace, stream.size(), crc32c(stream)});
}

inline const SessionKey ann1{"ann", 1};

inline std::string big_text() {
    std::string text;
    while (text.size() < 100'000) text += std::to_string(text.size()) + "\n";
    return text;
}

// 0 finished, 1 ready with a checkpoint, 2 killed, 3 finished with a long result, 4 and 5 ready,
// 5 before 4; 6 finished and without any output, 7 killed after it had finished.
struct Worked {
    Pool pool{{host("h1", 3)}};
    ModelServer server{pool, "h1"};
    ConnId control{};
    explicit Worked(bool close = true) {
        control = pool.control("ann", "prog");
        pool.ask<wire::OpenReply>(control, wire::OpenSession{1, wire::OpenMode::open, false});
        server.connect();
        submit(0, "some input");
        submit(6, "");
        submit(7, "short");
        server.read();
        for (const int g : {0, 6, 7}) server.finish({ann1, g});
        pool.ask<wire::Done>(control, wire::Gkill{"", 1, 7});
        submit(3, big_text());
        submit(1, "what comes after the checkpoint");
        server.read();
        server.finish({ann1, 3});
        server.checkpoint({ann1, 1}, 9);
        submit(2, "killed");
        server.read();
        pool.ask<wire::Done>(control, wire::Gkill{"", 1, 2});
        server.read();
        submit(8, "runs"), submit(9, "runs");
        submit(4, "later");
        submit(5, "sooner", true);
        server.read();
        pool.ask<wire::GrainResult>(control, wire::Gwait{1, 0, false});
        if (close) pool.ask<wire::Done>(control, wire::CloseSession{"", 1, 1});
        server.read();
    }
    void submit(int grain, std::string input, bool urgent = false) {
        wire::GrainSpec spec = copying_grain(std::move(input));
        spec.demands.urgent = urgent;
        spec.label = "number " + std::to_string(grain);
        pool.ask<wire::Done>(control, wire::Gexec{1, grain, spec});
    }
};

// Places in the queue as 0, 1, 2 ...
inline void rank_queue(Exported &e) {
    std::vector<std::int64_t> places;
    for (const auto &g : e.grains)
        if (g.queued) places.push_back(g.queue);
    std::sort(places.begin(), places.end());
    for (auto &g : e.grains)
        if (g.queued) g.queue = std::lower_bound(places.begin(), places.end(), g.queue) - places.begin();
}

}  // namespace dcs::test
