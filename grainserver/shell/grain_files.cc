#include "grainserver/shell/grain_files.h"

#include <algorithm>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/option_table.h"
#include "base/require.h"
#include "grainserver/files/grain_name.h"
#include "grainserver/files/launcher_calls.h"
#include "process/table.h"
#include "grainserver/files/room.h"
#include "grainserver/shell/host_gauge.h"

namespace dcs::server {
namespace {

ExitFacts facts_of(const files::ExitRecord &record) {
    ExitFacts facts{.known = record.known};
    if (record.known && WIFEXITED(record.status)) facts.code = WEXITSTATUS(record.status);
    if (record.known && WIFSIGNALED(record.status)) facts.signal = WTERMSIG(record.status);
    facts.innocent = record.innocent;
    facts.reason = record.reason;
    facts.limit_signal = record.limit_signal;
    facts.usage = wire::Usage{record.user_us,      record.system_us, record.max_rss_kb, record.minor_faults,
                              record.major_faults, record.in_blocks, record.out_blocks};
    return facts;
}

// Finds the grain's first process, if it still runs.
bool find_process(int grain, const std::string &boot_id, ProcessStat &stat) {
    const Result<std::string> text = files::read_record(grain, files::pid_name);
    if (!text) return false;
    const Result<files::PidRecord> pid = files::parse_pid(*text);
    return pid && pid->boot_id == boot_id && read_stat(pid->pid, stat) && stat.start_time == pid->start_time;
}

wire::Usage usage_of(int grain, const std::string &boot_id) {
    wire::Usage usage;
    ProcessStat stat;
    if (!find_process(grain, boot_id, stat)) return usage;
    const auto tick_us = static_cast<std::uint64_t>(1'000'000 / std::max(::sysconf(_SC_CLK_TCK), 1l));
    for (const pid_t pid : tree_of(stat.pid)) {
        if (!read_stat(pid, stat)) continue;
        usage.user_us += static_cast<std::int64_t>(stat.user_ticks * tick_us);
        usage.system_us += static_cast<std::int64_t>(stat.system_ticks * tick_us);
        usage.minor_faults += static_cast<std::int64_t>(stat.minor_faults);
        usage.major_faults += static_cast<std::int64_t>(stat.major_faults);
    }
    return usage;
}

// The start time from the pid record; the boot clock and /proc use the same scale. Now, if the record
// is damaged.
Instant start_of(int grain) {
    const Result<std::string> text = files::read_record(grain, files::pid_name);
    const Result<files::PidRecord> pid = text ? files::parse_pid(*text) : Result<files::PidRecord>(text.status());
    if (!pid) return boot_clock();
    const auto tick_ns = static_cast<std::uint64_t>(1'000'000'000 / std::max(::sysconf(_SC_CLK_TCK), 1l));
    return Instant{static_cast<std::int64_t>(std::min<std::uint64_t>(pid->start_time, INT64_MAX / tick_ns) * tick_ns)};
}

// The enums have equal values: the one on disk must stay compatible, the one in the core need not.
constexpr bool same(Ending ending, files::Ending recorded) {
    return static_cast<std::uint8_t>(ending) == static_cast<std::uint8_t>(recorded);
}
static_assert(same(Ending::none, files::Ending::none) && same(Ending::asked, files::Ending::asked) &&
              same(Ending::terminated, files::Ending::terminated) && same(Ending::overrun, files::Ending::overrun) &&
              same(Ending::discard, files::Ending::discard));

files::FileRecord on_disk(const wire::GrainFile &file) {
    return {file.role, file.name, file.digest, file.size, file.binary_class};
}
std::vector<wire::GrainFile> in_core(const std::vector<files::FileRecord> &records) {
    std::vector<wire::GrainFile> list;
    for (const files::FileRecord &x : records) list.push_back({x.role, x.name, x.digest, x.size, x.binary_class});
    return list;
}

void adopt_outputs(int grain, Adopted &a) {
    const Result<std::string> bytes = files::read_record(grain, files::outputs_name);
    const Result<files::OutputsRecord> outputs =
        bytes ? files::unpack_outputs(*bytes) : Result<files::OutputsRecord>(bytes.status());
    if (!outputs) return;  // they will be kept again
    a.outputs = in_core(outputs->files);
    a.output_words = outputs->words;
}

// Grains under other accounts must reach their rooms and homes; the directories above cannot be listed.
Status let_pass(const std::string &path) {
    if (::chmod(path.c_str(), 0711) != 0) return file_error(path, errno);
    for (std::size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
        const std::string part = path.substr(0, slash);
        struct stat st {};
        if (::stat(part.c_str(), &st) != 0) return file_error(part, errno);
        if ((st.st_mode & S_IXOTH) == 0)
            return fail(Code::invalid, "grains under accounts of their own cannot reach " + path + ", because " + part +
                                           " is closed to others: chmod o+x " + part +
                                           ", or choose another --dir, or --run-as self");
        if ((st.st_mode & S_IWOTH) != 0 && (st.st_mode & S_ISVTX) == 0)
            return fail(Code::invalid, part + ", above " + path + ", can be written by all users");
        if (slash == std::string::npos) return Status::ok();
    }
}

std::int64_t smaller(std::int64_t a, std::int64_t b) { return a == 0 || b == 0 ? std::max(a, b) : std::min(a, b); }
}  // namespace

Status GrainFiles::open(const std::string &directory, const std::string &host, const std::string &boot_id,
                        const GrainRules &rules) {
    DCS_REQUIRE(rules.logins != nullptr && directory[0] == '/', "the directory and the logins are known");
    const std::string path = directory + "/" + files::grains_folder;
    if (Status s = make_directories(path); !s) return s;
    Result<Fd> fd = open_directory(AT_FDCWD, path);
    if (!fd) return fd.status();
    grains_ = std::move(*fd);
    const Result<std::vector<std::string>> names = list_directory(grains_.get());
    if (!names) return names.status();
    for (const std::string &name : *names)
        if (const auto lease = files::parse_directory_name(name); lease && lease->host != host)
            return fail(Code::invalid, path + " has grains of server " + lease->host + ", not of " + host +
                                           "; start that server here, or remove " + path + "/" + name);
    host_ = host;
    path_ = path;
    homes_ = directory + "/" + files::homes_folder;
    limits_ = rules.limits;
    rungs_ = rules.rungs;
    writable_ = rules.writable;
    if (rules.identity.users) {
        if (Status s = make_directories(homes_); !s) return s;
        for (const std::string &part : {directory, path, homes_})
            if (Status s = let_pass(part); !s) return s;
    }
    const std::string &uids = rules.uids_directory.empty() ? directory : rules.uids_directory;
    if (Status s = identities_.open(uids, rules.identity, *rules.logins); !s) return s;
    boot_id_ = boot_id;
    giving_ = rules.giving ? rules.giving : std::make_shared<files::DirectGiving>(directory);
    return Status::ok();
}

std::string GrainFiles::name_of(const GrainId &id) const {
    return files::directory_name(host_, id.key, id.incarnation);
}

std::optional<GrainId> GrainFiles::id_of(const std::string &name) const {
    const Result<files::LeaseName> lease = files::parse_directory_name(name);
    if (!lease || lease->host != host_) return std::nullopt;
    return GrainId{lease->key, lease->incarnation};
}

Result<Fd> GrainFiles::directory_of(const GrainId &id) const { return open_directory(grains_.get(), name_of(id)); }

Result<files::LaunchRecord> GrainFiles::launch_of(int grain) const {
    const Result<std::string> bytes = files::read_record(grain, files::launch_name);
    if (!bytes) return bytes.status();
    return files::unpack_launch(*bytes);
}

// Relative names of programs and working directories are relative to the user's DCS home on this host.
Result<files::LaunchRecord> GrainFiles::record_of(const GrainId &id, wire::Launch &launch, std::uint64_t epoch) {
    const std::string home = homes_ + "/" + files::encoded_name(id.key.session.user);
    const auto absolute = [&](const std::string &path) { return path[0] == '/' ? path : home + "/" + path; };
    const bool contained = std::any_of(launch.files.begin(), launch.files.end(), [](const wire::GrainFile &file) {
        return file.role == wire::FileRole::image;  // paths are then those of the container
    });
    files::LaunchRecord record{.boot_id = boot_id_, .argv = launch.argv};
    if (launch.argv.empty() || launch.argv[0].empty()) return fail(Code::invalid, "the grain names no program");
    record.program = contained ? launch.argv[0] : absolute(launch.argv[0]);
    DCS_REQUIRE(contained || record.program[0] == '/', "the launcher accepts only absolute paths");
    record.argv[0] = record.program.substr(record.program.rfind('/') + 1);
    if (record.argv[0].empty()) return fail(Code::not_found, launch.argv[0] + " is a directory, not a program");
    for (const auto *list : {&launch.argv, &launch.env})
        for (const std::string &item : *list)
            if (item.find('\0') != std::string::npos) return fail(Code::invalid, "an argument contains a NUL byte");
    record.env = std::move(launch.env);
    if (!contained) record.runner = runner_;
    if (!launch.directory.empty()) record.directory = contained ? launch.directory : absolute(launch.directory);
    record.checkpoint_length = launch.checkpoint_length;
    record.input_base = launch.input_base;
    record.next_seq = launch.next_seq;
    record.demands = launch.demands;
    record.offers = launch.offers;
    record.tentative = launch.tentative;
    for (const wire::GrainFile &file : launch.files) record.files.push_back(on_disk(file));
    record.placed = launch.files.empty();
    record.epoch = epoch;
    const Result<files::Account> account = identities_.of(id.key.session.user, launch.account, note_);
    if (!account) return account.status();
    record.account = *account;
    uids_[id.key.session.user] = account->change ? account->uid : ::geteuid();
    record.limits = limits_;
    record.limits.memory_mb = smaller(limits_.memory_mb, launch.demands.memory_mb);
    record.rungs = rungs_;
    record.writable = writable_;
    record.writable.push_back(home);
    if ((launch.argv[0][0] != '/' && !contained) || (!launch.directory.empty() && launch.directory[0] != '/'))
        if (Status s = make_home(files::encoded_name(id.key.session.user), *account); !s) return s;
    return record;
}

std::int64_t GrainFiles::uid_of(const std::string &user) const {
    const auto known = uids_.find(user);
    return known == uids_.end() ? -1 : known->second;
}

Status GrainFiles::make_home(const std::string &user, const files::Account &account) {
    const Status s = make_directories(homes_ + "/" + user);
    return s ? giving_->give_home(user, account) : s;
}

void GrainFiles::adopt_one(const std::string &name, std::vector<Adopted> &found) {
    const std::optional<GrainId> id = id_of(name);
    if (!id) return;
    const Result<Fd> grain = open_directory(grains_.get(), name);
    if (!grain) return;
    const int fd = grain->get();
    Adopted a{.id = *id, .started = files::has_record(fd, files::pid_name), .exit = exit_of(*id)};
    const Result<files::LaunchRecord> launch = launch_of(fd);
    const bool runs = a.started && !a.exit;
    if (!launch || launch->boot_id != boot_id_) {
        // Of another boot: its processes have ended, and unreported output may not have reached the
        // disk. The scheduler learns that it is no longer held and restarts it.
        if (launch || !runs) {
            if (!remove(*id)) return;
            return;
        }
        a.ending = Ending::discard;
        a.reason = "its launch record is damaged";
        found.push_back(std::move(a));
        return;
    }
    a.large = is_large(launch->demands);
    a.notice = launch->demands.notice;
    a.wall_s = launch->demands.wall_s;
    a.tentative = launch->tentative;
    a.files = in_core(launch->files);
    a.to_place = !launch->placed;
    adopt_outputs(fd, a);
    if (a.started) a.since = start_of(fd);
    a.next_seq = launch->next_seq;
    a.acked = launch->next_seq - 1;
    if (const Result<std::string> bytes = files::read_record(fd, files::acked_name))
        if (const Result<std::uint32_t> acked = files::unpack_acked(*bytes)) a.acked = *acked;
    if (const Result<std::string> bytes = files::read_record(fd, files::withdrawn_name))
        if (const Result<files::EndingRecord> ending = files::unpack_ending(*bytes)) {
            a.ending = static_cast<Ending>(ending->kind);
            a.reason = ending->reason;
            a.limit_signal = ending->limit_signal;
            if (ending->given_back <= static_cast<std::uint8_t>(wire::last_of(wire::GivenBack{})))
                a.given_back = static_cast<wire::GivenBack>(ending->given_back);
        }
    found.push_back(std::move(a));
}

std::vector<Adopted> GrainFiles::adopt() {
    std::vector<Adopted> found;
    const Result<std::vector<std::string>> names = list_directory(grains_.get());
    if (names)
        for (const std::string &name : *names) {
            const bool ours = name.rfind(aside_prefix, 0) == 0 || name.rfind(spare_prefix, 0) == 0;
            if (ours) removing_.emplace_back(grains_.get(), name);
            else adopt_one(name, found);
        }
    return found;
}

namespace {
// Less than what programs write at once: the last of it may be missing.
constexpr std::uint64_t full_below = 64 << 10;
// A disk that was full has room again with so much, or this part of it: what an ending grain frees is soon used.
constexpr std::uint64_t room_again = 16 << 20, room_share = 16;

// Nothing can be written there. File systems without such figures are never full.
bool is_full(int directory, bool was = false) {
    struct statvfs disk {};
    if (::fstatvfs(directory, &disk) != 0) return false;
    const std::uint64_t all = std::uint64_t{disk.f_blocks} * disk.f_frsize;
    const std::uint64_t least = was ? std::max(full_below, std::min(room_again, all / room_share)) : full_below;
    const bool no_bytes = disk.f_blocks > 0 && std::uint64_t{disk.f_bavail} * disk.f_frsize < least;
    return no_bytes || (disk.f_files > 0 && disk.f_favail == 0);
}
}  // namespace

// Output that does not follow the increment `last`: of a grain that has left a number out, or not made both files.
static std::string left_out(const files::Room &room, std::uint32_t last) {
    const Result<std::vector<std::string>> names = list_directory(room.fd.get());
    for (const std::string &name : names ? *names : std::vector<std::string>()) {
        const bool stream = name.starts_with("out.") || name.starts_with("err.");
        const auto number = stream ? number_of(name.substr(4), last + 1, UINT32_MAX) : std::nullopt;
        struct stat st {};  // of the next a grain that dies in a checkpoint may have made one
        const bool empty = ::fstatat(room.fd.get(), name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0 || st.st_size == 0;
        if (!number || (number == last + 1 && empty)) continue;
        return name + " does not follow out." + std::to_string(last) + " and err." + std::to_string(last);
    }
    return "";
}

// By the names that are expected: the room may have any number of others.
DirFacts GrainFiles::look(const GrainId &id, std::uint32_t acked, bool ended) const {
    DirFacts facts;
    const Result<files::Room> room = files::open_room(grains_.get(), name_of(id));
    const bool removed = !room && room.status().code == Code::not_found;
    if (ended && removed) facts.lost = "DCS_GRAIN_DIR was removed";
    if (!room) return facts;
    const auto size_of = [&](const std::string &name) { return files::foreign_size(*room, name, &facts.strange); };
    facts.announced = size_of(files::announce_name) >= 0;
    for (std::uint32_t n = acked + 1; n != UINT32_MAX && !facts.too_many; ++n) {
        const std::int64_t out = size_of(files::out_name(n)), err = out < 0 ? -1 : size_of(files::err_name(n));
        if (err < 0) break;
        facts.increments[n] = static_cast<std::uint64_t>(out + err);
        const std::int64_t checkpoint = size_of(files::checkpoint_name(n));
        if (checkpoint >= 0) facts.checkpoints[n] = static_cast<std::uint64_t>(checkpoint);
        facts.too_many = facts.increments.size() > increments_max;
    }
    // The launcher makes the first, the grain library those after a checkpoint.
    if (ended && facts.increments.empty())
        facts.lost = !facts.strange.empty() ? facts.strange
                                            : files::out_name(acked + 1) + " or " + files::err_name(acked + 1) +
                                                  " was removed from DCS_GRAIN_DIR";
    else if (ended && facts.announced && !facts.too_many)
        facts.lost = left_out(*room, facts.increments.rbegin()->first);
    facts.disk_full = is_full(room->fd.get());
    if (ended) return facts;
    if (const Result<Fd> grain = directory_of(id)) facts.usage = usage_of(grain->get(), boot_id_);
    return facts;
}

bool GrainFiles::disk_full() { return full_ = is_full(grains_.get(), full_); }

pid_t GrainFiles::process_of(const GrainId &id) const {
    const Result<Fd> grain = directory_of(id);
    ProcessStat stat;
    return grain && find_process(grain->get(), boot_id_, stat) ? stat.pid : 0;
}

std::optional<ExitFacts> GrainFiles::exit_of(const GrainId &id) const {
    const std::string path = name_of(id) + "/" + files::exit_name;
    const Result<std::string> bytes = files::read_record(grains_.get(), path);
    if (bytes && !files::is_record(*bytes)) return std::nullopt;
    if (!bytes) {
        if (bytes.status().code == Code::not_found) return std::nullopt;
        return ExitFacts{.reason = "its exit status cannot be read: " + bytes.status().text};
    }
    const Result<files::ExitRecord> record = files::unpack_exit(*bytes);
    if (record) return facts_of(*record);
    return ExitFacts{.reason = "its exit status is damaged"};
}

Status GrainFiles::write_acked(const GrainId &id, std::uint32_t sequence) {
    small_.erase(id);
    DCS_REQUIRE(sequence > 0, "increments are numbered from one on");
    const Result<Fd> grain = directory_of(id);
    if (!grain) return grain.status();
    Status s = replace_file(grain->get(), files::acked_name, files::pack_acked(sequence));
    if (!s) return s;
    const Result<files::Room> room = files::open_room(grain->get());
    if (!room) return room.status();
    // From the lowest number up, so that those which a crash leaves are found by the next one.
    const auto any = [&](std::uint32_t n) {
        return file_exists(room->fd.get(), files::out_name(n)) || file_exists(room->fd.get(), files::err_name(n)) ||
               file_exists(room->fd.get(), files::checkpoint_name(n));
    };
    std::uint32_t first = sequence;
    while (first > 1 && sequence - first < increments_max && any(first - 1)) --first;
    for (std::uint32_t n = first; n <= sequence; ++n) {
        remove_file(room->fd.get(), files::out_name(n));
        remove_file(room->fd.get(), files::err_name(n));
        if (n < sequence) remove_file(room->fd.get(), files::checkpoint_name(n));
    }
    return s;
}

Status GrainFiles::write_ending(const WriteEnding &what) {
    small_.erase(what.id);
    DCS_REQUIRE(what.ending != Ending::none, "only a grain that is being ended has such a record");
    const Result<Fd> grain = directory_of(what.id);
    if (!grain) return grain.status();
    const files::EndingRecord record{static_cast<files::Ending>(what.ending), what.reason, what.limit_signal,
                                     static_cast<std::uint8_t>(what.given_back)};
    return replace_file(grain->get(), files::withdrawn_name, files::pack(record));
}

Status GrainFiles::write_outputs(const GrainId &id, const files::OutputsRecord &record) {
    small_.erase(id);
    const Result<Fd> grain = directory_of(id);
    return grain ? replace_file(grain->get(), files::outputs_name, files::pack(record)) : grain.status();
}

Status GrainFiles::write_placed(const GrainId &id, files::LaunchRecord record) {
    small_.erase(id);
    record.placed = true;
    const Result<Fd> grain = directory_of(id);
    return grain ? replace_file(grain->get(), files::launch_name, files::pack(record)) : grain.status();
}

}  // namespace dcs::server
