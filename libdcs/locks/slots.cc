#include "locks/slots.h"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

namespace dcs::locks {
namespace {

constexpr int highest_slot = 99'999;

std::string slot_path(const std::string &directory, int number) {
    return directory + "/" + std::to_string(number);
}

// "0", "17"; -1 for any other name ("01", "guard").
int slot_number(const char *name) {
    std::string text = name;
    if (text.empty() || text.size() > 5 || (text[0] == '0' && text.size() > 1)) return -1;
    int number = 0;
    for (char c : text) {
        if (c < '0' || c > '9') return -1;
        number = number * 10 + (c - '0');
    }
    return number;
}

std::vector<int> slot_numbers(const std::string &directory) {
    std::vector<int> numbers;
    DIR *dir = ::opendir(directory.c_str());
    if (dir == nullptr) return numbers;
    while (const dirent *entry = ::readdir(dir)) {
        int number = slot_number(entry->d_name);
        if (number >= 0) numbers.push_back(number);
    }
    ::closedir(dir);
    std::sort(numbers.begin(), numbers.end());
    return numbers;
}

// Counting and taking must be one step, or two takers could each see the last free place.
Result<KernelLock> enter(const std::string &directory) {
    std::string note = std::to_string(::getpid()) + " taker of a slot\n";
    for (int tries = 0;; ++tries) {
        Result<KernelLock> guard = KernelLock::take(directory + "/guard", note);
        if (guard || guard.status().code != Code::refused) return guard;
        if (tries == 25'000)
            return fail(Code::io_error, "no turn for a slot: " + guard.status().text);
        timespec pause = {0, 200'000};
        ::nanosleep(&pause, nullptr);
    }
}

}  // namespace

Result<KernelLock> take_slot(const std::string &directory, int limit, const std::string &note,
                             int *number) {
    if (limit > highest_slot + 1) return fail(Code::invalid, "more than 100000 slots in " + directory);
    if (limit <= 0) return fail(Code::limit, "no slots are permitted in " + directory);
    if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST)
        return fail_errno(Code::io_error, "cannot make " + directory, errno);
    Result<KernelLock> guard = enter(directory);
    if (!guard) return guard;

    std::vector<int> held;
    for (int slot : slot_numbers(directory))
        if (is_held(slot_path(directory, slot))) held.push_back(slot);
    if (held.size() < static_cast<std::size_t>(limit)) {
        for (int slot = 0; slot < limit; ++slot) {
            if (std::binary_search(held.begin(), held.end(), slot)) continue;
            Result<KernelLock> lock = KernelLock::take(slot_path(directory, slot), note);
            if (!lock && lock.status().code == Code::refused) continue;  // by somebody without guard
            if (lock) *number = slot;
            return lock;
        }
    }
    return fail(Code::limit, "all " + std::to_string(limit) + " slots of " + directory + " are held");
}

std::vector<SlotState> list_slots(const std::string &directory) {
    std::vector<SlotState> slots;
    for (int number : slot_numbers(directory)) {
        std::string path = slot_path(directory, number);
        slots.push_back(SlotState{number, is_held(path), note_of(path)});
    }
    return slots;
}

}  // namespace dcs::locks
