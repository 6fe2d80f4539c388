#pragma once
// The verbs that there are, and what each says of itself.
#include <string>
#include <vector>

#include "commands/dcs/frame/call.h"
#include "commands/dcs/frame/failure.h"

namespace dcs::commands {

// The order of `dcs --help` is that of all_verbs().
extern const Verb up_verb, down_verb, status_verb, top_verb, page_verb, run_verb, ssh_verb, map_verb, submit_verb;
extern const Verb session_ls_verb, session_show_verb, session_watch_verb, session_wait_verb, session_close_verb,
    session_clean_verb, session_log_verb, session_cat_verb, session_set_verb, session_export_verb, session_import_verb;
extern const Verb trace_verb;
extern const Verb grain_ls_verb, grain_show_verb, grain_cat_verb, grain_tail_verb, grain_explain_verb,
    grain_restart_verb, grain_kill_verb;
extern const Verb host_ls_verb, host_show_verb, host_drain_verb, host_undrain_verb, host_set_verb;
extern const Verb host_join_verb, host_renew_verb, host_import_verb, host_approve_verb, host_rm_verb;
extern const Verb backup_status_verb, backup_promote_verb, backup_detach_verb;
extern const Verb pilot_slurm_verb, pilot_pbs_verb, pilot_condor_verb, pilot_ls_verb, pilot_stop_verb, pilot_serve_verb;
extern const Verb token_create_verb, token_ls_verb, token_revoke_verb;
extern const Verb replay_check_verb, doctor_verb, reload_verb, log_level_verb, completion_verb;
extern const Verb config_check_verb, config_show_verb;
const std::vector<const Verb *> &all_verbs();

// `line` without the program's name. What main() returns.
int run_command(const std::vector<std::string> &line);
// What can be in the place of the last word, one on each line; what main() returns.
int print_completions(const std::vector<std::string> &words);

std::string full_name(const Verb &verb);      // "session ls"
const OptionTable &common_options();          // of every verb
OptionTable known_options(const Verb &verb);  // with those of every verb
std::string usage_of(const Verb &verb);       // "Usage: dcs session ls ..."
std::string help_of(const Verb &verb);

bool has_option(const OptionTable &table, std::string_view name);

// Words of other tools, and what is typed here instead.

// A hint for a command that does not exist; null: nothing is known of the word.
const char *habit_of_command(const std::string &noun, const std::string &word);

// Why a line for `dcs map` or `dcs run` was not understood, with a hint if its option is one of another tool.
Failure with_habit(const std::string &name, const std::string &text, const std::string &otherwise);

}  // namespace dcs::commands
