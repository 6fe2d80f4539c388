// Records of grains that release 0.1 wrote: its grains run on under this release, and its launcher reads what we write.
#include "golden/read.h"
#include "grainserver/files/grain_record.h"
#include "support/catch.h"

using namespace dcs;
using namespace dcs::files;

namespace {

template <class Record> Record same(const golden::Block &b, Result<Record> (*unpack)(std::string_view)) {
    INFO(b.what << " " << b.how);
    const auto record = unpack(b.bytes);
    REQUIRE(record);
    CHECK(pack(*record) == b.bytes);
    return *record;
}

}  // namespace

TEST_CASE("records of release 0.1 are read, and written to the same bytes") {
    std::size_t count = 0;
    for (const golden::Block &b : golden::blocks_of("grain_records.txt")) {
        ++count;
        if (b.what == "LaunchRecord" && b.how == "few") {
            const LaunchRecord x = same<LaunchRecord>(b, unpack_launch);
            CHECK((x.boot_id == "boot" && x.program == "/bin/x" && x.directory == "/work"));
            CHECK(x.argv == std::vector<std::string>{"x", "", "y z"});
            CHECK(x.env == std::vector<std::string>{"A=1"});
            CHECK((x.checkpoint_length == 7 && x.input_base == 1ull << 40 && x.next_seq == 9 && x.epoch == 4));
            CHECK((x.demands.notice == -1 && x.demands.wall_s == 3600 && x.tentative && !x.placed && x.rungs == 3));
            CHECK(x.account == Account{true, 1001, 1002, {3, 4}, true});
            CHECK(x.limits == Limits{64, 5, 6, 7, 8});
            REQUIRE(x.files.size() == 2);
            CHECK((x.files[0].role == wire::FileRole::program && x.files[0].digest == std::string(32, 'd')));
            CHECK((x.files[0].size == 9 && x.files[0].binary_class == "class"));
            CHECK((x.files[1].role == wire::FileRole::output && x.files[1].name == "out"));
            CHECK(x.writable == std::vector<std::string>{"/scratch"});
            CHECK(x.runner == std::vector<std::string>{"/bin/run", "{name}"});
        } else if (b.what == "LaunchRecord") {
            CHECK(same<LaunchRecord>(b, unpack_launch).placed);
        } else if (b.what == "ExitRecord") {
            const ExitRecord x = same<ExitRecord>(b, unpack_exit);
            CHECK((x.known && x.status == 9 && x.innocent && x.reason == "why" && x.limit_signal == 24));
            CHECK((x.user_us == 1 && x.system_us == 2 && x.max_rss_kb == 3 && x.minor_faults == 4));
            CHECK((x.major_faults == 5 && x.in_blocks == 6 && x.out_blocks == 7));
        } else if (b.what == "EndingRecord") {
            const EndingRecord x = same<EndingRecord>(b, unpack_ending);
            CHECK(
                (x.kind == files::Ending::overrun && x.reason == "long" && x.limit_signal == 24 && x.given_back == 2));
        } else if (b.what == "OutputsRecord") {
            const OutputsRecord x = same<OutputsRecord>(b, unpack_outputs);
            CHECK((x.files.size() == 2 && x.files[1].name == "out" && x.words == "words"));
        } else {
            CHECK(b.what == "acked");
            CHECK(*unpack_acked(b.bytes) == 17);
            CHECK(pack_acked(17) == b.bytes);
        }
    }
    CHECK(count == 6);
}
