#pragma once
// The record files in a grain's directory. Each is replaced as a whole and
// has a checksum; a file with a wrong checksum counts as missing.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/status.h"
#include "wire/content_calls.h"
#include "wire/demands.h"

namespace dcs::files {

// File names inside a grain's directory, which only the server writes. A file that is empty or
// begins with a zero byte is no record: a directory that is used again has `pid` and `exit` so.
inline constexpr const char *launch_name = "launch";    // LaunchRecord; exists before the process
inline constexpr const char *pid_name = "pid";          // PidRecord; written by the grain just before its exec
inline constexpr const char *exit_name = "exit";        // ExitRecord; written after the whole process tree has ended
inline constexpr const char *acked_name = "acked";      // number of the last increment that the scheduler has
inline constexpr const char *outputs_name = "outputs";  // OutputsRecord; its outputs are in the library
inline constexpr const char *withdrawn_name = "withdrawn";  // EndingRecord; why the server ends the grain
inline constexpr const char *room_name = "room";            // the part that the grain sees and may change: see room.h
// File names inside the room.
inline constexpr const char *input_name = "input";        // standard input
inline constexpr const char *announce_name = "announce";  // made by the grain: it takes checkpoints
inline constexpr const char *work_name = "work";          // working directory, if none was requested
inline constexpr const char *program_folder = "program";  // a submitted program, if the grain has its own account
std::string out_name(std::uint32_t sequence);
std::string err_name(std::uint32_t sequence);
std::string checkpoint_name(std::uint32_t sequence);

// An input or output file of the grain; the fields of wire::GrainFile.
struct FileRecord {
    wire::FileRole role = wire::FileRole::data;
    std::string name, digest;
    std::uint64_t size = 0;
    std::string binary_class;
};

// The image of the container in which a grain with these runs; null: it runs in none.
const FileRecord *image_of(const std::vector<FileRecord> &files);

// The account of the grain's processes.
struct Account {
    bool change = false;  // false: the server's account
    std::uint32_t uid = 0, gid = 0;
    std::vector<std::uint32_t> groups;
    bool made_up = false;  // only grains of this one user have this uid
    bool operator==(const Account &) const = default;
};
// Limits for all its processes together; 0: no limit.
struct Limits {
    std::int64_t memory_mb = 0, processes = 0, cpu_s = 0, disk_mb = 0;
    std::int64_t file_mb = 0;  // size of a file
    bool operator==(const Limits &) const = default;
};

struct LaunchRecord {
    std::string boot_id;            // of the boot in which the record was written
    std::string program;            // absolute path
    std::vector<std::string> argv;  // argv[0] is the last component of the path
    std::vector<std::string> env;   // as given, without the two of the grain protocol
    std::string directory;          // absolute; empty: work/
    std::uint64_t checkpoint_length = 0, input_base = 0;
    std::uint32_t next_seq = 1;
    wire::Demands demands;  // that this host enforces: notice, wall_s, resources
    std::uint64_t epoch = 0;
    bool tentative = false;  // verified before it is started
    Account account;
    Limits limits;
    std::vector<FileRecord> files;
    bool placed = true;                 // false: `files` are not in the room yet, and `program` is not chosen
    std::uint32_t rungs = 0;            // Rungs that it must have; it is not started without them
    std::vector<std::string> writable;  // writable directories besides its room and directory, under rung_files
    std::vector<std::string> runner;    // not empty: runs `program` (an emulator); {name} is replaced by argv[0]
    std::string offers;                 // as in wire::Launch: it gets some of these indices
};
std::string pack(const LaunchRecord &record);
Result<LaunchRecord> unpack_launch(std::string_view bytes);

// Text "PID STARTTIME BOOTID\n"; written between vfork and exec, where no memory may be allocated.
struct PidRecord {
    pid_t pid = 0;
    std::uint64_t start_time = 0;
    std::string boot_id;
};
// Returns the length, 0 if it does not fit.
std::size_t format_pid(char *buffer, std::size_t size, pid_t pid, std::uint64_t start_time,
                       const char *boot_id) noexcept;
Result<PidRecord> parse_pid(std::string_view text);

struct ExitRecord {
    bool known = false;       // false: the launcher died, so the status is not known
    std::int32_t status = 0;  // as of wait(2)
    bool innocent = false;    // ended by the launcher itself, or unknown
    std::string reason;
    std::int32_t limit_signal = 0;  // not 0: ended at a limit (named in reason); the signal in its result
    std::int64_t user_us = 0, system_us = 0, max_rss_kb = 0, minor_faults = 0, major_faults = 0;
    std::int64_t in_blocks = 0, out_blocks = 0;
};
std::string pack(const ExitRecord &record);
Result<ExitRecord> unpack_exit(std::string_view bytes);

enum class Ending : std::uint8_t {
    none,
    discard,     // kill and remove: the result is not needed
    asked,       // withdrawn: a checkpoint may still come; an exit now is the grain's own
    terminated,  // withdrawn, and TERM or KILL may have been sent: an exit now is not its own
    overrun      // exceeded a limit: ended, which is its result
};
struct EndingRecord {
    Ending kind = Ending::none;
    std::string reason;
    std::int32_t limit_signal = 0;  // overrun: the signal in its result
    std::uint8_t given_back = 0;    // asked, terminated: a wire::GivenBack
};
std::string pack(const EndingRecord &record);
Result<EndingRecord> unpack_ending(std::string_view bytes);

struct OutputsRecord {
    std::vector<FileRecord> files;  // digest empty: not made
    std::string words;              // why some of them are ignored
};
std::string pack(const OutputsRecord &record);
Result<OutputsRecord> unpack_outputs(std::string_view bytes);

std::string pack_acked(std::uint32_t sequence);
Result<std::uint32_t> unpack_acked(std::string_view bytes);

// Names here may be paths below the directory.
bool is_record(std::string_view bytes);  // of a file
bool has_record(int directory, const std::string &name);
// As read_file(); most records come with one read.
Result<std::string> read_record(int directory, const std::string &name);
// Into a file that has no record or is missing: a reader, also one after kill -9, finds the whole record or none. On
// failure none. Written over the bytes that are there: a file that is emptied first costs ten times as much, because
// the kernel gives its block back and looks for another one at once.
Status write_record(int directory, const std::string &name, std::string_view bytes);
// The same between vfork and exec, into an open file; gives an errno, or 0.
int put_record(int fd, const char *bytes, std::size_t size) noexcept;
// Takes the space of one, which is not there before it is written.
Status reserve_record(int directory, const std::string &name);
// The file has no record from now on. False if there is no such file.
bool void_record(int directory, const std::string &name);

inline constexpr std::size_t record_bytes_max = 4u << 20;  // of any of these files

}  // namespace dcs::files
