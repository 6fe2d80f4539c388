#pragma once
// What damage may cost: nothing where there is a second copy, otherwise the trees whose bytes were
// hit, and those are named. Everything else is exactly as the last turn left it.
#include <cstdint>
#include <functional>
#include <set>
#include <string>

#include "crash/store/workload.h"

namespace dcs::test {

// Of the committed turns that wait on `good`: the trees that must be set aside on `damaged`. Told
// by comparing the two, without a checksum.
std::set<std::string> trees_lost(const SimDisk &good, const SimDisk &damaged);
// Where the turns in the journal end.
std::size_t journal_end(const SimDisk &disk);

struct Verdict {
    std::uint64_t tried = 0, harmless = 0, repaired = 0, set_aside = 0, refused = 0, wrong = 0;
    std::string first_wrong;
};

// A disk with committed turns that wait for recovery, and what it must become.
struct Patient {
    SimDisk disk;
    store::StoreOptions options;
    Files trees;  // after the last turn
    std::uint64_t turn = 0;
    std::set<std::string> set_aside;  // long ago
};

// Opens the patient with this damage to one file and compares; and again after a power failure.
void examine(const Patient &patient, const std::string &path, std::size_t offset, std::size_t length,
             const std::function<char(char)> &change, Verdict &verdict);

}  // namespace dcs::test
