#pragma once
// An import as it comes out of the process that decodes it (scheduler/reader). That process reads the stream of a user
// with all that can be said in one; what it hands over are rows: numbers in fixed places, and texts with their lengths.
// The scheduler reads these, and checks their content, too.
//
//   head    user, session, ident, state, results, acknowledged, handed out, grains, event log, number of rows
//   rows    one for each grain: its record's fields in order, the parameters packed
//   known   for each of them what the event log says that it knew (ResultsKnown)
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "wire/event_log.h"
#include "wire/session_calls.h"

namespace dcs::wire {

// What the grains of a session knew of its results when they were submitted or killed, as its event log tells it: of a
// History (history.h) the part that an import takes over, and nothing else. Whatever the log says, it holds 20 bytes
// for each grain that it was made for, and an event takes the steps of one search among them.
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

// A stream is not made longer than this.
constexpr std::uint64_t import_rows_bytes(std::uint64_t stream) { return 2 * stream + 65'536; }

// The stream of an import, decoded. Takes a constant number of steps for each of its bytes, and holds at most five
// times as many. The texts of refusals are for the user.
Result<std::string> rows_of_import(std::string_view stream);

// Reads them in order. `rows` outlives it.
class ImportRows {
public:
    explicit ImportRows(std::string_view rows) : in_(rows) {}
    Result<ExportedSession> head();
    std::uint32_t count() const { return count_; }  // of rows that follow the head
    Result<ExportedGrain> grain();
    Result<std::vector<ResultsKnown::OfGrain>> known();  // after the last grain; nothing follows
    std::size_t left() const { return in_.left(); }

private:
    ByteReader in_;
    std::uint32_t count_ = 0;
};

}  // namespace dcs::wire
