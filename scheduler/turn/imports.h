#pragma once
// Complete imports: decoded elsewhere, a few at a time (Outside::decode_import), and then read, a slice in each turn,
// so that a long one delays no others. Users take turns; those of one user follow one after the other.
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "scheduler/turn/import_stream.h"
#include "scheduler/turn/outside.h"
#include "wire/session_calls.h"

namespace dcs::turn {

class Imports {
public:
    // `call.request` is replaced when the import was read.
    void begin(core::UserCall call, const wire::ImportSession &order, std::string stream);
    // What connections that ended had begun is forgotten.
    void drop(ConnId conn);
    bool idle() const;                              // nothing can be done before came()
    std::size_t of(const std::string &user) const;  // imports that are not read yet
    std::uint64_t held() const;                     // bytes of streams and rows

    // Has streams decoded, as many as may be at a time.
    void send_out(Outside &outside);
    // What became of a stream that was sent out.
    void came(std::uint64_t id, Result<std::string> rows);

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
        std::string stream;                  // until it is sent out
        std::uint64_t id = 0;                // from then on
        Status status;                       // of decoding
        std::optional<ImportReader> reader;  // when it was decoded
        bool came() const { return reader || !status; }
    };
    struct Away {
        std::string user;
        std::uint64_t bytes = 0;
    };
    bool may_leave(const std::string &user, const Job &job) const;
    static Read result_of(Job &job, const core::State &state);

    std::map<std::string, std::deque<Job>> of_user_;
    std::map<std::uint64_t, Away> away_;  // sent out, dropped since or not
    std::uint64_t last_id_ = 0;
    std::string last_, last_out_;  // who had the last slice, and whose was sent out last
};

}  // namespace dcs::turn
