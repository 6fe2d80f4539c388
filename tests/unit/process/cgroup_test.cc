// Where control groups are to be seen, by the kernel's own words.
#include <catch2/catch.hpp>

#include "process/cgroup.h"

using namespace dcs;

namespace {
const std::string mountinfo =
    "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
    "30 22 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
    "31 22 0:27 /docker/ab /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "32 22 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "cut off - cgroup2\n\n";
const std::string own =
    "7:memory:/docker/ab/job\n3:cpu,cpuacct:/\n1:name=systemd:/init.scope\nnonsense\n"
    "0::/user.slice/ann\n";
}  // namespace

TEST_CASE("mounts of control groups, of both versions") {
    const std::vector<CgroupMount> mounts = cgroup_mounts(mountinfo);
    REQUIRE(mounts.size() == 3);
    CHECK((mounts[0].unified && mounts[0].root == "/" && mounts[0].point == "/sys/fs/cgroup"));
    CHECK((!mounts[1].unified && mounts[1].root == "/docker/ab" && mounts[1].has("memory")));
    CHECK((mounts[2].has("cpu") && mounts[2].has("cpuacct") && !mounts[2].has("cpua")));
    CHECK(cgroup_mounts("").empty());
}

TEST_CASE("a process's groups, and the mount that shows each") {
    const std::vector<CgroupMount> mounts = cgroup_mounts(mountinfo);
    const std::vector<CgroupMembership> groups = cgroup_memberships(own);
    REQUIRE(groups.size() == 4);
    CHECK((groups[0].has("memory") && groups[0].path == "/docker/ab/job" && !groups[0].unified));
    CHECK((groups[3].unified && groups[3].path == "/user.slice/ann"));
    CHECK((shows(mounts[0], groups[3]) && !shows(mounts[0], groups[0])));
    CHECK((shows(mounts[1], groups[0]) && shows(mounts[2], groups[1]) && !shows(mounts[1], groups[1])));
    CHECK_FALSE(shows(mounts[1], groups[2]));
}

TEST_CASE("the directory of a group, if the mount shows it") {
    const std::vector<CgroupMount> mounts = cgroup_mounts(mountinfo);
    CHECK(cgroup_directory(mounts[0], "/user.slice/ann") == "/sys/fs/cgroup/user.slice/ann");
    CHECK(cgroup_directory(mounts[0], "/") == "/sys/fs/cgroup");
    CHECK(cgroup_directory(mounts[1], "/docker/ab") == "/sys/fs/cgroup/memory");
    CHECK(cgroup_directory(mounts[1], "/docker/ab/job") == "/sys/fs/cgroup/memory/job");
    for (const char *elsewhere : {"/docker/abc", "/docker", "/", "", "/docker/ab/../x"}) {
        INFO(elsewhere);
        CHECK(cgroup_directory(mounts[1], elsewhere).empty());
    }
}
