// Files of grains that are not as their server left them: what is reported, and what becomes of the grain.
#include "support/about.h"
#include "support/refuse.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "grainserver/core/checkpoint_file.h"
#include "grainserver/shell/contents.h"
#include "grainserver/shell/grain_files.h"
#include "process/table.h"
#include "pki/digest.h"
#include "scratch_dir.h"

using namespace bench;
using namespace dcs;
using namespace dcs::server;
using Why = ReportUnsendable::Why;

namespace {

struct OneGrain {
    ScratchDir dir;
    GrainFiles grains;
    GrainId id{{{"ann", 3}, 17}, 2};
    const std::string record = dir.path + "/grains/local1,ann,3,17,2", room = record + "/room";

    OneGrain() { REQUIRE(grains.open(dir.path, "local1", boot_id())); }
    Status prepare(std::vector<std::string> argv = {"/bin/cat"}, std::vector<std::string> env = {}) {
        wire::Launch m;
        m.argv = std::move(argv);
        m.env = std::move(env);
        m.input = "0123456789";
        m.checkpoint_length = 4;
        return grains.prepare(id, m, 1);
    }
    void checkpoint(const std::string &state, int offset) {
        put_file(room + "/out.1", "");
        put_file(room + "/err.1", "");
        char head[100], end[100];
        std::snprintf(head, sizeof head, "dcs-checkpoint 1\ninput_offset %d\nusage_us 5 6\nmessage 2\n\nhi\n", offset);
        std::snprintf(end, sizeof end, "dcs-end %zu %08X\n", state.size(), crc32_ieee(state));
        put_file(room + "/checkpoint.1", head + state + end);
    }
    ReportUnsendable refused() {
        SendReport plan;
        plan.id = id;
        plan.first = plan.last = plan.checkpoint = 1;
        auto built = grains.build(plan);
        auto *why = std::get_if<ReportUnsendable>(&built);
        REQUIRE(why != nullptr);
        CHECK(why->checkpoint == 1);
        return *why;
    }
};

}  // namespace

TEST_CASE("a launch that no program can be made of leaves nothing behind") {
    OneGrain g;
    const std::string nul("x\0y", 3);
    const auto says = [&](std::vector<std::string> argv, std::vector<std::string> env = {}) {
        const Status s = g.prepare(std::move(argv), std::move(env));
        CHECK(s.code == Code::invalid);  // about this grain, not about a program
        CHECK_FALSE(file_exists(AT_FDCWD, g.record));
        return s.text;
    };
    CHECK(says({}) == "the grain names no program");
    CHECK(says({""}) == "the grain names no program");
    CHECK(says({"/bin/cat", nul}) == about("argument contains NUL"));
    CHECK(says({"/bin/cat"}, {nul}) == about("argument contains NUL"));
}

TEST_CASE("a grain that spoilt its own input loses the checkpoint that needs it, and nothing else") {
    OneGrain g;
    REQUIRE(g.prepare());
    g.checkpoint("state", 1);  // three bytes of the old checkpoint are still to be read
    const std::string input = g.room + "/input";
    ReportUnsendable why;
    SECTION("cut") {
        REQUIRE(::truncate(input.c_str(), 2) == 0);
        why = g.refused();
        CHECK(why.text == about("checkpoint.1 ignored grain's shorter"));
    }
    SECTION("removed") {
        REQUIRE(::unlink(input.c_str()) == 0);
        why = g.refused();
        CHECK(why.text == about("checkpoint.1 ignored missing"));
    }
    SECTION("exchanged") {
        REQUIRE(::unlink(input.c_str()) == 0);
        REQUIRE(::symlink("out.1", input.c_str()) == 0);
        why = g.refused();
        CHECK(why.text.find("checkpoint.1 is ignored: input is ") == 0);
    }
    CHECK(why.why == Why::bad_checkpoint);
}

TEST_CASE("a checkpoint that is no report any more with what it has not read is too big") {
    OneGrain g;
    REQUIRE(g.prepare());
    g.checkpoint(std::string(limits::report_bytes - 2, 's'), 1);  // and three bytes
    const ReportUnsendable why = g.refused();
    CHECK(why.why == Why::too_big);
    CHECK(why.text == about("report exceeds permitted"));
}

#if DCS_CAN_REFUSE
TEST_CASE("a disk that does not give the input back is no fault of the checkpoint") {
    OneGrain g;
    REQUIRE(g.prepare());
    g.checkpoint("state", 1);
    const test::Refusing refusing("pread:/input:EIO");
    const ReportUnsendable why = g.refused();
    CHECK(refusing.happened());
    CHECK(why.why == Why::unreadable);
    CHECK(why.text == about("grain's input cannot"));
}
#endif

TEST_CASE("an exit status that cannot be read or believed is an end without blame") {
    OneGrain g;
    REQUIRE(g.prepare());
    CHECK_FALSE(g.grains.exit_of(g.id));
    put_file(g.record + "/exit", "nonsense");
    auto exit = g.grains.exit_of(g.id);
    REQUIRE(exit);
    CHECK_FALSE(exit->known);
    CHECK(exit->reason == "its exit status is damaged");
    REQUIRE(::unlink((g.record + "/exit").c_str()) == 0);
    REQUIRE(::mkdir((g.record + "/exit").c_str(), 0700) == 0);
    exit = g.grains.exit_of(g.id);
    REQUIRE(exit);
    CHECK_FALSE(exit->known);
    CHECK(exit->reason == about("cannot not regular"));
}

TEST_CASE("files are not placed beside a replaced input") {
    OneGrain g;
    std::vector<Input> told;
    Contents contents{g.grains, [&](Input input) { told.push_back(std::move(input)); }, [](wire::AnyMessage) {}};
    REQUIRE(contents.open(g.dir.path, "here-linux", 1u << 30, [] { return ContentCache::Names(); }));
    const std::string bytes = "some input", digest = pki::sha256_text(bytes), input = g.room + "/input";
    contents.keep(KeepPiece{digest, bytes.size(), 0, bytes});
    wire::Launch m;
    m.argv = {"/bin/cat"};
    m.files = {{wire::FileRole::input, "", digest, bytes.size(), ""}};
    const auto place = [&] {
        told.clear();
        contents.place(g.id);
        for (int slices = 0; contents.busy(); contents.go_on()) REQUIRE(++slices < 10'000);
        REQUIRE(told.size() == 1);
    };
    REQUIRE(g.grains.prepare(g.id, m, 1));
    const std::string other = g.dir.path + "/other";
    put_file(other, "not the grain's");
    REQUIRE(::unlink(input.c_str()) == 0);
    REQUIRE(::link(other.c_str(), input.c_str()) == 0);
    place();
    const auto *refused = std::get_if<FilesUnplaced>(&told[0]);
    REQUIRE(refused != nullptr);
    CHECK(refused->code == Code::io_error);
    CHECK(refused->text == "the grain's input was replaced");
    CHECK(get_file(other) == "not the grain's");
    REQUIRE(g.grains.prepare(g.id, m, 1));
    place();
    CHECK(std::get_if<FilesPlaced>(&told[0]) != nullptr);
    CHECK(get_file(input) == bytes);
}
