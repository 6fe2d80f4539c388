#pragma once
// The inputs and effects of a step.
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/severity.h"
#include "grainserver/core/state.h"
#include "wire/message.h"

namespace dcs::server {

// ---- inputs -------------------------------------------------------------------------------
struct Began {};  // after all Adopted: the server runs
struct Adopted {  // a grain's directory that existed at the start
    GrainId id;
    std::int32_t notice = 0;
    std::uint32_t next_seq = 1, acked = 0;
    bool started = false;  // it has, or had, a process
    Ending ending = Ending::none;
    std::string reason;
    std::optional<ExitFacts> exit;
    std::int32_t limit_signal = 0;  // for overrun
    bool tentative = false;
    std::int32_t wall_s = 0;
    Instant since{};  // started: the start time
    std::vector<wire::GrainFile> files;
    bool to_place = false;                                // not started: the files are not in its directory yet
    std::optional<std::vector<wire::GrainFile>> outputs;  // ended: kept in the library
    std::string output_words;
    wire::GivenBack given_back = wire::GivenBack::no;
    bool large = false;
};
// clang-format off
struct LinkOpened {};
struct LinkClosed { std::string why; };
struct FromScheduler { wire::AnyMessage message; };    // or from the backup: from the link's peer
struct LaunchWritten { GrainId id; };
struct LaunchUnwritten { GrainId id; Code code = Code::io_error; std::string text; };
struct LauncherUp { bool queues = false, counts = false; };
struct LauncherDown {};
struct GrainProved { GrainId id; };                  // it can be started
struct GrainStarted { GrainId id; };
struct StartFailed { GrainId id; Code code = Code::io_error; bool again = false; std::string text; };
struct GrainRecalled { GrainId id; };                // the launcher has not started it, and will not
struct GrainExited { GrainId id; ExitFacts facts; };
struct Looked { GrainId id; DirFacts facts; };
struct ReportUnsendable {                            // no part of it was sent
    GrainId id;
    enum class Why : std::uint8_t { bad_checkpoint, too_big, unreadable } why = Why::unreadable;
    std::uint32_t checkpoint = 0;
    std::string text;
};
struct Gauged { double load = 0; std::int64_t free_memory_kb = 0; bool boundary = false; std::int64_t memory_kb = 0;
    bool disk_full = false, uids_lost = false; };
struct FilesPlaced { GrainId id; };
struct FilesMissing { GrainId id; std::vector<wire::GrainFile> files; };  // their contents are not on this host
struct FilesUnplaced { GrainId id; Code code = Code::io_error; std::string text; };
struct PieceKept { std::string digest; std::uint64_t next = 0; };  // next == total: verified, and in the library
struct PieceUnkept { std::string digest; Code code = Code::io_error; std::string text; };
struct OutputsKept { GrainId id; std::vector<wire::GrainFile> files; std::string words; };
struct OutputsUnkept { GrainId id; Code code = Code::io_error; std::string text; };
struct PieceUnreadable { std::string digest, text; };
struct Watched { HostSample host; std::map<GrainId, GrainSample> grains; };
struct Leave { std::string why; };                   // the batch system ends the job
struct Tick {};
using Input = std::variant<Began, Adopted, LinkOpened, LinkClosed, FromScheduler, LaunchWritten,
    LaunchUnwritten, LauncherUp, LauncherDown, GrainProved, GrainStarted, StartFailed, GrainRecalled,
    GrainExited, Looked, ReportUnsendable, Gauged, FilesPlaced, FilesMissing, FilesUnplaced, PieceKept,
    PieceUnkept, OutputsKept, OutputsUnkept, PieceUnreadable, Watched, Leave, Tick>;

// ---- effects ------------------------------------------------------------------------------
struct Connect { Peer to = Peer::scheduler; };       // answered by LinkOpened or LinkClosed
struct Disconnect {};                                // not answered
struct Send { wire::AnyMessage message; };
struct WriteLaunch { GrainId id; wire::Launch launch; };  // answered by LaunchWritten or LaunchUnwritten
struct ProveGrain { GrainId id; };                   // answered by GrainProved or StartFailed
// Answered by GrainStarted or StartFailed, from a launcher that queues when there is a slot. `first`: before all others
// that wait there. Asked again, it says the present number of slots.
struct StartGrain { GrainId id; bool first = false; };
struct RecallGrain { GrainId id; };                  // answered by GrainRecalled or GrainStarted
struct CheckpointSignal { GrainId id; };
struct ThrashSignal { GrainId id; };
struct TerminateGrain { GrainId id; };
struct KillGrain { GrainId id; };                    // both: GrainExited follows when it has ended
struct WriteAcked { GrainId id; std::uint32_t sequence = 0; };  // also removes the increments up to it
struct WriteEnding {
    GrainId id;
    Ending ending = Ending::none;
    std::string reason;
    std::int32_t limit_signal = 0;
    wire::GivenBack given_back = wire::GivenBack::no;
};
struct RemoveDir { GrainId id; };
struct Look { GrainId id; };                         // answered by Looked
// Build the report from the directory and send it. On failure: ReportUnsendable.
struct SendReport {
    GrainId id;
    std::uint32_t first = 1, last = 0;
    std::uint32_t checkpoint = 0;                    // 0: none
    bool empty = false;                              // its increments have no bytes: nothing is to be read
    wire::Usage usage;
    bool ended = false;
    std::int32_t exit_code = 0, signal = 0;
    bool innocent = false;
    bool limit = false;                              // it would exceed this limit on any host
    bool limit_of_host = false;                      // unless that host permits more
    bool cut = false;                                // output may exceed the limit: send its first part
    std::string reason;
    wire::GivenBack given_back = wire::GivenBack::no;
    std::vector<wire::GrainFile> files;              // its outputs
};
// Copy its files from the library into its directory. Answered by FilesPlaced, FilesMissing or FilesUnplaced.
struct PlaceFiles { GrainId id; };
struct KeepPiece {                                   // answered by PieceKept or PieceUnkept
    std::string digest;
    std::uint64_t total = 0, offset = 0;
    std::string bytes;
};
struct DropPieces { std::string digest; };           // the received pieces are not needed any more
struct KeepOutputs { GrainId id; };                  // answered by OutputsKept or OutputsUnkept
struct SendPiece { std::string digest; std::uint64_t total = 0, offset = 0; };  // PieceUnreadable: no part was sent
struct PeekOutput { GrainId id; wire::Peek peek; };  // answers the scheduler with Peeked
struct WatchHost { std::vector<GrainId> grains; };   // answered by Watched
struct Gauge { bool boundary = false; };             // answered by Gauged
struct SaveConfig {};                                // interval, slots, epoch, backup_store, backup_number
struct SetLogLevel { std::string level; };
using Level = Severity;
// `always`: also to the process that started the server, even if logging is off.
struct Log { Level level = Level::info; std::string text; bool always = false; };
using Effect = std::variant<Connect, Disconnect, Send, WriteLaunch, ProveGrain, StartGrain, RecallGrain,
    CheckpointSignal, ThrashSignal, TerminateGrain, KillGrain, WriteAcked, WriteEnding, RemoveDir, Look,
    SendReport, PlaceFiles, KeepPiece, DropPieces, KeepOutputs, SendPiece, PeekOutput, WatchHost, Gauge,
    SaveConfig, SetLogLevel, Log>;

// clang-format on
}  // namespace dcs::server
