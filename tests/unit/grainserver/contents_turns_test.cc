// Whose contents are copied first.
#include "contents_bench.h"

using namespace bench;

TEST_CASE("one user's outputs do not hold up the files of another's grains") {
    Shell s;
    s.prepare({{FileRole::output, "o", "", 0, ""}});
    s.place();
    put_file(s.work() + "/o", std::string(40u << 20, 'o'));
    s.contents.keep_outputs(s.id);
    s.contents.go_on();
    const GrainId outputs = s.id;
    s.id = {{{"bob", 1}, 1}, 1};
    s.prepare({s.fetched(FileRole::data, "d", "data")});
    s.contents.place(s.id);
    int slices = 0;
    while (s.told.empty()) {
        REQUIRE(++slices < 100);
        s.contents.go_on();
    }
    REQUIRE(s.take<FilesPlaced>().id == s.id);
    REQUIRE(s.contents.busy());
    s.run();
    REQUIRE(s.take<OutputsKept>().id == outputs);
}
