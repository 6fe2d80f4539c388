#pragma once
// Complete imports that are being read, a slice in each turn, so that a long one delays no others. Users take
// turns; those of one user are read one after the other.
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "scheduler/turn/import_stream.h"
#include "wire/session_calls.h"

namespace dcs::turn {

class Imports {
public:
    // `call.request` is replaced when the stream was read.
    void begin(core::UserCall call, const wire::ImportSession &order, std::string stream);
    // What connections that ended had begun is forgotten.
    void drop(ConnId conn);
    bool empty() const { return of_user_.empty(); }
    std::uint64_t held() const;  // bytes of streams

    // Whose import next() reads; empty: there is none.
    const std::string &whose() const;
    struct Read {
        core::UserCall call;  // can be decided now
        Status status;        // unless this is wrong with it
    };
    // Reads a slice. Returns an import that was read to its end, or is refused.
    std::optional<Read> next(const core::State &state, Contents &contents);

private:
    struct Job {
        core::UserCall call;
        wire::ImportSession order;
        ImportReader reader;
    };
    std::map<std::string, std::deque<Job>> of_user_;
    std::string last_;  // who had the last slice
};

}  // namespace dcs::turn
