#include "grainserver/starter/clone_into.h"

#include <cerrno>
#include <csignal>
#include <cstdint>

#include <linux/sched.h>
#include <sched.h>
#include <sys/syscall.h>

namespace dcs::starter {
namespace {

// Returns in the parent only: the child has another stack, on which there is nothing to return to.
long clone3(const clone_args &args, void (*run)(const void *), const void *argument) noexcept {
#if defined(__x86_64__)
    long result = SYS_clone3;
    asm volatile(
        "syscall\n\t"
        "test %%rax, %%rax\n\t"
        "jnz 1f\n\t"
        "xor %%ebp, %%ebp\n\t"
        "mov %[argument], %%rdi\n\t"
        "call *%[run]\n\t"
        "hlt\n"
        "1:"
        : "+a"(result)
        : "D"(&args), "S"(sizeof args), [run] "r"(run), [argument] "r"(argument)
        : "rcx", "r11", "cc", "memory");
    return result;
#elif defined(__aarch64__)
    register long number asm("x8") = SYS_clone3;
    register long result asm("x0") = reinterpret_cast<long>(&args);
    register long size asm("x1") = sizeof args;
    asm volatile(
        "svc #0\n\t"
        "cbnz x0, 1f\n\t"
        "mov x29, #0\n\t"
        "mov x0, %[argument]\n\t"
        "blr %[run]\n\t"
        "brk #0\n"
        "1:"
        : "+r"(result)
        : "r"(number), "r"(size), [run] "r"(run), [argument] "r"(argument)
        : "cc", "memory");
    return result;
#else
    (void)args, (void)run, (void)argument;
    return -ENOSYS;
#endif
}

}  // namespace

pid_t clone_into(int group, int flags, std::span<char> stack, void (*run)(const void *),
                 const void *argument) noexcept {
    clone_args args{};
    args.flags = static_cast<std::uint64_t>(flags) | CLONE_INTO_CGROUP;
    // The parent's own signal, and no other, with CLONE_PARENT.
    args.exit_signal = (flags & CLONE_PARENT) != 0 ? 0 : SIGCHLD;
    args.stack = reinterpret_cast<std::uintptr_t>(stack.data());
    args.stack_size = stack.size();
    args.cgroup = static_cast<std::uint64_t>(group);
    const long pid = clone3(args, run, argument);
    if (pid >= 0) return static_cast<pid_t>(pid);
    errno = static_cast<int>(-pid);
    return -1;
}

}  // namespace dcs::starter
