// What a grain server says of files that are not what they should be, of a launcher that is not there, and of what its
// warden is not asked, word for word.
#include "support/about.h"
#include "support/refuse.h"

#include <filesystem>

#include "base/confinement.h"
#include "grainserver/files/giving.h"
#include "grainserver/files/owner_rules.h"
#include "grainserver/files/room.h"
#include "grainserver/files/sealed.h"
#include "grainserver/shell/launcher_client.h"
#include "grainserver/warden/warden.h"
#include "launcher_bench.h"

using namespace bench;
using namespace dcs;

TEST_CASE("the owner's rules with something behind them are damaged") {
    const std::string fields = files::pack(files::OwnerRules{}).substr(8) + "x";  // behind the kind and the checksum
    CHECK(files::unpack_rules(files::seal("DOR1", fields)).status().text == "record DOR1 is damaged");
}

TEST_CASE("a name that leads out of the server's directory is no name") {
    const ScratchDir dir;
    const files::DirectGiving giving(dir.path);
    for (const char *name : {"", ".", "..", "a/b"})
        CHECK(giving.give_room(name, {}).text == std::string("not the name of a directory of this server: ") + name);
}

TEST_CASE("a launcher that does not come is told once, with the place of its log") {
    const ScratchDir dir;
    server::LauncherClient client;
    int starts = 0;
    client.open(dir.path, [&] {
        ++starts;
        return Status::ok();
    });
    Instant now{};
    int told = 0;
    for (int i = 0; i < 1000; ++i) {
        std::string why;
        now = now + seconds(100);
        CHECK_FALSE(client.maintain(now, why));
        if (why.empty()) continue;
        ++told;
        CHECK(why == "the launcher does not answer; see " + dir.path + "/launcher.log");
    }
    CHECK(told == 1);
    CHECK(starts > 1);
}

TEST_CASE("what has not the form of a request is not asked of the warden") {
    const ScratchDir dir;
    const auto warden = warden::WardenClient::start({}, {"/bin/false", dir.path, "local1", "", false});
    REQUIRE(warden);
    CHECK((*warden)->open_program("bin/true", {}).status().text == about("warden not request"));
}

#if DCS_CAN_REFUSE
TEST_CASE("a file behind a mount in the grain's directory does not count") {
    const ScratchDir dir;
    REQUIRE(make_directories(dir.path + "/room"));
    put_file(dir.path + "/room/checkpoint", "x");
    const Fd grain(::open(dir.path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const auto room = files::open_room(grain.get());
    REQUIRE(room);
    const test::Refusing refusing("openat2:checkpoint:EXDEV");
    CHECK(files::read_foreign(*room, "checkpoint", 100).status().text == about("checkpoint reached through"));
    CHECK(refusing.happened());
}
#endif
