// What a grain has written and its server has not reported.
#include <tuple>

#include <unistd.h>

#include "grainserver/shell/grain_files.h"
#include "scratch_dir.h"
#include "support/catch.h"

using namespace bench;
using namespace dcs;
using namespace dcs::server;

TEST_CASE("what was not reported yet is one stream behind the increments that were") {
    const ScratchDir dir;
    const GrainId id{{{"ann", 3}, 17}, 2};
    const std::string room = dir.path + "/grains/local1,ann,3,17,2/room/";
    GrainFiles grains;
    REQUIRE(grains.open(dir.path, "local1", "boot"));
    wire::Launch launch;
    launch.argv = {"/bin/cat"};
    REQUIRE(grains.prepare(id, launch, 1));
    for (const auto &[k, out, err] :
         {std::tuple{"2", "abc", "A"}, {"3", "", ""}, {"4", "defg", "B"}, {"6", "no", "no"}}) {
        put_file(room + "out." + k, out);
        put_file(room + "err." + k, err);
    }
    const auto peek = [&](std::uint32_t after, std::uint64_t offset, std::uint32_t max, wire::Stream stream) {
        const wire::Peeked answer = grains.peek(id, {wire::wire_of(id.key), 2, after, stream, offset, max, 9});
        CHECK(answer.ticket == 9);
        return std::to_string(answer.total) + " " + answer.bytes;
    };
    CHECK(peek(1, 0, 100, wire::Stream::out) == "7 abcdefg");
    CHECK(peek(1, 2, 3, wire::Stream::out) == "7 cde");
    CHECK(peek(1, 1, 100, wire::Stream::err) == "2 B");
    CHECK(peek(1, std::uint64_t{1} << 62, 100, wire::Stream::out) == "7 ");
    CHECK(peek(3, 0, 100, wire::Stream::out) == "4 defg");
    CHECK(peek(4, 0, 100, wire::Stream::out) == "0 ");
    CHECK(peek(UINT32_MAX, 0, 100, wire::Stream::out) == "0 ");
    CHECK(::symlink("/etc/passwd", (room + "out.5").c_str()) == 0);
    CHECK(peek(1, 0, 100, wire::Stream::out) == "7 abcdefg");
    CHECK(grains.peek({id.key, 3}, {}).total == 0);
}
