#include "grainserver/files/syscall_filter.h"

#include <cerrno>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <map>
#include <utility>

#include <sched.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "process/call_program.h"
#include "base/require.h"
#include "grainserver/files/grain_calls.h"

namespace dcs::files {
namespace {
// System call numbers of one architecture; -1: it has no such call.
struct Numbers {
    std::uint32_t arch;
    std::vector<int> allowed;  // besides the common ones
    std::initializer_list<int> tracing;
    int ptrace, clone, unshare, ioctl, ioprio_set, socket, socketcall;
};

// Numbers from 424 on are common to all architectures; headers of older systems lack some.
constexpr int nr_clone3 = 435, nr_pidfd_getfd = 438;
// pidfd_send_signal; pidfd_open, close_range, openat2, faccessat2, process_madvise, epoll_pwait2, landlock_*,
// memfd_secret, futex_waitv, set_mempolicy_home_node, cachestat, fchmodat2, map_shadow_stack, futex_*
constexpr int common_calls[] = {424, 434, 436, 437, 439, 440, 441, 444, 445, 446,
                                447, 449, 450, 451, 452, 453, 454, 455, 456};

#define NUMBER(name) SYS_##name,
const Numbers own_numbers{own_machine,
                          {DCS_GRAIN_CALLS(NUMBER) DCS_GRAIN_CALLS_64(NUMBER)
#if defined(__x86_64__)
                               DCS_GRAIN_CALLS_X86(NUMBER)
#endif
                          },
                          {SYS_process_vm_readv, SYS_process_vm_writev, nr_pidfd_getfd, SYS_kcmp},
                          SYS_ptrace,
                          SYS_clone,
                          SYS_unshare,
                          SYS_ioctl,
                          SYS_ioprio_set,
                          SYS_socket,
                          -1};
#undef NUMBER

#if defined(__x86_64__)
const Numbers numbers_of_i386{AUDIT_ARCH_I386,
                              grain_calls_of_i386(),
                              {347 /* process_vm_readv */, 348 /* process_vm_writev */, nr_pidfd_getfd, 349 /* kcmp */},
                              26,
                              120,
                              310,
                              54,
                              289,
                              359,
                              102};
#endif

constexpr std::uint32_t new_namespaces =
    CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWCGROUP |
    0x80u /* CLONE_NEWTIME; in clone() part of the signal number, which is below it */;
constexpr std::uint32_t ioprio_class = 7u << 13, ioprio_idle = 3u << 13;
constexpr std::uint32_t traceme = 0;             // PTRACE_TRACEME: permits tracing by the parent
constexpr std::uint32_t subcode_linux = 0x541c;  // TIOCLINUX: like TIOCSTI, puts input into a terminal
constexpr std::uint32_t x32_bit = 0x40000000;    // marks the x32 table of numbers on x86_64
constexpr std::uint32_t first_unknown = 457;     // of the numbers common to all architectures: Linux 6.8
constexpr std::uint32_t call_socket = 1;         // of socketcall, whose other arguments are in memory
constexpr std::uint32_t denied = SECCOMP_RET_ERRNO | EPERM, absent = SECCOMP_RET_ERRNO | ENOSYS;
constexpr std::uint32_t no_network = SECCOMP_RET_ERRNO | EACCES;

using Code = std::vector<sock_filter>;

// The answers to the calls of one machine, as a search by halves. A grain's start pays for each instruction (the kernel
// compiles the filter) and for the way to each number's answer (it walks them all once): rows of comparisons take three
// times as long.
class Answers {
public:
    void on(int number, Code answer) {
        DCS_REQUIRE(number >= 0 && !answer.empty(), "a call of this machine has a number and an answer");
        by_number_[static_cast<std::uint32_t>(number)] = std::move(answer);
    }
    void on(int number, std::uint32_t answer) { on(number, fixed(answer)); }

    // All other numbers are denied.
    Code search() {
        std::vector<Row> rows{{0, fixed(denied)}};
        const auto add = [&](std::uint32_t first, const Code &code) {
            if (rows.back().first == first) rows.pop_back();
            if (rows.empty() || !same(rows.back().code, code)) rows.push_back({first, code});
        };
        for (const auto &[number, code] : by_number_) {
            add(number, code);
            add(number + 1, fixed(denied));
        }
        half(rows.data(), rows.data() + rows.size());
        return {back_.rbegin(), back_.rend()};
    }

private:
    struct Row {
        std::uint32_t first;  // up to that of the next row
        Code code;
    };
    static Code fixed(std::uint32_t answer) { return {{BPF_RET | BPF_K, 0, 0, answer}}; }
    static bool same(const Code &a, const Code &b) { return a.size() == 1 && b.size() == 1 && a[0].k == b[0].k; }

    // Places are counted from the end, from which the code is written: jumps lead ahead.
    std::size_t distance(std::size_t place) const { return back_.size() - place; }
    std::size_t put(sock_filter instruction) {
        back_.push_back(instruction);
        return back_.size();
    }
    std::size_t answer(const Code &code) {
        std::size_t *shared = code.size() == 1 ? &answers_[code[0].k] : nullptr;
        if (shared != nullptr && *shared != 0 && distance(*shared) < near) return *shared;
        back_.insert(back_.end(), code.rbegin(), code.rend());
        if (shared != nullptr) *shared = back_.size();
        return back_.size();
    }
    std::size_t reachable(std::size_t place) {
        if (distance(place) < near) return place;
        return put({BPF_JMP | BPF_JA, 0, 0, static_cast<std::uint32_t>(distance(place))});
    }
    std::size_t half(const Row *begin, const Row *end) {
        DCS_REQUIRE(begin < end, "every half has a row");
        if (end - begin == 1) return answer(begin->code);
        const Row *middle = begin + (end - begin) / 2;
        const std::size_t upper = half(middle, end), lower = half(begin, middle);
        const std::size_t yes = reachable(upper), no = reachable(lower);
        return put({BPF_JMP | BPF_JGE | BPF_K, static_cast<std::uint8_t>(distance(yes)),
                    static_cast<std::uint8_t>(distance(no)), middle->first});
    }

    static constexpr std::size_t near = 250;  // of 255, which a comparison can skip
    std::map<std::uint32_t, Code> by_number_;
    Code back_;
    std::map<std::uint32_t, std::size_t> answers_;
};

// A call whose argument `which` is one of `words` gets `hit`, any other `other`.
Code by_argument(unsigned which, std::initializer_list<std::uint32_t> words, std::uint32_t hit, std::uint32_t other) {
    CallProgram p;
    p.load_argument(which);
    for (const std::uint32_t word : words) p.answer_if(word, hit);
    p.answer(other);
    return std::move(p.code);
}

Code without_flags(std::uint32_t flags) {
    CallProgram p;
    p.load_argument(0);
    p.answer_if_any(flags, denied);
    p.answer(SECCOMP_RET_ALLOW);
    return std::move(p.code);
}

// A grain's input and output stay behind those of other programs.
Code idle_only() {
    CallProgram p;
    p.load_argument(2);
    p.mask(ioprio_class);
    p.answer_if(ioprio_idle, SECCOMP_RET_ALLOW);
    p.answer(denied);
    return std::move(p.code);
}

Code sockets(bool network) {
    CallProgram p;
    p.answer_sockets(true, network, no_network);
    return std::move(p.code);
}

Code search_of(const Numbers &n, const FilterWish &wish) {
    Answers answers;
    for (const int number : n.allowed) answers.on(number, SECCOMP_RET_ALLOW);
    for (const int number : common_calls) answers.on(number, SECCOMP_RET_ALLOW);
    // Its flags are in memory, which a filter cannot read: without clone3, programs use clone.
    answers.on(nr_clone3, wish.clone3 ? SECCOMP_RET_ALLOW : absent);
    answers.on(n.clone, without_flags(new_namespaces & ~0xffu));
    answers.on(n.unshare, without_flags(new_namespaces));
    answers.on(n.ioctl, by_argument(1, {TIOCSTI, subcode_linux}, denied, SECCOMP_RET_ALLOW));
    answers.on(n.ioprio_set, idle_only());
    const std::uint32_t others = wish.may_trace ? SECCOMP_RET_ALLOW : denied;
    for (const int number : n.tracing) answers.on(number, others);
    answers.on(n.ptrace, by_argument(0, {traceme}, SECCOMP_RET_ALLOW, others));
    answers.on(n.socket, sockets(wish.network));
    if (n.socketcall >= 0) answers.on(n.socketcall, by_argument(0, {call_socket}, no_network, SECCOMP_RET_ALLOW));
    return answers.search();
}

void block(CallProgram &p, const Numbers &n, const FilterWish &wish) {
    const std::size_t begun = p.begin_if(n.arch);
    p.load_number();
    if (n.arch == AUDIT_ARCH_X86_64) p.answer_if_any(x32_bit, absent);
    // What kernels have got since was not looked at; programs have to do without it on older ones, too.
    p.answer_if_least(first_unknown, absent);
    const Code search = search_of(n, wish);
    p.code.insert(p.code.end(), search.begin(), search.end());
    p.end(begun);
}

int put_on(const sock_filter *program, std::size_t size) noexcept {
    const sock_fprog all{static_cast<unsigned short>(size), const_cast<sock_filter *>(program)};
    return ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &all) == 0 ? 0 : errno;
}
}  // namespace

std::vector<sock_filter> syscall_filter(const FilterWish &wish) {
    if (own_machine == 0) return {};
    CallProgram p;
    p.load_machine();
    block(p, own_numbers, wish);
#if defined(__x86_64__)
    block(p, numbers_of_i386, wish);
#endif
    p.answer(absent);  // calls of another architecture
    DCS_REQUIRE(p.code.size() <= BPF_MAXINSNS, "the filter does not exceed BPF_MAXINSNS");
    return std::move(p.code);
}

bool filter_available() {
    const std::uint32_t action = SECCOMP_RET_ERRNO;
    return own_machine != 0 && ::syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

int put_filter_on(const std::vector<sock_filter> &program) noexcept { return put_on(program.data(), program.size()); }

// The number is the same on all machines.
int deny_clone3() noexcept {
    static constexpr sock_filter program[] = {{BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
                                              {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, nr_clone3},
                                              {BPF_RET | BPF_K, 0, 0, absent},
                                              {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
    return put_on(program, std::size(program));
}

}  // namespace dcs::files
