// Which GPUs a grain is kept from, and by which numbers CUDA knows its own.
#include "grainserver/starter/device_filter.h"

#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/files.h"
#include "grainserver/launcher/start_grain.h"
#include "scratch_dir.h"
#include "support/catch.h"

using namespace dcs;
using namespace bench;
using starter::Device;
using starter::Devices;

namespace {

const Device null{1, 3}, zero{1, 5}, full{1, 7};

// nvidia0, nvidia1, nvidia3 are devices that each host has; nvidia4 is a file.
struct PaperDevices {
    ScratchDir d;
    PaperDevices() {
        for (const auto &[name, device] :
             {std::pair{"nvidia0", "/dev/null"}, {"nvidia1", "/dev/zero"}, {"nvidia3", "/dev/full"}})
            REQUIRE(::symlink(device, (d.path + "/" + name).c_str()) == 0);
        put_file(d.path + "/nvidia4", "");
    }
    Devices others(const std::string &offers, std::vector<std::int32_t> own) const {
        return starter::others_devices(offers, gives(std::move(own)), d.path);
    }
    std::string numbers(std::vector<std::int32_t> own, const Devices &denied, bool contained) const {
        const GivenResources given = gives(std::move(own));
        std::vector<std::string> env = {"CUDA_VISIBLE_DEVICES=as before"};
        starter::number_for_cuda(env, given, denied, contained, d.path);
        return env[0].substr(env[0].find('=') + 1);
    }
    static GivenResources gives(std::vector<std::int32_t> own) {
        GivenResources given;
        if (!own.empty()) given.indices.emplace("gpu", std::move(own));
        return given;
    }
};

}  // namespace

TEST_CASE("a grain is kept from the GPUs that its host offers and that are not its own, and from no other device") {
    const PaperDevices p;
    CHECK(p.others("gpu=[0,1,3]", {1}) == Devices{null, full});
    CHECK(p.others("gpu=[0,1,3]", {0, 1, 3}).empty());
    CHECK(p.others("gpu=[0,1,3]", {}) == Devices{null, zero, full});
    CHECK(p.others("gpu=[1,2,4],tpu=[0]", {}) == Devices{zero});  // of 2 and 4 there is no device
    CHECK(p.others("gpu=3", {}).empty());
    CHECK(p.others("tpu=[0,1]", {}).empty());
    CHECK(p.others("", {0}).empty());
}

TEST_CASE("CUDA counts the GPUs that a program can open") {
    const PaperDevices p;
    CHECK(p.numbers({3}, {null, zero}, false) == "0");
    CHECK(p.numbers({1, 3}, {null}, false) == "0,1");
    CHECK(p.numbers({3}, {zero}, false) == "1");  // 0 is not offered, so it can be opened
    CHECK(p.numbers({0, 3}, {zero}, false) == "0,1");
    CHECK(p.numbers({0, 3}, {}, false) == "as before");  // nothing is kept from it
    CHECK(p.numbers({1, 3}, {}, true) == "0,1");         // a container has no others
    CHECK(p.numbers({}, {null}, false) == "as before");  // of the submission
}

TEST_CASE("a spare leaf that keeps its processes from other devices goes to no grain") {
    ScratchDir d;
    const std::string group = d.path + "/cg/dcs-1-2";
    const auto file = [](const std::string &path, const std::string &text) {
        REQUIRE(make_directories(path.substr(0, path.rfind('/'))));
        put_file(path, text);
    };
    file(d.path + "/proc/self/cgroup", "5:devices:/\n");
    file(d.path + "/proc/self/mountinfo", "36 31 0:33 / /cg rw - cgroup cgroup rw,devices\n");
    for (const char *leaf : {"probe", "a", "b", "c"})
        for (const char *name : {"tasks", "devices.deny"}) file(group + "/" + leaf + "/" + name, "");
    starter::Cgroups groups;
    const std::string said = groups.open("dcs-1-2", d.path);
    INFO(said);
    REQUIRE(groups.denies_devices());
    starter::Starter within(d.path, groups, ::getpid());
    starter::StarterClient asks;
    asks.use(within);
    launcher::Leaves leaves(groups, asks);
    REQUIRE_FALSE(leaves.take("none", {}).there);  // a grain that is kept from nothing needs no leaf here
    starter::Leaf a = leaves.take("a", {}, {null, zero});
    REQUIRE((a.there && a.denied == Devices{null, zero}));
    const Result<std::string> denied = read_file(AT_FDCWD, group + "/a/devices.deny", 100);
    REQUIRE(denied);
    CHECK(*denied == "c 1:5 rwm");  // each of them in one write
    REQUIRE(leaves.give_back(a));
    REQUIRE(leaves.take("b", {}, {null}).name == "b");
    REQUIRE(leaves.take("c", {}, {null, zero}).name == "a");
}
