#include "verbs.h"

#include <algorithm>

namespace dcs::commands {

const OptionTable &common_options() {
    // clang-format off
    static const OptionTable table = {
        {"output", 'o', "FORMAT", one_of("table|json|name"), "how results are printed"},
        {"dir", 0, "DIR", some_text, "the pool's directory"},
        {"color", 0, "WHEN", one_of("auto|always|never"), "states in colour"},
        {"help", 'h', nullptr, {}, "say how it is used"},
        {"version", 0, nullptr, {}, "say which version this is"}};
    // clang-format on
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

}  // namespace dcs::commands
