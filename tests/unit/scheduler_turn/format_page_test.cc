// docs/STATE_FORMAT.md lists the fields of the records and shows a real state directory: this test makes both again and
// compares. DCS_REWRITE=1 writes them again.
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "places.h"
#include "pool.h"
#include "scheduler/record/archive.h"
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
        std::string host;
        const auto r = record::decode_grain(entry->record, [&](const std::string &name) {
            host = name;
            return core::HostId{0};
        });
        REQUIRE(r);
        const core::DurableGrain &g = r->grain;
        std::ostringstream line;
        line << "    " << file << ": " << entry->record.size() << " bytes: grain " << r->number << " "
             << core::name_of(g.status()) << (g.own_tree ? ", own tree" : "") << ", incarnation " << g.incarnation
             << (host.empty() ? "" : ", host " + host) << ", parameters " << g.params_length << " bytes at "
             << g.params_offset << ", out " << g.course->out_length << ", err " << g.course->err_length
             << ", checkpoint " << g.course->checkpoint_length << "\n";
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

// The rows of one record's table.
struct Rows {
    std::ostringstream text;
    std::uint32_t last = 0;

    void row(std::uint32_t number, const char *name, FieldKind kind, const char *since, const char *meaning) {
        constexpr const char *kinds[] = {"natural", "integer", "real", "bytes", "fields", "list"};
        INFO(name);
        CHECK(number > last);  // numbers ascend
        last = number;
        text << "| " << number << " | " << name << " | " << kinds[static_cast<int>(kind)] << " | " << since << " | "
             << meaning << " |\n";
    }
    template <class T, class M>
    void field(std::uint32_t number, const char *name, M T::*, const char *meaning, const char *since = "0.1") {
        row(number, name, record::kind_of<M>(), since, meaning);
    }
};

template <class T> std::string table(const std::string &title) {
    Rows rows;
    record::Fields<T>::list(rows);
    return title + "\n\n| number | name | kind | since | meaning |\n|--:|---|---|---|---|\n" + rows.text.str() + "\n";
}

std::string tables() {
    return table<core::DurableGrain>("**Grain**, behind its number:") +
           table<wire::Usage>("*Usage* of an incarnation:") + table<core::Kept>("*Kept* processor time:") +
           table<core::GrainFiles>("*Files* of a grain:") + table<wire::GrainFile>("An *output* among them:") +
           table<core::OldLease>("An *old lease*:") + table<core::Move>("A *move*:") +
           table<core::SessionInfo>("**Session**, `status`:") + table<record::AuthTable>("**`auth/table`**:") +
           table<core::AuthEntry>("A *token*:") + table<record::HostsTable>("**`hosts/table`**:") +
           table<core::DurableHost>("A *host*:") + table<core::HostTotals>("Its *totals*:") +
           table<core::HostSetting>("Its *setting*:") + table<core::Trust>("**`trust/table`**:") +
           table<core::JoinCode>("A *code*:") + table<record::HandedOverTable>("**`handed-over/table`**:") +
           table<core::HandedOver>("*Handed over*:");
}

// What stands on the page between the mark that begins with `begin` and `end`; or, if wanted, what shall.
void compare_or_rewrite(const std::string &begin, const std::string &end, const std::string &now) {
    const std::string path = std::string(DCS_SOURCE_DIR) + "/docs/STATE_FORMAT.md";
    std::ifstream in(path);
    REQUIRE(in);
    const std::string page((std::istreambuf_iterator<char>(in)), {});
    const std::size_t from = page.find(begin), to = page.find(end);
    REQUIRE(from != std::string::npos);
    REQUIRE(to != std::string::npos);
    if (std::getenv("DCS_REWRITE")) {
        std::ofstream(path) << page.substr(0, from + begin.size()) << now << page.substr(to);
        return;
    }
    CHECK(page.substr(from + begin.size(), to - from - begin.size()) == now);
}

}  // namespace

TEST_CASE("the page about the state's format lists the fields that are written") {
    compare_or_rewrite("<!-- fields: made by format_page_test, DCS_REWRITE=1 rewrites them -->\n",
                       "<!-- end of the fields -->\n", "\n" + tables());
}

TEST_CASE("the page about the state's format shows what is written") {
    compare_or_rewrite("<!-- listing: made by format_page_test, DCS_REWRITE=1 rewrites it -->\n",
                       "<!-- end of the listing -->\n", "\n" + listing() + "\n");
}
