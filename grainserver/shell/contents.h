#pragma once
// The server's operations on contents (core/content_state.h): keeps those that arrive, places them for grains, keeps
// the outputs of grains. Long operations are done in slices.
#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "grainserver/core/step.h"
#include "grainserver/files/program_file.h"
#include "grainserver/files/room.h"
#include "grainserver/shell/content_cache.h"
#include "grainserver/shell/copying.h"
#include "grainserver/shell/grain_files.h"
#include "grainserver/shell/work.h"

namespace dcs::server {

class Contents {
public:
    using Tell = std::function<void(Input)>;
    using Say = std::function<void(wire::AnyMessage)>;

    Contents(GrainFiles &files, Tell tell, Say say) : files_(files), tell_(std::move(tell)), say_(std::move(say)) {}
    Status open(const std::string &directory, const std::string &binary_class, std::uint64_t max_bytes,
                std::function<ContentCache::Names()> needed);
    void keep_at_most(std::uint64_t bytes) { cache_.keep_at_most(bytes); }
    // The function that opens programs outside the library: files/program_file.h, or a privileged process.
    using OpenProgram = std::function<Result<Fd>(const std::string &path, const files::Account &account)>;
    void open_programs_by(OpenProgram open) { open_program_ = std::move(open); }

    // ---- the effects, each answered as in core/input_effect.h ----
    void place(const GrainId &id) { begin(id, place_files(id)); }
    void keep(const KeepPiece &piece);
    void drop(const std::string &digest) { cache_.drop(digest); }
    void keep_outputs(const GrainId &id) { begin(id, take_outputs(id)); }
    void send(const SendPiece &piece) { begin({}, send_piece(piece)); }
    // The grain's directory will be removed: stops all work there.
    void give_up(const GrainId &id);

    // ---- the loop ----
    bool busy() const { return !jobs_.empty(); }
    void go_on();  // one slice; user by user
    bool tidy();   // from time to time, when idle; true: again soon

private:
    struct Job {
        GrainId id;
        Work work;
    };
    // Identifies a file whose digest was computed.
    using Identity = std::array<std::int64_t, 7>;

    void begin(const GrainId &id, Work work) { jobs_[id.key.session.user].push_back({id, std::move(work)}); }
    Work place_files(GrainId id);
    // Steps of these: `for (Work w = step(...); w.go_on();) co_yield Slice{};`
    static Work read_digest(int fd, std::string *digest);  // of the whole file; empty if it cannot be read
    Work verify(std::string digest);                       // removes the content if it is damaged
    Result<bool> go_on(Copying &copying);                  // a full disk: once what no grain needs is removed
    Work know_program(const files::LaunchRecord *record, const files::FileRecord **program);
    Work fill_room(const files::LaunchRecord *record, const files::Room *room, const files::FileRecord *program,
                   Status *status);
    Work take_outputs(GrainId id);
    // `left`: bytes that the outputs of the grain may still have.
    Work keep_one(const files::Room *room, files::FileRecord *output, std::uint64_t *left, std::string *words,
                  Status *status);
    Work send_piece(SendPiece piece);
    void send_now(const SendPiece &piece);
    Status read_piece(const SendPiece &piece, std::string &bytes);

    GrainFiles &files_;
    OpenProgram open_program_ = files::open_program;
    Tell tell_;
    Say say_;
    std::string binary_class_;
    ContentCache cache_;
    ContentCache::Names outputs_;                  // kept since it was idle: their grains may not have them yet
    std::string sent_;                             // digest of the large content that is being sent
    std::unique_ptr<LargeReader> sending_;         // reads it
    std::map<std::string, std::deque<Job>> jobs_;  // by user; pieces for the scheduler under no name
    std::string last_;                             // whose slice was the last one
    std::map<Identity, std::string> known_;        // digests of programs outside the library
};

std::int64_t wall_seconds();

}  // namespace dcs::server
