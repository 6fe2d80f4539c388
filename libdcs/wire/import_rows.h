#pragma once
// An import as it comes out of the process that decodes it (scheduler/reader). That process reads the stream of a user
// with all that can be said in one; what it hands over are rows: numbers in fixed places, and texts with their lengths.
// The scheduler reads these, and checks their content, too.
//
//   head    user, session, ident, state, results, acknowledged, handed out, grains, event log, number of rows
//   rows    one for each grain: its record's fields in order, the parameters packed
//   known   for each of them what the event log says that it knew (results_known.h)
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "wire/results_known.h"
#include "wire/session_calls.h"

namespace dcs::wire {

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
