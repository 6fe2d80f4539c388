#pragma once
// A filter of system calls as it is written: conditions that jump ahead to an answer. The accumulator holds what was
// loaded last.
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/socket.h>

namespace dcs {

#if defined(__x86_64__)
inline constexpr std::uint32_t own_machine = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
inline constexpr std::uint32_t own_machine = AUDIT_ARCH_AARCH64;
#else
inline constexpr std::uint32_t own_machine = 0;  // no filter for this kind
#endif

class CallProgram {
public:
    std::vector<sock_filter> code;
    void load(std::uint32_t offset) { put(BPF_LD | BPF_W | BPF_ABS, offset); }
    void load_number() { load(offsetof(seccomp_data, nr)); }
    void load_machine() { load(offsetof(seccomp_data, arch)); }
    // The lower half of an argument, which is all that most calls look at.
    void load_argument(unsigned which) {
        const bool low_first = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
        load(static_cast<std::uint32_t>(offsetof(seccomp_data, args) + 8 * which + (low_first ? 0 : 4)));
    }
    void mask(std::uint32_t bits) { put(BPF_ALU | BPF_AND | BPF_K, bits); }
    void answer(std::uint32_t what) { put(BPF_RET | BPF_K, what); }
    void answer_if(std::uint32_t value, std::uint32_t what) {
        put(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
        answer(what);
    }
    void answer_if_least(std::uint32_t least, std::uint32_t what) {
        put(BPF_JMP | BPF_JGE | BPF_K, least, 0, 1);
        answer(what);
    }
    void answer_if_any(std::uint32_t bits, std::uint32_t what) {
        put(BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1);
        answer(what);
    }
    // Around what follows, unless the accumulator is `value`; end() says where that ends.
    std::size_t begin_if(std::uint32_t value) {
        put(BPF_JMP | BPF_JEQ | BPF_K, value, 1, 0);
        put(BPF_JMP | BPF_JA, 0);
        return code.size();
    }
    void end(std::size_t begun) { code[begun - 1].k = static_cast<std::uint32_t>(code.size() - begun); }
    // A call whose argument `which` is one of `words` is answered by `hit`, any other by `other`.
    void about_call(int number, unsigned which, std::initializer_list<std::uint32_t> words, std::uint32_t hit,
                    std::uint32_t other) {
        const std::size_t begun = begin_if(static_cast<std::uint32_t>(number));
        load_argument(which);
        for (const std::uint32_t word : words) answer_if(word, hit);
        answer(other);
        end(begun);
    }
    // The families of sockets that programs use, and of netlink what lists interfaces; the others are seldom reviewed.
    void about_sockets(int number, bool local, bool network, std::uint32_t other) {
        const std::size_t begun = begin_if(static_cast<std::uint32_t>(number));
        load_argument(0);
        if (local) answer_if(AF_UNIX, SECCOMP_RET_ALLOW);
        if (network) {
            answer_if(AF_INET, SECCOMP_RET_ALLOW);
            answer_if(AF_INET6, SECCOMP_RET_ALLOW);
            const std::size_t netlink = begin_if(AF_NETLINK);
            load_argument(2);
            answer_if(0, SECCOMP_RET_ALLOW);
            end(netlink);
        }
        answer(other);
        end(begun);
    }

private:
    void put(int op, std::uint32_t k, std::uint8_t yes = 0, std::uint8_t no = 0) {
        code.push_back({static_cast<std::uint16_t>(op), yes, no, k});
    }
};

}  // namespace dcs
