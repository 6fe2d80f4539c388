#include "wire/import_rows.h"

#include "samples.h"
#include "support/catch.h"
#include "wire/message.h"

using namespace dcs;
using namespace dcs::wire;

namespace {

std::string stream_of_samples(std::size_t &grains) {
    ExportedSession head;
    head.user = "ann", head.session = 7, head.ident = "prog", head.state = "terminated";
    head.results = 3, head.acknowledged = 1, head.handed_out = 2;
    std::vector<ExportedGrain> all;
    for (std::int32_t number = 0; number < 3; ++number) {
        ExportedGrain g;
        g.grain = number * 5;
        g.spec.argv = {"/bin/p", std::string(static_cast<std::size_t>(number), 'x')};
        g.spec.env = {"A=b"};
        g.state = "ready", g.host = "h1", g.nogo = {"h2", "h3"};
        g.incarnation = 0xffffffffu, g.sequence = 9, g.failures = -1, g.exit_code = -7, g.signal = 11;
        g.result_index = -1, g.queued = true, g.queue = -(std::int64_t{1} << 60), g.input_position = ~std::uint64_t{0};
        g.usage = {1, 2, 3, 4, 5, 6, -7};
        g.message = {4, true, "done"};
        g.out = {9, false, "not"};
        all.push_back(g);
    }
    grains = head.grains = all.size();
    ByteWriter w;
    w.text(pack(head));
    for (const ExportedGrain &g : all) w.text(pack(g));
    return std::move(w.bytes());
}

}  // namespace

TEST_CASE("rows of an import say what its stream says") {
    std::size_t grains = 0;
    const std::string stream = stream_of_samples(grains);
    const auto rows = rows_of_import(stream);
    REQUIRE(rows);
    ByteReader records(stream);
    ImportRows in(*rows);
    const auto head = in.head();
    REQUIRE(head);
    CHECK(pack(*head) == records.text());
    REQUIRE(in.count() == grains);
    for (std::size_t i = 0; i < grains; ++i) {
        const auto grain = in.grain();
        REQUIRE(grain);
        CHECK(pack(*grain) == records.text());
    }
    const auto known = in.known();
    REQUIRE(known);
    CHECK(known->size() == grains);
    CHECK(records.at_end());
}

TEST_CASE("rows that end early, or claim more than there is, are refused") {
    std::size_t grains = 0;
    const std::string rows = *rows_of_import(stream_of_samples(grains));
    const auto read = [](std::string_view bytes) {
        ImportRows in(bytes);
        const auto head = in.head();
        if (!head) return false;
        for (std::uint32_t i = 0; i < in.count(); ++i)
            if (!in.grain()) return false;
        return static_cast<bool>(in.known());
    };
    CHECK(read(rows));
    CHECK_FALSE(read(rows + "x"));
    for (std::size_t size = 0; size < rows.size(); ++size) CHECK_FALSE(read(std::string_view(rows).substr(0, size)));
    for (std::size_t at = 0; at < rows.size(); ++at) {  // whatever it says, nothing is read that is not there
        std::string bad = rows;
        bad[at] = static_cast<char>(bad[at] ^ 0x80);
        (void)read(bad);
    }
}
