#pragma once
// What the core knows of contents: those that a grain needs before it can start, and those that it made. The
// bytes are in the library on this host's disk (shell/content_cache.h).
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/instant.h"
#include "wire/content.h"

namespace dcs::server {

// One content on its way to or from the scheduler, a piece at a time.
struct Transfer {
    enum class Now : std::uint8_t {
        idle,
        waiting,  // for the scheduler's answer
        writing   // the piece that came is on its way to the disk
    };
    Now now = Now::idle;
    std::uint64_t order = 0;             // of arrival: one content after the other
    std::uint64_t total = 0, done = 0;   // bytes
    Instant until = Instant::never();    // waiting: then it is asked anew
    Instant again = Instant::never();    // idle: not before, after a failure
    int failures = 0;                    // in a row
};

// Of one grain.
struct GrainContents {
    std::set<std::string> needs;         // digests that stay on this host as long as it does
    bool recorded = false;               // its directory is there, with the list of its files
    bool to_place = false;               // its files are still to be put into its directory
    bool placing = false;                // PlaceFiles is out
    std::set<std::string> missing;       // digests that are fetched first
    int rounds = 0;                      // how often contents were missing
    bool declares = false;               // it says which files it makes
    bool keeping = false;                // KeepOutputs is out
    Instant keep_again = Instant::never();
    std::optional<std::vector<wire::GrainFile>> outputs;  // kept in the library; digest empty: not made
    std::string output_words;            // why some were not
    std::set<std::string> unsent;        // digests of them that the scheduler has not yet
};

}  // namespace dcs::server
