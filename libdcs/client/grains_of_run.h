#pragma once
// What one run of a control program has submitted in a session that an earlier run has opened, and which results it has
// taken. In such a session there may be results of grains that this run will submit only after it has decided on
// others. The earlier run had no more results then, so this one must not get them either.
#include <cstddef>
#include <map>
#include <optional>
#include <vector>

namespace dcs::wire {
struct Done;
}

namespace dcs::client {

// Most are without gaps: a million grains take as much memory as one.
class NumberSet {
public:
    bool add(int number);  // false: it is there
    bool has(int number) const { return end_of_row(number).has_value(); }
    std::optional<int> first_without(const NumberSet &other) const;  // that `other` has not

private:
    std::optional<int> end_of_row(int number) const;  // of the row that has it

    std::map<int, int> last_;  // of each row of numbers, by its first
};

class GrainsOfRun {
public:
    explicit GrainsOfRun(bool again = false) : again_(again) {}

    void submitted(const std::vector<int> &grains, const wire::Done &done);
    void taken(int grain);
    // Nothing: the run does not repeat an earlier one.
    std::optional<std::size_t> without_result() const;
    // A grain whose result this run took, which repeats an earlier one, and which it has not submitted.
    std::optional<int> only_taken() const;

private:
    bool again_, repeats_ = false;
    NumberSet submitted_, taken_;
    std::size_t left_ = 0;  // submitted, not killed before, and not taken
};

}  // namespace dcs::client
