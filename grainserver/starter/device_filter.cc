#include "grainserver/starter/device_filter.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include <fcntl.h>
#include <linux/bpf.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/planted.h"
#include "process/cgroup.h"

namespace dcs::starter {
namespace {

constexpr const char *gpu = "gpu";

std::optional<Device> device_of(const std::string &directory, std::int32_t index) {
    struct stat st {};
    if (::stat((directory + "/nvidia" + std::to_string(index)).c_str(), &st) != 0 || !S_ISCHR(st.st_mode)) return {};
    return Device{major(st.st_rdev), minor(st.st_rdev)};
}

std::vector<std::int32_t> own_gpus(const GivenResources &given) {
    const auto found = given.indices.find(gpu);
    return found == given.indices.end() ? std::vector<std::int32_t>() : found->second;
}

bool is_in(const Devices &devices, const Device &device) {
    return std::find(devices.begin(), devices.end(), device) != devices.end();
}

// The program of a control group of version 2, which the kernel asks at each open: 0 denies.
std::vector<bpf_insn> program_against(const Devices &devices) {
    constexpr std::uint8_t answer = BPF_REG_0, asked = BPF_REG_1, kind = BPF_REG_2, its_major = BPF_REG_3,
                           its_minor = BPF_REG_4;
    const auto step = [](int code, std::uint8_t to, std::uint8_t from, int offset, std::uint32_t value) {
        bpf_insn made{};
        made.code = static_cast<std::uint8_t>(code);
        made.dst_reg = to & 0xf;
        made.src_reg = from & 0xf;
        made.off = static_cast<std::int16_t>(offset);
        made.imm = static_cast<std::int32_t>(value);
        return made;
    };
    const auto load = [&](std::uint8_t to, std::size_t field) {
        return step(BPF_LDX | BPF_MEM | BPF_W, to, asked, static_cast<int>(field), 0);
    };
    const auto skip_unless = [&](std::uint8_t what, std::uint32_t value, int steps) {
        return step(BPF_JMP | BPF_JNE | BPF_K, what, 0, steps, value);
    };
    const auto end = [&](std::uint32_t value) {
        return std::vector<bpf_insn>{step(BPF_ALU64 | BPF_MOV | BPF_K, answer, 0, 0, value),
                                     step(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)};
    };
    std::vector<bpf_insn> program = {load(kind, offsetof(bpf_cgroup_dev_ctx, access_type)),
                                     load(its_major, offsetof(bpf_cgroup_dev_ctx, major)),
                                     load(its_minor, offsetof(bpf_cgroup_dev_ctx, minor)),
                                     step(BPF_ALU64 | BPF_AND | BPF_K, kind, 0, 0, 0xffff),  // above: read, write, make
                                     skip_unless(kind, BPF_DEVCG_DEV_BLOCK, 2)};
    const auto add = [&](const std::vector<bpf_insn> &steps) {
        program.insert(program.end(), steps.begin(), steps.end());
    };
    add(end(1));
    for (const Device &device : devices) {
        add({skip_unless(its_major, device.major, 3), skip_unless(its_minor, device.minor, 2)});
        add(end(0));
    }
    add(end(1));
    return program;
}

long bpf(bpf_cmd command, bpf_attr &attributes) { return ::syscall(SYS_bpf, command, &attributes, sizeof attributes); }

// The group keeps the program until it is removed.
bool attach(const std::string &group, const std::vector<bpf_insn> &program) {
    const Fd directory(::open(group.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const char license[] = "";
    bpf_attr load{};
    load.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
    load.insn_cnt = static_cast<std::uint32_t>(program.size());
    load.insns = reinterpret_cast<std::uintptr_t>(program.data());
    load.license = reinterpret_cast<std::uintptr_t>(license);
    const Fd loaded(static_cast<int>(bpf(BPF_PROG_LOAD, load)));
    if (!directory || !loaded) return false;
    bpf_attr place{};
    place.target_fd = static_cast<std::uint32_t>(directory.get());
    place.attach_bpf_fd = static_cast<std::uint32_t>(loaded.get());
    place.attach_type = BPF_CGROUP_DEVICE;
    place.attach_flags = BPF_F_ALLOW_MULTI;  // the service manager may have one for a group above
    return bpf(BPF_PROG_ATTACH, place) == 0;
}

}  // namespace

bool gpus_by_file() { return std::getenv("CUDA_VISIBLE_DEVICES") == nullptr; }

Devices others_devices(const std::string &offers, const GivenResources &given, const std::string &directory) {
    Devices others;
    const Result<Offers> offered = offers_of(offers);
    const auto gpus = offered ? offered->find(gpu) : Offers::const_iterator();
    if (!offered || gpus == offered->end()) return others;
    const std::vector<std::int32_t> own = own_gpus(given);
    for (const std::int32_t index : gpus->second.indices) {
        if (std::find(own.begin(), own.end(), index) != own.end() && !planted("launcher.own_device_denied")) continue;
        if (const auto device = device_of(directory, index)) others.push_back(*device);
    }
    return others;
}

void number_for_cuda(std::vector<std::string> &env, const GivenResources &given, const Devices &denied, bool contained,
                     const std::string &directory) {
    if (!contained && denied.empty()) return;
    const std::string variable = "CUDA_VISIBLE_DEVICES=";
    std::string numbers;
    std::int32_t index = 0, open = 0;
    for (const std::int32_t its : own_gpus(given)) {
        for (; index < its; ++index)
            if (const auto other = device_of(directory, index); !contained && other && !is_in(denied, *other)) ++open;
        numbers += (numbers.empty() ? "" : ",") + std::to_string(open++);
        ++index;
    }
    for (std::string &item : env)
        if (!numbers.empty() && item.starts_with(variable)) item = variable + numbers;
}

std::string gpus_of(const GivenResources &given, bool by_file) {
    std::string list;
    for (const std::int32_t index : own_gpus(given)) list += (list.empty() ? "" : ",") + std::to_string(index);
    return list.empty() || by_file ? list : "all";
}

bool deny_devices(const std::string &group, bool unified, const Devices &devices) {
    if (planted("launcher.devices_open")) return true;
    if (unified) return attach(group, program_against(devices));
    return std::all_of(devices.begin(), devices.end(), [&](const Device &device) {
        return write_control(group + "/devices.deny",
                             "c " + std::to_string(device.major) + ":" + std::to_string(device.minor) + " rwm");
    });
}

}  // namespace dcs::starter
