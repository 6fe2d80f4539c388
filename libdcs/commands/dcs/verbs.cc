#include "verbs.h"

#include <algorithm>
#include <iterator>

namespace dcs::commands {
namespace {

struct Habit {
    const char *words, *hint;
};

constexpr const char *runs_again =
    "the same `dcs map` or `dcs submit` again runs what failed; `dcs grain restart SES:G` starts a grain that has not "
    "finished from its last checkpoint";
constexpr const char *not_held = "single grains are not held; `dcs session set SES --nice 19` lets others go first";

constexpr Habit of_commands[] = {
    {" kill cancel abort scancel close ", "`dcs grain kill SES:G` ends grains, `dcs session close SES` a session"},
    {" ls ps jobs job list queue squeue sacct ", "`dcs session ls` lists sessions, `dcs grain ls SES` their grains"},
    {" log logs cat output tail ", "`dcs session cat SES` prints outputs, `dcs grain tail -f SES:G` follows one"},
    {" batch sbatch ", "`dcs map --detach -- CMD ::: ARG...` submits and does not wait, `dcs submit` a file of grains"},
    {" wait ", "`dcs session wait SES` waits until all grains of a session have finished"},
    {" watch follow ", "`dcs session watch SES` follows a session, `dcs grain tail -f SES:G` the output of a grain"},
    {" clean rm remove delete purge ", "`dcs session clean SES` removes the data of a closed session"},
    {" requeue retry restart rerun resubmit ", runs_again},
    {" nodes node worker workers sinfo ", "`dcs host ls` lists hosts"},
    {" alloc slurm pbs condor torque autoalloc glidein ",
     "`dcs pilot slurm`, `pbs` and `condor` run grain servers as jobs of these engines"},
    {" start init server ", "`dcs up` starts a pool of your own"},
    {" hold suspend pause release resume ", not_held},
    {" seff info ", "`dcs session show SES` and `dcs grain show SES:G` say what it used"},
    {" version ", "`dcs --version` prints it"},
    {" stop shutdown ", "`dcs down` stops your own pool"},
};
constexpr Habit of_sessions[] = {
    {" cancel stop kill end abort ", "`dcs session close SES` ends a session"},
    {" rm remove delete ", "`dcs session clean SES` removes the data of a closed session"},
};
constexpr Habit of_hosts[] = {
    {" resume enable reopen ", "`dcs host undrain NAME` lets a drained host take grains again"},
    {" disable offline suspend ", "`dcs host drain NAME` starts no new grains there"},
    {" remove delete ", "`dcs host rm NAME` removes a host from the pool"},
    {" add ", "a line in the host table and `dcs reload` add a host; `dcs token create` lets it join"},
};
constexpr Habit of_grains[] = {
    {" log logs output follow ", "`dcs grain cat SES:G` prints its output, `dcs grain tail -f SES:G` follows it"},
    {" cancel stop end rm ", "`dcs grain kill SES:G` ends a grain"},
    {" wait watch ", "`dcs session wait SES` waits until all grains of a session have finished"},
    {" hold suspend pause release resume ", not_held},
    {" requeue retry rerun resubmit ", runs_again},
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
    {" --pipe ", "each grain gets its input as an argument"},
    {" -X -m --xargs -L -l --max-lines --max-replace-args ", "-n N of `dcs map` gives each grain N inputs"},
    {" --header ", "tail -n +2 FILE | dcs map -- CMD {} leaves out the first line"},
    {" --shuf ", "shuf FILE | dcs map -- CMD {} takes the inputs in random order"},
    {" --delimiter ", "tr , '\\n' <FILE | dcs map -- CMD {} takes what commas separate as inputs"},
    {" -I -i --replace ", "{} in the words of CMD of `dcs map` is the input; no grain has a terminal"},
    {" -r --no-run-if-empty ", "without inputs nothing runs, and the exit code is 0"},
    {" -u --ungroup --lb --line-buffer --linebuffer ",
     "`dcs run --live` shows an output while it is written; those of `dcs map` are always whole and in the order of "
     "the inputs, and `dcs grain tail -f SES:G` follows one"},
    {" --link --xapply ", ":::+ takes its list in step with the one before"},
    {" --load --memfree --noswap ",
     "--memory MB and --cores N say what a grain uses; `dcs host set NAME --slots N` how many grains a host takes"},
    {" --gres --gpus --gpus-per-task -G ", "--resource gpu=1 is one that the host offers (`dcs host show NAME`)"},
    {" --wait ", "the command waits for its grains; --detach leaves them"},
    {" --tmpdir --tempdir --tmp ", "the pool keeps the outputs; --results DIR puts them into files"},
    {" --files ", "--results DIR puts outputs into files"},
    {" --delay ", "-j N runs at most N grains at a time"},
    {" --tagstring ", "--tag puts the input before each line"},
    {" -S --sshlogin -w --nodelist ", "the hosts are the pool's (`dcs host ls`); --class CLASS takes some of them"},
    {" -p --partition ", "there are no partitions; --class CLASS takes hosts of that class"},
    {" --array ", "a grain for each input: seq 10 | dcs map -- CMD {}"},
    {" --dependency --after ",
     "`dcs submit FILE` runs grains after others; `dcs session wait SES && ...` waits for a session"},
    {" -d ",
     "tr , '\\n' makes inputs of what commas separate; `dcs submit FILE` runs grains after others; "
     "`dcs session wait SES && ...` waits for a session"},
    {" -c --cpus --cpus-per-task ", "--cores N is the number of cores that a grain uses"},
    {" --mem --mem-per-cpu ", "--memory MB, or such as 4G, is the memory that a grain uses"},
    {" -J --job-name --name ", "--label TEXT names the session"},
    {" -D --chdir --wd --workdir ", "--cwd DIR is the directory in which the command runs"},
    {" -N --nodes --ntasks ", "a grain runs on one host; `dcs map` runs one for each input, and with -n N for each N"},
};

template <std::size_t N> const char *hint_of(const Habit (&habits)[N], const std::string &word) {
    const auto known = std::find_if(std::begin(habits), std::end(habits), [&](const Habit &habit) {
        return std::string(habit.words).find(" " + word + " ") != std::string::npos;
    });
    return known == std::end(habits) ? nullptr : known->hint;
}

}  // namespace

const OptionTable &common_options() {
    static const OptionTable table = {{"output", 'o', "FORMAT", one_of("table|json|name"), "how results are printed"},
                                      {"dir", 0, "DIR", some_text, "the pool's directory"},
                                      {"color", 0, "WHEN", one_of("auto|always|never"), "states in colour"},
                                      {"help", 'h', nullptr, no_value, "say how it is used"},
                                      {"version", 0, nullptr, no_value, "say which version this is"}};
    return table;
}

const std::vector<const Verb *> &all_verbs() {
    // clang-format off
    static const std::vector<const Verb *> verbs = {
        &up_verb,             &down_verb,          &status_verb,        &top_verb,  &page_verb, &run_verb,
        &map_verb,            &submit_verb,        &session_ls_verb,    &session_show_verb,  &session_watch_verb,
        &session_wait_verb,   &session_cat_verb,   &session_set_verb,   &session_close_verb,
        &session_clean_verb,  &session_log_verb,    &session_export_verb,
        &session_import_verb, &grain_ls_verb,      &grain_show_verb,    &grain_cat_verb,
        &grain_tail_verb,     &grain_explain_verb,  &grain_restart_verb, &grain_kill_verb,    &host_ls_verb,
        &host_show_verb,      &host_drain_verb,    &host_undrain_verb,  &host_set_verb,
        &host_join_verb,      &host_renew_verb,    &host_approve_verb,  &host_rm_verb,       &host_import_verb,
        &backup_status_verb,  &backup_promote_verb, &backup_detach_verb,
        &pilot_slurm_verb,    &pilot_pbs_verb,     &pilot_condor_verb,  &pilot_ls_verb,       &pilot_stop_verb,
        &pilot_serve_verb,
        &token_create_verb,   &token_ls_verb,       &token_revoke_verb,
        &config_check_verb,   &config_show_verb,   &ssh_verb,
        &replay_check_verb,   &doctor_verb,        &reload_verb,        &log_level_verb,
        &completion_verb,     &trace_verb};
    // clang-format on
    return verbs;
}

bool has_option(const OptionTable &table, std::string_view name) {
    return std::any_of(table.begin(), table.end(), [&](const OptionRow &row) { return name == row.name; });
}

std::string full_name(const Verb &verb) {
    return verb.noun[0] != '\0' ? std::string(verb.noun) + " " + verb.name : verb.name;
}

std::string usage_of(const Verb &verb) {
    return usage_line("dcs " + full_name(verb), verb.options,
                      std::string(verb.formats ? "[-o table|json|name] " : "") + verb.words);
}

std::string help_of(const Verb &verb) {
    std::string text = std::string(verb.about) + "\n" + usage_of(verb);
    for (const std::string &part : {option_list(verb.options), std::string(verb.notes)})
        if (!part.empty()) text += "\n" + part;
    return text;
}

OptionTable known_options(const Verb &verb) {
    OptionTable known = verb.options;
    for (OptionRow row : common_options()) {
        const bool own = has_option(verb.options, row.name);
        if (own && row.letter == 'o') row.name = "format";  // where --output is a file; -o stays what it is everywhere
        if (!own || row.letter == 'o') known.push_back(row);
    }
    return known;
}

const char *habit_of_command(const std::string &noun, const std::string &word) {
    if (noun == "session") return hint_of(of_sessions, word);
    if (noun == "grain") return hint_of(of_grains, word);
    if (noun == "host") return hint_of(of_hosts, word);
    if (noun == "pilot") return hint_of(of_pilots, word);
    return noun.empty() ? hint_of(of_commands, word) : nullptr;
}

Failure with_habit(const std::string &name, const std::string &text, const std::string &otherwise) {
    const std::string unknown = "unknown option ";
    const std::string word =
        text.rfind(unknown, 0) == 0 ? text.substr(unknown.size(), text.find(';') - unknown.size()) : "";
    const char *hint = word.empty() ? nullptr : hint_of(of_options, word);
    if (name == "dcs ssh" && !word.empty()) hint = "a grain needs no login, port or key: dcs ssh HOST CMD";
    const bool glued = word.size() > 2 && word[0] == '-' && word[1] != '-';  // -n2
    if (hint == nullptr && glued) hint = hint_of(of_options, word.substr(0, 2));
    // What the tool means is known, so the nearest name of an option here is not: --chdir is not --dir.
    if (hint != nullptr) return usage_failure(name + ": " + unknown + word, hint);
    return usage_failure(name + ": " + text, otherwise);
}

}  // namespace dcs::commands
