#include "scheduler/core/reasons.h"

#include <iterator>

#include "base/require.h"

namespace dcs::core {
namespace {

constexpr Reason reasons[] = {
    {"finished", "the grain has finished and its result is recorded",
     "dcs grain cat prints its output, dcs grain cat --err its standard error"},
    {"failed", "the grain has failed and its result is recorded",
     "dcs grain cat --err prints its standard error, dcs grain cat its output"},
    {"killed", "the grain was killed and never runs again", "submit it again under another number"},
    {"running", "the grain runs", ""},
    {"starting", "the grain was sent to its host, which has not yet said that it runs", ""},
    {"staged", "the grain is ready on its host and starts there as soon as the grain of a younger session has left",
     ""},
    {"displaced", "the grain has to leave its host for one of an older session and goes to the front of its queue", ""},
    {"starved",
     "the grain gets little processor time: it waits for something, or other processes of the host go first, as grains "
     "have the lowest priority",
     "if it only computes, dcs grain restart tries it on another host; a grain server with --courtesy watch returns "
     "such grains by itself, and with --courtesy none grains have ordinary priority"},
    {"unrecorded", "the grain has ended, and its host repeats its report because the scheduler cannot store the result",
     "remove sessions that you no longer need (dcs session clean), or ask the pool's operator for more space"},
    {"session_closed", "the session is closed, and nothing of it starts",
     "run its control program or command again (d_reopen_ses)"},
    {"damaged", "the grain's record is damaged and was set aside", "dcs doctor says which file it is"},
    {"no_hosts", "the host table is empty", "add hosts to the host table and run dcs reload"},
    {"user_quota", "its user has as many running grains as the pool's policy allows",
     "it starts when one of them ends"},
    {"user_denied", "the pool's policy denies its user", "ask the pool's operator; what runs may end"},
    {"older_first", "grains of older sessions come first", "it starts when these have what they need"},
    {"fewer_first", "grains of users with fewer running grains come first", "it starts when these have their share"},
    {"earlier_first", "earlier grains of its own session come first", "submit what matters most as urgent"},
    {"other_class", "the host is of a class that the grain does not accept", "submit it with a wider class mask"},
    {"no_binary", "the grain has no program for the host's binary class", "submit it with a program for that class"},
    {"too_old", "the host's grain server is of an older release, whose messages cannot carry all demands of the grain",
     "upgrade DCS on that host; the grain can start there when its server has reported again"},
    {"not_permitted", "the host is not for this user", "the host table says who may use it"},
    {"no_slots", "the host has no slots", "dcs host set NAME --slots N gives it some"},
    {"no_program", "the grain must not be tried there, because its program is missing there or cannot be executed",
     "correct it there, then run its control program again, or dcs grain restart; a control program names it by its "
     "path, as PATH is not searched"},
    {"cannot_start", "the grain must not be tried there, because that host cannot provide what the grain asks for",
     "dcs grain show says what; correct it there, then run its control program again, or dcs grain restart"},
    {"failed_there", "the grain must not be tried there, because it failed there repeatedly",
     "when the host is repaired: dcs host set NAME --clear-nogo"},
    {"host_limit", "the grain exceeded a limit that the host's grain server sets for each grain",
     "submit it so that it uses less, or raise that limit of the server (such as --max-memory-mb, --max-disk-mb) and "
     "run its control program again, or dcs grain restart"},
    {"nogo", "the grain must not be tried there", "dcs host set NAME --clear-nogo allows it"},
    {"too_few_cores", "the host has fewer cores than the grain demands", "submit it with fewer cores"},
    {"too_little_memory", "the host has less memory than the grain demands", "submit it with less memory"},
    {"memory_limited", "the host's grain server limits each grain to less memory than this one demands",
     "submit it with less memory, or raise --max-memory-mb of that server"},
    {"no_resource", "the host does not offer the resources that the grain demands",
     "dcs host ls shows what hosts offer; the host table and the policy say how much there is"},
    {"drained", "the host is drained and starts no new grains", "dcs host undrain NAME"},
    {"no_job", "the host is a pilot, and no batch job runs its grain server now",
     "dcs pilot ls shows the jobs, dcs pilot slurm, pbs or condor submits them"},
    {"never_called", "the host has not called in since the scheduler started",
     "start its grain server, dcs up in a private pool, else its service dcs-grainserver; its log says why it does not "
     "call"},
    {"not_connected", "the host's grain server is not connected",
     "it reconnects by itself if it runs; dcs up starts it again where it has ended in a private pool"},
    {"delinquent", "the host is overdue", "check that its grain server runs and can reach the scheduler"},
    {"being_checked", "the host is overdue but may be alive, and its grains wait for it",
     "they move when its extended limit has passed"},
    {"dead", "the host was silent for its limit, and its grains have moved", "check that its grain server runs"},
    {"too_open", "the host confines grains less than the host table requires",
     "dcs host show NAME says what it lacks; see --confine, --run-as and --grain-network of its server"},
    {"host_shut",
     "the host accepts no grains now",  // and what its server says about it
     "dcs host show NAME says more; it accepts grains again by itself when the cause has gone"},
    {"program_missing", "the grain's program could recently not be executed there for another grain of its user",
     "it is tried again soon, and at once when one is submitted"},
    {"held_back", "the host has just returned the grain or failed to start it", "it is tried there again soon"},
    {"resting", "the grain was returned or could not be started several times, and pauses before the next attempt",
     "dcs grain show says why it was returned; dcs grain restart tries it at once"},
    {"busy", "all slots of the host are in use", ""},
    {"usurps", "when its time slice ends, the host replaces a grain of a younger session by this one", ""},
    {"trouble", "the host returned so many grains that it gets none for a while", "the host's log says why"},
    {"probation", "grains that failed on the host finished elsewhere, so it gets one at a time until one finishes",
     "when the host is repaired: dcs host set NAME --clear-nogo"},
    {"cores_in_use", "the cores that the grain demands are in use", ""},
    {"thrash", "the host reports less free memory than the grain is expected to use", ""},
    {"memory_in_use", "the memory that the grain demands is in use", ""},
    {"resource_in_use", "the resources that the grain demands are in use", ""},
    {"kept_for_earlier", "the resources that the grain demands are kept for earlier grains that wait for more of them",
     ""},
    {"others_first", "the host has a free slot, but another grain comes first", ""},
    {"takes_it", "the grain starts at the host's next report", ""},
};
static_assert(std::size(reasons) == whys);

}  // namespace

const Reason &reason_of(Why why) {
    const auto index = static_cast<std::size_t>(why);
    DCS_REQUIRE(index < std::size(reasons), "every reason has words");
    return reasons[index];
}

const char *unrecorded_text(NoRoom why) {
    return why == NoRoom::of_user
               ? "it has ended; its result waits: its user exceeds the share of the scheduler's disk, "
                 "which is nearly full"
               : "it has ended; its result waits: the scheduler's disk is full";
}

}  // namespace dcs::core
