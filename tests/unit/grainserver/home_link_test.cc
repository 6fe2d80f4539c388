// A DCS home that is a symbolic link.
#include <string>

#include <sys/stat.h>
#include <unistd.h>

#include "grainserver/files/giving.h"
#include "grainserver/files/owner_rules.h"
#include "scratch_dir.h"
#include "support/catch.h"

using namespace dcs;
using bench::ScratchDir;

namespace {

uid_t owner_of(const std::string &path) {
    struct stat st {};
    REQUIRE(::stat(path.c_str(), &st) == 0);
    return st.st_uid;
}

files::Account account(uid_t uid) {
    files::Account a;
    a.change = true;
    a.uid = uid;
    a.gid = uid;
    return a;
}

}  // namespace

TEST_CASE("a DCS home may be a link of root's to a directory of the grains' account, and to nothing else") {
    if (::geteuid() != 0) return;  // only root makes directories of other accounts
    const ScratchDir dir;
    const std::string homes = dir.path + "/" + files::homes_folder, link = homes + "/ann", own = dir.path + "/ann";
    REQUIRE((::mkdir(homes.c_str(), 0711) == 0 && ::mkdir(own.c_str(), 0700) == 0));
    REQUIRE(::chown(own.c_str(), 61101, 61101) == 0);
    REQUIRE(::symlink("../ann", link.c_str()) == 0);
    const files::DirectGiving giving(dir.path);
    CHECK(giving.give_home("ann", account(61101)));

    const Status other = giving.give_home("ann", account(61102));
    CHECK(other.code == Code::not_found);
    CHECK(other.text.find("uid 61102") != std::string::npos);
    CHECK(owner_of(own) == 61101);  // never given away

    REQUIRE(::lchown(link.c_str(), 61101, 61101) == 0);
    CHECK(giving.give_home("ann", account(61101)).text.find("another account than root") != std::string::npos);
    REQUIRE((::unlink(link.c_str()) == 0 && ::symlink("nowhere", link.c_str()) == 0));
    CHECK(giving.give_home("ann", account(61101)).text.find("leads nowhere") != std::string::npos);
    const std::string file = dir.path + "/file";
    REQUIRE((::unlink(link.c_str()) == 0 && ::symlink(file.c_str(), link.c_str()) == 0));
    REQUIRE((::mknod(file.c_str(), S_IFREG | 0600, 0) == 0 && ::chown(file.c_str(), 61101, 61101) == 0));
    CHECK_FALSE(giving.give_home("ann", account(61101)));

    REQUIRE((::unlink(link.c_str()) == 0 && ::mkdir(link.c_str(), 0700) == 0));
    CHECK(giving.give_home("ann", account(61102)));
    CHECK(owner_of(link) == 61102);
}
