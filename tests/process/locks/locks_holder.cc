// One request for an atom, in a process that can be killed at any point of it (support/failpoint.cc):
//     locks_holder NAME IFELAPSED EXPIREAFTER [hold|wait|leave]
// Seconds; in $DCS_LOCK_DIR. Prints "WORD token after_crash took_over"; hold: keeps the lock until it is killed.
// leave: releases it when its input ends, prints "released", and stays.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <unistd.h>

#include "locks/adaptive_lock.h"

using namespace dcs::locks;

int main(int argc, char **argv) {
    if (argc < 4) return 2;
    const std::string how = argc > 4 ? argv[4] : "";
    const auto place = place_of(Atom{"holder", argv[1], ""}, ".lock");
    if (!place) return 9;
    LockRequest request;
    request.place = *place;
    request.if_elapsed = static_cast<std::int64_t>(std::atof(argv[2]) * 1e9);
    request.expire_after = static_cast<std::int64_t>(std::atof(argv[3]) * 1e9);
    request.max_kills = 1000;
    if (how == "wait") request.wait = Deadline::never();
    AdaptiveLock lock;
    const Answer answer = AdaptiveLock::get(this_world(), request, lock);
    std::printf("%s %llu %d %d\n", denied_word(answer.denied), static_cast<unsigned long long>(lock.generation()),
                answer.after_crash ? 1 : 0, answer.took_over ? 1 : 0);
    std::fflush(stdout);
    if (!lock.held()) return answer.denied == Denied::failed ? 1 : 0;
    if (how == "hold")
        for (;;) ::pause();
    if (how == "leave")
        while (std::getchar() != EOF) {}
    lock.release({});
    if (how != "leave") return 0;
    std::puts("released");
    std::fflush(stdout);
    for (;;) ::pause();
}
