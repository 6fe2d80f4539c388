#pragma once
// The grains' directories, DIR/grains/<host>,<user>,<session>,<grain>,<incarnation>/: converts between their content
// and the types of core and wire. They are the authoritative state of the grains on this host; every file
// of the server is complete or absent at any instant. What the grain may change is in room/ below (files/room.h).
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/status.h"
#include "base/confinement.h"
#include "grainserver/core/step.h"
#include "grainserver/files/giving.h"
#include "grainserver/files/grain_record.h"
#include "base/files.h"
#include "grainserver/shell/identity.h"

namespace dcs::server {

// The rules of this host's owner for grains.
struct GrainRules {
    IdentityOptions identity;
    std::string uids_directory;  // where anonymous uids are recorded; empty: the server's own directory
    files::Limits limits;
    Rungs rungs = 0;                    // confinement of grains
    std::vector<std::string> writable;  // directories that they may write in spite of it
    std::uint32_t images_mb = files::usual_images_mb;
    const files::Logins *logins = &files::logins_of_this_host();
    std::shared_ptr<const files::Giving> giving;  // null: this process has the privilege
};

inline constexpr const char *aside_prefix = "removed-", *spare_prefix = "spare-";  // of no grain's directory

class GrainFiles {
public:
    // Makes DIR/grains if it is missing. `directory` is absolute. Code::invalid if it contains grains of a server
    // of another name.
    Status open(const std::string &directory, const std::string &host, const std::string &boot_id,
                const GrainRules &rules = {});

    // Programs are started by this command (LaunchRecord::runner).
    void run_by(std::vector<std::string> runner) { runner_ = std::move(runner); }

    std::string name_of(const GrainId &id) const;
    std::optional<GrainId> id_of(const std::string &name) const;

    // Makes a grain's directory, the record `launch` last, or uses a spare one. On failure nothing is left;
    // Code::no_space for a full disk.
    Status prepare(const GrainId &id, wire::Launch launch, std::uint64_t epoch);
    std::string take_note() { return std::exchange(note_, {}); }  // of the last prepare(), for the log; or empty
    // Of the last prepare() for that user; -1: there was none.
    std::int64_t uid_of(const std::string &user) const;
    // The grains of an earlier server process. Directories of another boot and incomplete ones are removed.
    std::vector<Adopted> adopt();

    // At the increments after `acked`. `ended`: without the usage, which its exit record states.
    DirFacts look(const GrainId &id, std::uint32_t acked, bool ended = false) const;
    // A disk that was full at the last look has room again when it has clearly more.
    bool disk_full();
    pid_t process_of(const GrainId &id) const;  // the grain's first process; 0 if it does not run
    std::optional<ExitFacts> exit_of(const GrainId &id) const;
    // The report for `plan`, or why it cannot be built.
    std::variant<wire::GrainReport, ReportUnsendable> build(const SendReport &plan) const;

    // The output that the grain has written after increment `after`. Unreadable parts are left out.
    wire::Peeked peek(const GrainId &id, const wire::Peek &wanted) const;

    // Writes the record, then removes the increments and checkpoints that are no longer needed.
    Status write_acked(const GrainId &id, std::uint32_t sequence);
    Status write_ending(const WriteEnding &what);
    Status write_outputs(const GrainId &id, const files::OutputsRecord &record);
    // Writes the launch record after its files are placed: the grain may then start.
    Status write_placed(const GrainId &id, files::LaunchRecord record);
    // At once if it is small or becomes a spare one; else it is renamed, and removed by remove_some().
    Status remove(const GrainId &id);
    // The launcher says that certainly no process of the grain is left: its directory may be used again.
    void note_alone(const GrainId &id);
    // For a launcher of an earlier release, which takes an empty record for one.
    void make_plain(const GrainId &id);
    void drop_spares();
    void tidy_spares();  // removes those that no grain has had since a number of calls
    bool removes() const { return !removing_.empty(); }
    Status remove_some();
    // Takes the room to fill it, and gives it to the grain.
    Status take_room(const GrainId &id, const files::Account &to) { return giving_->take_room(name_of(id), to); }
    Status give_room(const GrainId &id, const files::Account &to) { return giving_->give_room(name_of(id), to); }

    Result<Fd> directory_of(const GrainId &id) const;
    std::string room_path(const GrainId &id) const { return path_ + "/" + name_of(id) + "/" + files::room_name; }
    Result<files::LaunchRecord> launch_of(int grain) const;

private:
    // A directory without a grain, whose room has at most an empty input and small streams and belongs to this account.
    struct Spare {
        std::string name;
        files::Account account;
        int unused = 0;  // calls of tidy_spares()
    };
    // A grain whose directory may become one, unless other records or files come into it.
    struct Small {
        files::Account account;
        bool alone = false;
    };
    bool use_spare(const GrainId &id, const files::LaunchRecord &record);
    bool keep_spare(const std::string &name, const Small &grain);
    void drop_oldest();
    Status make_fresh(const GrainId &id, const files::LaunchRecord &record, const std::string &input);
    Result<files::LaunchRecord> record_of(const GrainId &id, wire::Launch &launch, std::uint64_t epoch);  // takes of it
    void adopt_one(const std::string &name, std::vector<Adopted> &found);
    Status make_home(const std::string &user, const files::Account &account);

    std::string host_, path_, homes_, boot_id_;
    std::shared_ptr<const files::Giving> giving_;
    std::vector<std::string> runner_;
    Fd grains_;
    Identities identities_;
    std::map<std::string, std::int64_t> uids_;  // by user
    files::Limits limits_;
    Rungs rungs_ = 0;
    std::vector<std::string> writable_;
    std::string note_;
    std::deque<TreeRemoval> removing_;
    std::vector<std::string> later_;  // removals that failed
    std::uint64_t aside_ = 0;         // number of the last directory that was renamed
    std::deque<Spare> spares_;
    std::map<GrainId, Small> small_;
    bool full_ = false;  // the disk, at the last look
};

}  // namespace dcs::server
