// Small files of the scheduler that its host does not let it write: what it says.
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>

#include <sys/stat.h>
#include <unistd.h>

#include "scheduler/shell/mirror_host.h"
#include "scheduler/shell/suspect.h"
#include "support/about.h"
#include "support/catch.h"

using namespace dcs;
using namespace dcs::shell;

TEST_CASE("whether commits wait for the copy cannot be written: the reason is told") {
    CHECK(AttachedFile::open("/").status().text == "cannot open /: Is a directory");
    const auto full = AttachedFile::open("/dev/full");
    REQUIRE(full);
    CHECK((*full)->write(turn::Attachment::attached, 7).text == about("record backup's space left"));
    CHECK((*full)->own_up_to() == 0);
    CHECK((*full)->read() == turn::Attachment::attached);  // what cannot be read counts as that
    CHECK(AttachedFile::open("/dev/null").status().text == about("record backup's Invalid argument"));
}

TEST_CASE("whether commits wait for the copy, and which turns it may have, are read back, also of an older release") {
    char directory[] = "/tmp/dcs-attached-XXXXXX";
    REQUIRE(::mkdtemp(directory) != nullptr);
    const std::string path = std::string(directory) + "/attached";
    std::ofstream(path) << "detached\n";
    for (const std::uint64_t turn : {std::uint64_t{0}, std::uint64_t{252}, UINT64_MAX}) {
        const auto file = AttachedFile::open(path);
        REQUIRE(file);
        CHECK((*file)->read() == turn::Attachment::detached);
        REQUIRE((*file)->write(turn::Attachment::detached, turn));
        CHECK((*AttachedFile::open(path))->own_up_to() == turn);
    }
    const auto promoted = AttachedFile::open(path);
    (*promoted)->is_of(2);
    CHECK((*promoted)->own_up_to() == 0);  // what an old store wrote says nothing of its copy
    REQUIRE((*promoted)->write(turn::Attachment::detached, 253));
    CHECK((*promoted)->own_up_to() == 253);
    CHECK((*AttachedFile::open(path))->own_up_to() == 0);
    REQUIRE((*promoted)->end(3));
    CHECK(still_in_office(**promoted, 2, "/d").text ==
          about("copy epoch 3, here 2 new scheduler Keep /d aside remove /d/attached"));
    CHECK(still_in_office(**promoted, 3, "/d"));  // of the store that took its place
    (*promoted)->is_of(2);
    CHECK((*promoted)->write(turn::Attachment::detached, 9).code == Code::refused);
    const auto old = AttachedFile::open(path);
    CHECK(((*old)->own_up_to() == 0 && (*old)->read() == turn::Attachment::attached));
    (*old)->is_of(3);
    CHECK((*old)->write(turn::Attachment::never, 9));
    CHECK(still_in_office(**old, 2, "/d"));
    ::unlink(path.c_str());
    ::rmdir(directory);
}

TEST_CASE("the page that names a culprit cannot be made: the reason is told") {
    CHECK(Suspect::open("/").status().text == "cannot open /: Is a directory");
    CHECK(Suspect::open("/dev/null").status().text == "cannot map /dev/null: No such device");
}
