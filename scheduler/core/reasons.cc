#include "scheduler/core/reasons.h"

#include <iterator>

#include "base/require.h"

namespace dcs::core {
namespace {

constexpr Reason reasons[] = {
    {"finished", "the grain has finished and its result is recorded",
     "dcs grain cat shows its output; its control program gets it from d_gwait"},
    {"killed", "the grain was killed and never runs again", "submit it again under another number"},
    {"running", "the grain runs", ""},
    {"starting", "the grain was sent to its host, which has not yet said that it runs", ""},
    {"staged", "the grain is ready on its host and starts there as soon as the grain of a younger session has left",
     ""},
    {"displaced", "the grain has to leave its host for one of an older session and goes to the front of its queue", ""},
    {"session_closed", "the session is closed, and nothing of it runs", "reopen the session (d_reopen_ses)"},
    {"damaged", "the grain's record is damaged and was set aside", "dcs doctor says which file it is"},
    {"no_hosts", "the host table is empty", "add hosts to the host table and have it reread"},
    {"user_quota", "its user has as many running grains as the pool's rules allow", "it goes when one of them ends"},
    {"older_first", "grains of older sessions come first", "it goes when these have what they need"},
    {"fewer_first", "grains of users with fewer running grains come first", "it goes when these have their share"},
    {"earlier_first", "earlier grains of its own session come first", "submit what matters most as urgent"},
    {"other_class", "the host is of a class that the grain does not accept", "submit it with a wider class mask"},
    {"no_binary", "the grain has no program for the host's binary class", "submit it with a program for that class"},
    {"too_old", "the host's grain server is of an older release, which cannot be told all that the grain demands",
     "upgrade DCS on that host; the grain goes there when its server has called again"},
    {"not_permitted", "the host is not for this user", "the host table says who may use it"},
    {"no_slots", "the host has no slots", "dcs host set NAME --slots N gives it some"},
    {"no_program", "the grain must not be tried there, because its program is missing there or cannot be executed",
     "put it right there, then run its control program again, or dcs grain restart"},
    {"cannot_start", "the grain must not be tried there, because that host cannot give what the grain itself asks for",
     "dcs grain show says what; put it right there, then run its control program again, or dcs grain restart"},
    {"failed_there", "the grain must not be tried there, because it failed there repeatedly",
     "when the host is repaired: dcs host set NAME --clear-nogo"},
    {"nogo", "the grain must not be tried there", "dcs host set NAME --clear-nogo lets it"},
    {"too_few_cores", "the host has fewer cores than the grain keeps busy", "submit it with fewer cores"},
    {"too_little_memory", "the host has less memory than the grain asks for", "submit it with less memory"},
    {"drained", "the host is drained: nothing new is started there", "dcs host undrain NAME"},
    {"never_called", "the host has not called in since the scheduler started", "look whether its grain server runs"},
    {"not_connected", "the host's grain server is not connected at the moment", "it connects again by itself"},
    {"delinquent", "the host is overdue", "look whether its grain server runs and can reach the scheduler"},
    {"being_checked", "the host is overdue but could be alive, and its grains wait for it",
     "they are moved when its extended limit has passed"},
    {"dead", "the host was not heard of for its limit, and its grains were moved",
     "look whether its grain server runs"},
    {"too_open", "the host confines grains less than the host table demands of it",
     "dcs host show NAME says what it lacks; its server's --confine, --run-as and --grain-network decide"},
    {"host_shut", "the host takes no grains now: its owner's work needs it, or its memory runs short",
     "dcs host show NAME says why; it takes grains again by itself"},
    {"program_missing",
     "the grain's program could not be executed there a short while ago for another grain of its user",
     "it is tried again soon, and at once when one is submitted"},
    {"held_back", "the host gave the grain back or could not start it a moment ago", "it is tried there again soon"},
    {"resting", "the grain came back or could not be started several times, and rests before it is tried again",
     "dcs grain show says why it came back; dcs grain restart tries it at once"},
    {"busy", "all slots of the host are in use", ""},
    {"usurps", "when its time slice ends, the host takes the grain in the place of one of a younger session", ""},
    {"trouble", "so many grains were given back by the host that it gets nothing for a while",
     "the host's log says what is wrong there"},
    {"probation", "grains that failed on the host finished elsewhere, so it gets one at a time until one finishes",
     "dcs host set NAME --clear-nogo ends it when the host is repaired"},
    {"cores_in_use", "the cores that the grain keeps busy are in use", ""},
    {"thrash", "the host reports less free memory than the grain is expected to use", ""},
    {"memory_in_use", "the memory that the grain asks for is in use", ""},
    {"others_first", "the host has a free slot, but another grain comes first for it", ""},
    {"takes_it", "the host takes the grain when it calls in next", ""},
};
static_assert(std::size(reasons) == whys);

}  // namespace

const Reason &reason_of(Why why) {
    const auto index = static_cast<std::size_t>(why);
    DCS_REQUIRE(index < std::size(reasons), "every reason has words");
    return reasons[index];
}

}  // namespace dcs::core
