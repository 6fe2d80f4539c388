#pragma once
// Contents as control programs and servers talk of them, in whole frames.
#include "pki/digest.h"
#include "pool.h"
#include "support/catch.h"

namespace dcs::test {

inline wire::GrainFile content(wire::FileRole role, const std::string &bytes, std::string name = "",
                               std::string cls = "") {
    return {role, std::move(name), pki::sha256_text(bytes), bytes.size(), std::move(cls)};
}
inline wire::GrainFile output(std::string name) { return {wire::FileRole::output, std::move(name), "", 0, ""}; }

inline wire::GrainSpec spec_with(std::vector<wire::GrainFile> files) {
    wire::GrainSpec spec = copying_grain("");
    spec.files = std::move(files);
    return spec;
}

inline wire::PutContent piece_of(const std::string &bytes, std::size_t offset, std::size_t length) {
    return {pki::sha256_text(bytes), bytes.size(), offset, bytes.substr(offset, length)};
}

// A control program of ann's with session 1, and what it does with contents.
struct Program {
    explicit Program(Pool &p) : pool(p), conn(p.control("ann", "prog")) {
        pool.ask<wire::OpenReply>(conn, wire::OpenSession{1, wire::OpenMode::resume, false});
    }
    std::size_t missing(const std::string &bytes) {
        return pool.ask<wire::MissingContents>(conn, wire::AskContents{{pki::sha256_text(bytes)}}).digests.size();
    }
    // The answer to the last piece.
    wire::AnyMessage put(const std::string &bytes, std::size_t pieces = 2) {
        const std::size_t each = bytes.size() / pieces + 1;
        std::uint64_t request = 0;
        std::size_t at = 0;
        do {
            request = pool.post(conn, piece_of(bytes, at, each));
            pool.pump();
            at += each;
            if (at < bytes.size()) CHECK(std::holds_alternative<wire::Done>(pool.reply(conn, request)));
        } while (at < bytes.size());
        pool.do_library_jobs();
        return pool.reply(conn, request);
    }
    Code refusal(const std::string &bytes) {
        const auto reply = put(bytes);
        const auto *error = std::get_if<wire::ErrorReply>(&reply);
        return error ? static_cast<Code>(error->code) : Code::ok;
    }
    wire::AnyMessage fetch(int grain, wire::Stream stream, const std::string &name = "", std::uint64_t offset = 0) {
        const auto request = pool.post(conn, wire::Fetch{"", 1, grain, stream, offset, 1u << 20, name});
        pool.pump();
        pool.do_library_jobs();
        return pool.reply(conn, request);
    }
    Pool &pool;
    ConnId conn;
};

inline std::size_t files_in(Pool &pool, const std::string &top) {
    std::size_t n = 0;
    for (const auto &[name, bytes] : pool.disk.files(top)) n += name.back() != '/';
    return n;
}

// What the scheduler said to a server's connection, of one kind.
template <class Message> std::vector<Message> said(Pool &pool, ConnId conn) {
    std::vector<Message> list;
    for (const wire::AnyMessage &message : pool.take_sent(conn))
        if (const auto *m = std::get_if<Message>(&message)) list.push_back(*m);
    return list;
}
template <class Message> Message last_said(Pool &pool, ConnId conn, const wire::AnyMessage &message) {
    pool.take_sent(conn);
    pool.post(conn, message);
    pool.pump();
    pool.do_library_jobs();
    const auto list = said<Message>(pool, conn);
    REQUIRE(!list.empty());
    return list.back();
}

}  // namespace dcs::test
