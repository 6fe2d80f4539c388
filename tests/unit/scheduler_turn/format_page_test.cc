// docs/STATE_FORMAT.md shows a real state directory: this test makes it again and compares.
// DCS_REWRITE=1 writes the page's listing anew.
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "places.h"
#include "pool.h"
#include "scheduler/record/codec.h"
#include "support/catch.h"

using namespace dcs;
using namespace dcs::test;

namespace {

std::string hex(const std::string &bytes) {
    std::string text;
    char row[96];
    for (std::size_t at = 0; at < bytes.size(); at += 16) {
        std::snprintf(row, sizeof row, "    %06zx ", at);
        text += row;
        std::string shown;
        for (std::size_t i = at; i < std::min(bytes.size(), at + 16); ++i) {
            const auto byte = static_cast<unsigned char>(bytes[i]);
            std::snprintf(row, sizeof row, " %02x", byte);
            text += row;
            shown += byte >= 0x20 && byte < 0x7f ? static_cast<char>(byte) : '.';
        }
        text += std::string(3 * (16 - shown.size()) + 2, ' ') + shown + "\n";
    }
    return text;
}

// The fields of every grain record in a log or a status file.
std::string decoded(const std::string &file, std::string_view bytes) {
    std::string text;
    while (!bytes.empty()) {
        const auto entry = record::next_grain(bytes);
        REQUIRE(entry);
        const auto r = record::decode_grain(entry->record);
        REQUIRE(r);
        const core::Grain &g = r->grain;
        std::ostringstream line;
        line << "    " << file << ": " << entry->record.size() << " bytes: grain " << r->number << " "
             << core::name_of(g.status) << (g.own_tree ? ", own tree" : "") << ", incarnation "
             << g.incarnation << (r->host.empty() ? "" : ", host " + r->host) << ", parameters "
             << g.params_length << " bytes at " << g.params_offset << ", out " << g.out_length
             << ", err " << g.err_length << ", checkpoint " << g.checkpoint_length << "\n";
        text += line.str();
    }
    return text;
}

// Two small grains, one of them finished, and one with a checkpoint.
std::string listing() {
    Pool pool({host("h1", 2)});
    ModelServer server(pool, "h1");
    const ConnId control = pool.control("ann", "sweep");
    pool.ask<wire::OpenReply>(control, wire::OpenSession{1, wire::OpenMode::open, false});
    server.connect();
    for (int g = 1; g <= 3; ++g) pool.ask<wire::Done>(control, wire::Gexec{1, g, copying_grain("input")});
    server.read();
    server.finish({{"ann", 1}, 1});
    server.read();
    server.checkpoint({{"ann", 1}, 2}, 3);
    server.read();
    pool.outside->clock = pool.outside->clock + seconds(11);
    pool.turn->tidy();
    pool.pump();
    REQUIRE(pool.store->flush().answer == store::Answer::done);

    const auto files = pool.disk.files();
    std::ostringstream out;
    for (const auto &[path, bytes] : files)
        if (path.back() != '/') out << std::string(4, ' ') << path << "  " << bytes.size() << " bytes\n";
    out << "\nThe log of the session's grains, and the status of the one with a tree of its own, decoded:\n\n";
    for (const char *path : {"sessions/ann/1/grains", "sessions/ann/1/g/2/status"})
        out << decoded(path, files.at(path));
    for (const char *path : {"sessions/ann/1/status", "sessions/ann/1/g/2/status", "hosts/table"})
        out << "\n`" << path << "`, byte by byte:\n\n" << hex(files.at(path));
    return out.str();
}

}  // namespace

TEST_CASE("the page about the state's format shows what is written") {
    const std::string path = std::string(DCS_SOURCE_DIR) + "/docs/STATE_FORMAT.md";
    std::ifstream in(path);
    REQUIRE(in);
    const std::string page((std::istreambuf_iterator<char>(in)), {});
    const std::string begin = "<!-- listing: made by format_page_test, DCS_REWRITE=1 writes it anew -->\n";
    const std::string end = "<!-- end of the listing -->\n";
    const std::size_t from = page.find(begin), to = page.find(end);
    REQUIRE(from != std::string::npos);
    REQUIRE(to != std::string::npos);
    const std::string now = "\n" + listing() + "\n";
    if (std::getenv("DCS_REWRITE")) {
        std::ofstream(path) << page.substr(0, from + begin.size()) << now << page.substr(to);
        return;
    }
    CHECK(page.substr(from + begin.size(), to - from - begin.size()) == now);
}
