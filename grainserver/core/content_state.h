#pragma once
// The core's state of contents: those that a grain needs before it can start, and those that grains made. The
// bytes are in the library on this host's disk (shell/content_cache.h).
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/instant.h"
#include "wire/content_calls.h"

namespace dcs::server {

// The transfer of one content to or from the scheduler, in pieces. The first one goes alone: the scheduler may have to
// read all of it, or may have it already. After that some are on their way at a time.
struct Transfer {
    enum class Now : std::uint8_t {
        idle,
        waiting,  // for the scheduler's answers
        writing   // what has arrived is being written to the disk
    };
    Now now = Now::idle;
    std::uint64_t order = 0;            // of arrival: contents are transferred one after the other,
    std::string user;                   // of users in turn: whose grain wanted it first
    std::uint64_t total = 0, done = 0;  // bytes; done: arrived in order
    std::uint64_t kept = 0;             // of these: written to the disk, or accepted by the scheduler
    std::uint64_t asked = 0;            // up to there pieces were requested or sent
    std::size_t unanswered = 0;         // of these pieces
    bool flows = false;                 // the first piece was answered as expected
    bool astray = false;  // to the scheduler: it expects another piece; the answers on their way come first
    Instant until = Instant::never();  // waiting: the time of the next request
    Instant again = Instant::never();  // idle: the earliest retry after a failure
    int failures = 0;                  // in a row
};
inline constexpr std::uint64_t pieces_ahead = 8;
inline constexpr Duration answer_patience = seconds(120);  // the scheduler may have to read or sync all of it first

// The contents of one grain.
struct GrainContents {
    std::set<std::string> needs;    // digests that are kept as long as the grain is on this host
    bool recorded = false;          // its directory exists, with the list of its files
    bool to_place = false;          // its files are not in its directory yet
    bool placing = false;           // PlaceFiles is not answered yet
    std::set<std::string> missing;  // digests that must be fetched first
    int rounds = 0;                 // how often in a row contents were missing, or outputs could not be kept or put
    bool declares = false;          // it declares the files that it makes
    bool keeping = false;           // KeepOutputs is not answered yet
    Instant keep_again = Instant::never();
    std::optional<std::vector<wire::GrainFile>> outputs;  // kept in the library; digest empty: not made
    std::string output_words;                             // why some were not kept
    std::set<std::string> unsent;                         // digests of outputs that the scheduler does not have yet
};

}  // namespace dcs::server
