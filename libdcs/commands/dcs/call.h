#pragma once
// One invocation of a verb, and the verbs there are.
#include <string>
#include <vector>

#include "arguments.h"
#include "failure.h"

namespace dcs::commands {

struct Call {
    Format format = Format::table;
    Arguments arguments;
    std::string directory;  // of the pool; absolute
    int failure_exit = 0;   // `dcs run` and `dcs map`: the exit code of every failure of their own

    int fail(const Failure &failure) const {
        const int exit = report(failure, format);
        return failure_exit != 0 ? failure_exit : exit;
    }
};

struct Verb {
    const char *noun;  // "session"; "" for verbs that stand alone
    const char *name;
    const char *summary;          // one line
    const char *help;             // examples first
    std::vector<Option> options;  // besides those that every verb has
    bool command_follows;
    int failure_exit;
    int (*run)(const Call &);
};

// One per file. The order of `dcs --help` is that of all_verbs().
extern const Verb up_verb, down_verb, status_verb, top_verb, run_verb, map_verb;
extern const Verb session_ls_verb, session_show_verb, session_watch_verb, session_wait_verb,
    session_close_verb, session_clean_verb, session_log_verb, session_export_verb, session_import_verb;
extern const Verb trace_verb;
extern const Verb grain_ls_verb, grain_show_verb, grain_cat_verb, grain_tail_verb, grain_explain_verb,
    grain_restart_verb, grain_kill_verb;
extern const Verb host_ls_verb, host_show_verb, host_drain_verb, host_undrain_verb, host_set_verb;
extern const Verb host_join_verb, host_approve_verb, host_rm_verb;
extern const Verb backup_status_verb, backup_promote_verb, backup_detach_verb;
extern const Verb token_create_verb, token_ls_verb, token_revoke_verb;
extern const Verb replay_check_verb, doctor_verb, reload_verb, log_level_verb, completion_verb;
const std::vector<const Verb *> &all_verbs();

// The whole command; `line` without the program's name. What main() returns.
int run_command(const std::vector<std::string> &line);

}  // namespace dcs::commands
