#include "locks/run_end.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <sys/random.h>
#include <unistd.h>

#include "base/text.h"
#include "locks/files/run_log.h"
#include "locks/files/world.h"

namespace dcs::locks {
namespace {

std::int64_t runtime_of(const World &world, const Record &record, const Moment &end) {
    std::int64_t runtime = 0;
    const bool same = record.started_boot == world.boot;
    if (__builtin_sub_overflow(same ? end.mono : end.wall, same ? record.started.mono : record.started.wall, &runtime))
        return 0;
    return std::max<std::int64_t>(runtime, 0);
}

std::string name_of(const Place &place) {
    Result<std::string> name = encoded_name(place.atom);
    return name ? *name : std::string("-");
}

void count_expiry(Record &record, std::int64_t wall) {
    ++record.expiries;
    ++record.expired_in_row;
    const auto since = static_cast<std::int64_t>(static_cast<std::uint64_t>(wall) -
                                                 static_cast<std::uint64_t>(record.expired_since_wall));
    if (record.expired_in_row == 1 || since < 0 || since > kill_window) record.expired_since_wall = wall;
}

// Unlike a pid and a time, never equal on two hosts or after a clock step.
std::uint64_t new_cookie(pid_t self) {
    thread_local std::uint64_t last = 0;
    thread_local pid_t process = 0;
    if (process != self) {
        process = self;
        if (::getrandom(&last, sizeof last, GRND_NONBLOCK) != sizeof last)
            last = static_cast<std::uint64_t>(process) << 40 ^ static_cast<std::uint64_t>(::time(nullptr));
    }
    last += 0x9e3779b97f4a7c15ULL;  // an odd step visits every number before it repeats one
    return last == 0 ? 1 : last;
}

}  // namespace

void end_run(const World &world, const LockFile &file, const Place &place, bool log, Record &record,
             const RunEnding &ending) {
    const std::int64_t runtime = runtime_of(world, record, ending.noticed);
    const bool crashed = ending.outcome == Outcome::crashed;
    record.outcome = ending.outcome;
    record.ended = crashed ? record.started : ending.noticed;
    record.ended_boot = crashed ? record.started_boot : world.boot;
    record.last_start = record.started;
    // Valid only for clocks of the boot in `ended_boot`.
    if (record.started_boot != record.ended_boot) record.last_start.boot = record.last_start.mono = 0;
    if (crashed) ++record.crashes;
    if (ending.outcome == Outcome::expired) count_expiry(record, ending.noticed.wall);
    if (ending.outcome == Outcome::done || ending.outcome == Outcome::failed) record.expired_in_row = 0;
    const Sample sample{
        record.started.wall, runtime,        ending.cpu,        ending.io, std::max<std::int64_t>(ending.waited, 0),
        record.expire_after, ending.outcome, ending.progressing};
    (void)write_sample(file, record.samples++, sample);  // used for learned limits only: the lock works without it
    if (!log || place.directory.empty()) return;
    LogLine line{ending.noticed.wall,
                 name_of(place),
                 outcome_name(ending.outcome),
                 record.owner.process.pid,
                 record.owner.uid,
                 record.generation,
                 runtime,
                 ending.cpu,
                 ending.io,
                 ending.waited,
                 record.expire_after,
                 ending.text};
    if (record.expired_in_row >= 3)
        line.text += (line.text.empty() ? "starving: " : "; starving: ") + std::to_string(record.expired_in_row) +
                     " runs in a row reached their limit and none has completed since";
    append_log(place.directory, line);
}

void log_event(const Place &place, std::int64_t wall, const char *event, const Owner &owner, std::uint64_t generation,
               std::int64_t limit, const std::string &text) {
    if (place.directory.empty()) return;
    LogLine line;
    line.wall = wall;
    line.name = name_of(place);
    line.event = event;
    line.pid = owner.process.pid;
    line.uid = owner.uid;
    line.generation = generation;
    line.limit = limit;
    line.text = text;
    append_log(place.directory, line);
}

Owner own_owner(const World &world) {
    thread_local Owner own;
    const ProcessIdentity &process = own_identity();
    if (!(own.process == process)) {
        own.process = process;
        own.session = ::getsid(0) == process.pid ? process.pid : 0;
        own.group = own.session != 0 && ::getpgrp() == process.pid ? process.pid : 0;
        own.command = program_invocation_short_name;
    }
    own.uid = ::getuid();
    own.boot = world.boot;
    own.pid_namespace = world.pid_namespace;
    own.host = world.host;
    own.cookie = new_cookie(process.pid);
    return own;
}

std::string described(const Owner &owner, const World &world) {
    if (owner.process.pid == 0) return "another process";
    std::string text = "process " + std::to_string(owner.process.pid);
    if (!owner.command.empty()) text += " (" + printable(owner.command) + ")";  // the record may be forged
    text += " of uid " + std::to_string(owner.uid);
    return owner.host == world.host ? text : text + " on host " + printable(owner.host);
}

std::string in_words(std::int64_t nanoseconds) {
    char text[64];
    if (nanoseconds == no_limit) return "for ever";
    if (const std::int64_t whole = nanoseconds / second; whole < 60)
        std::snprintf(text, sizeof text, "%lld.%lld s", static_cast<long long>(whole),
                      static_cast<long long>(std::max<std::int64_t>(nanoseconds % second, 0) / 100'000'000));
    else if (whole < 3600)
        std::snprintf(text, sizeof text, "%lld min %lld s", static_cast<long long>(whole / 60),
                      static_cast<long long>(whole % 60));
    else
        std::snprintf(text, sizeof text, "%lld h %lld min", static_cast<long long>(whole / 3600),
                      static_cast<long long>(whole / 60 % 60));
    return text;
}

}  // namespace dcs::locks
