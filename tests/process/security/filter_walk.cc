// Prints how a grain's filter of system calls answers each number, by walking its program as a kernel does; so the
// filter of another machine can be examined, under an emulator that has no filters. Rows: wish, architecture, number,
// answer.
#include <cstdio>
#include <cstdlib>
#include <utility>

#include <linux/audit.h>
#include <linux/seccomp.h>

#include "grainserver/files/syscall_filter.h"
#include "process/call_program.h"

namespace {
std::uint32_t answer_of(const std::vector<sock_filter> &code, const seccomp_data &call) {
    std::uint32_t a = 0;
    for (std::size_t at = 0; at < code.size(); ++at) {
        const sock_filter &c = code[at];
        const auto jump = [&](bool yes) { at += yes ? c.jt : c.jf; };
        switch (c.code) {
        case BPF_LD | BPF_W | BPF_ABS:
            a = *reinterpret_cast<const std::uint32_t *>(reinterpret_cast<const char *>(&call) + c.k);
            break;
        case BPF_ALU | BPF_AND | BPF_K: a &= c.k; break;
        case BPF_JMP | BPF_JA: at += c.k; break;
        case BPF_JMP | BPF_JEQ | BPF_K: jump(a == c.k); break;
        case BPF_JMP | BPF_JGE | BPF_K: jump(a >= c.k); break;
        case BPF_JMP | BPF_JSET | BPF_K: jump((a & c.k) != 0); break;
        case BPF_RET | BPF_K: return c.k;
        default: std::abort();
        }
    }
    std::abort();  // beyond its end
}

const char *word(std::uint32_t answer) {
    switch (answer) {
    case SECCOMP_RET_ALLOW: return "allowed";
    case SECCOMP_RET_ERRNO | 1 /* EPERM */: return "EPERM";
    case SECCOMP_RET_ERRNO | 13 /* EACCES */: return "EACCES";
    case SECCOMP_RET_ERRNO | 38 /* ENOSYS */: return "ENOSYS";
    }
    return "unknown";
}

void walk(const char *wish, const std::vector<sock_filter> &code, const char *name, std::uint32_t arch,
          std::uint64_t argument) {
    for (const std::uint32_t base : {0u, 0x40000000u})
        for (std::uint32_t nr = base; nr < base + 600; ++nr) {
            seccomp_data call{};
            call.nr = static_cast<int>(nr);
            call.arch = arch;
            for (auto &a : call.args) a = argument;
            std::printf("%s %s %u %s\n", wish, name, nr, word(answer_of(code, call)));
        }
}
}  // namespace

namespace dcs {
[[noreturn]] void require_failed(const char *, int, const char *, const char *) noexcept { std::abort(); }
}  // namespace dcs

int main() {
    const struct {
        const char *name;
        dcs::files::FilterWish wish;
    } wishes[] = {{"usual", {}}, {"trace", {true, true}}, {"no_network", {false, false}}};
    for (const auto &[name, wish] : wishes) {
        const std::vector<sock_filter> code = dcs::files::syscall_filter(wish);
        walk(name, code, "own", dcs::own_machine, 2);  // 2: AF_INET; no flags of namespaces; not to be traced
        walk(name, code, "i386", AUDIT_ARCH_I386, 2);
        walk(name, code, "foreign", AUDIT_ARCH_MIPS, 2);
    }
    const std::vector<sock_filter> usual = dcs::files::syscall_filter({});
    for (const auto &[name, priority] : {std::pair{"no_class", 0},
                                         {"realtime", 1 << 13},
                                         {"best_effort", 2 << 13 | 4},
                                         {"idle", 3 << 13},
                                         {"idle_7", 3 << 13 | 7},
                                         {"unknown", 7 << 13}}) {
        walk(name, usual, "own", dcs::own_machine, static_cast<std::uint64_t>(priority));
        walk(name, usual, "i386", AUDIT_ARCH_I386, static_cast<std::uint64_t>(priority));
    }
    return 0;
}
