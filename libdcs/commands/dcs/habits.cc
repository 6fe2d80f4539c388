#include "habits.h"

#include <algorithm>
#include <iterator>

namespace dcs::commands {
namespace {

struct Habit {
    const char *words, *hint;
};

constexpr Habit of_commands[] = {
    {" kill cancel abort scancel close ", "`dcs grain kill SES:G` ends grains, `dcs session close SES` a session"},
    {" ls ps jobs job list queue squeue sacct ", "`dcs session ls` lists sessions, `dcs grain ls SES` their grains"},
    {" log logs cat output tail ", "`dcs session cat SES` prints outputs, `dcs grain tail -f SES:G` follows one"},
    {" batch sbatch ", "`dcs map --detach -- CMD ::: ARG...` submits and does not wait, `dcs submit` a file of grains"},
    {" wait ", "`dcs session wait SES` waits until all grains of a session have finished"},
    {" watch follow ", "`dcs session watch SES` follows a session, `dcs grain tail -f SES:G` the output of a grain"},
    {" clean rm remove delete purge ", "`dcs session clean SES` removes the data of a closed session"},
    {" requeue retry restart rerun resubmit ",
     "the same `dcs map` or `dcs submit` again runs what failed; `dcs grain restart SES:G` starts a grain that has not "
     "finished over"},
    {" nodes node worker workers sinfo ", "`dcs host ls` lists hosts"},
    {" alloc slurm pbs condor torque autoalloc glidein ",
     "`dcs pilot slurm`, `pbs` and `condor` run grain servers as jobs of these engines"},
    {" start init ", "`dcs up` starts a pool of your own"},
    {" version ", "`dcs --version` prints it"},
    {" stop shutdown ", "`dcs down` stops your own pool"},
};
constexpr Habit of_sessions[] = {
    {" cancel stop kill end abort ", "`dcs session close SES` ends a session"},
    {" rm remove delete ", "`dcs session clean SES` removes the data of a closed session"},
};
constexpr Habit of_grains[] = {
    {" log logs output follow ", "`dcs grain cat SES:G` prints its output, `dcs grain tail -f SES:G` follows it"},
    {" cancel stop end rm ", "`dcs grain kill SES:G` ends a grain"},
    {" wait watch ", "`dcs session wait SES` waits until all grains of a session have finished"},
    {" requeue retry rerun resubmit ",
     "the same `dcs map` or `dcs submit` again runs what failed; `dcs grain restart SES:G` starts a grain that has not "
     "finished over"},
};

constexpr Habit of_pilots[] = {
    {" start submit sbatch run add create ", "`dcs pilot slurm --time 4h` submits jobs while grains wait, and runs on"},
    {" cancel kill rm end delete scancel ", "`dcs pilot stop` ends the jobs of pilots"},
    {" status list show squeue ps info ", "`dcs pilot ls` lists the jobs of pilots"},
    {" torque openpbs qsub ", "`dcs pilot pbs` submits to PBS and Torque"},
    {" htcondor condor_submit ", "`dcs pilot condor` submits to HTCondor"},
};

// Options of GNU parallel, xargs and Slurm.
constexpr Habit of_options[] = {
    {" -0 ", "--null reads inputs that end in NUL bytes"},
    {" -k --keep-order --keeporder --group ", "outputs are always whole and in the order of the inputs"},
    {" -P --max-procs ", "-j N runs at most N grains of this map at a time"},
    {" --bar --eta ", "--progress bar shows a bar, which is the default on a terminal"},
    {" --resume --retry-failed ",
     "the same command again continues an interrupted run, or runs what failed; after a complete run it runs all, and "
     "other inputs are another map"},
    {" --retries ", "--attempts N runs a grain that fails up to N times"},
    {" --timeout -t ", "--time LIMIT ends a grain that runs longer (seconds, 90m, 1:30:00)"},
    {" --halt ", "all grains run; `dcs session close SES` ends the rest"},
    {" --return ",
     "--output NAME=PATH brings a file that the grain makes; {} and {#} in PATH make it one of each grain"},
    {" --pipe -X -m -n --max-args ", "each grain gets one input, as an argument"},
    {" --delay ", "-j N runs at most N grains at a time"},
    {" --tagstring ", "--tag puts the input before each line"},
    {" -S --sshlogin -w --nodelist ", "the hosts are the pool's (`dcs host ls`); --class CLASS takes some of them"},
    {" -p --partition ", "there are no partitions; --class CLASS takes hosts of that class"},
    {" --array ", "a grain for each input: seq 10 | dcs map -- CMD {}"},
    {" -d --dependency ",
     "`dcs submit FILE` runs grains after others; `dcs session wait SES && ...` waits for a session"},
    {" -c --cpus-per-task ", "--cores N is the number of cores that a grain uses"},
    {" --mem --mem-per-cpu ", "--memory MB, or such as 4G, is the memory that a grain uses"},
    {" -J --job-name --name ", "--label TEXT names the session"},
    {" -D --chdir --wd --workdir ", "--cwd DIR is the directory in which the command runs"},
    {" -N --nodes --ntasks ", "a grain runs on one host; `dcs map` runs a command for each input"},
};

template <std::size_t N> const char *hint_of(const Habit (&habits)[N], const std::string &word) {
    const auto known = std::find_if(std::begin(habits), std::end(habits), [&](const Habit &habit) {
        return std::string(habit.words).find(" " + word + " ") != std::string::npos;
    });
    return known == std::end(habits) ? nullptr : known->hint;
}

}  // namespace

const char *habit_of_command(const std::string &noun, const std::string &word) {
    if (noun == "session") return hint_of(of_sessions, word);
    if (noun == "grain") return hint_of(of_grains, word);
    if (noun == "pilot") return hint_of(of_pilots, word);
    return noun.empty() ? hint_of(of_commands, word) : nullptr;
}

Failure with_habit(const std::string &name, const std::string &text, const std::string &otherwise) {
    const std::string unknown = "unknown option ";
    const std::string word =
        text.rfind(unknown, 0) == 0 ? text.substr(unknown.size(), text.find(';') - unknown.size()) : "";
    const char *hint = word.empty() ? nullptr : hint_of(of_options, word);
    const bool glued = word.size() > 2 && word[0] == '-' && word[1] != '-';  // -n2
    if (hint == nullptr && glued) hint = hint_of(of_options, word.substr(0, 2));
    // What the tool means is known, so the nearest name of an option here is not: --chdir is not --dir.
    if (hint != nullptr) return usage_failure(name + ": " + unknown + word, hint);
    return usage_failure(name + ": " + text, otherwise);
}

}  // namespace dcs::commands
