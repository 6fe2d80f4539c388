// Small files of the scheduler that its host does not let it write: what it says.
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
    CHECK((*full)->write(turn::Attachment::attached).text == about("record backup's space left"));
    CHECK((*full)->read() == turn::Attachment::attached);  // what cannot be read counts as that
    CHECK(AttachedFile::open("/dev/null").status().text == about("record backup's Invalid argument"));
}

TEST_CASE("the page that names a culprit cannot be made: the reason is told") {
    CHECK(Suspect::open("/").status().text == "cannot open /: Is a directory");
    CHECK(Suspect::open("/dev/null").status().text == "cannot map /dev/null: No such device");
}
