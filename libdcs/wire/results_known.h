#pragma once
// What the grains of a session knew of its results when they were submitted or killed, as its event log tells it: of a
// History (history.h) the part that an import takes over, and nothing else. Whatever the log says, it holds 20 bytes
// for each grain that it was made for, and an event takes the steps of one search among them.
#include <cstdint>
#include <vector>

#include "wire/event_log.h"

namespace dcs::wire {

class ResultsKnown {
public:
    // `grains`: in ascending order. Events of others count as far as they change what all could know.
    explicit ResultsKnown(std::vector<std::int32_t> grains);
    void take(const Event &event);

    struct OfGrain {
        std::uint32_t known = 0;         // results that were handed out before it was submitted
        std::uint32_t killed_after = 0;  // and before it was killed
        bool told = false;               // the log has an event of it
        std::uint32_t killed_in = 0;     // not 0: it is killed, if no import came after that one
    };
    // Of the `index`th grain.
    const OfGrain &at(std::size_t index) const { return told_[index]; }

private:
    void take_grain(const Event &event, OfGrain &grain);

    std::vector<std::int32_t> grains_;
    std::vector<OfGrain> told_;
    std::uint32_t handed_out_ = 0;
    std::uint32_t imports_ = 1;  // and one
    bool begun_ = false, imported_ = false;
};

}  // namespace dcs::wire
