#include "scheduler/shell/scheduler_options.h"

#include "base/clock.h"
#include "daemon/peer_name.h"
#include "net/socket_calls.h"
#include "scheduler/keeper/logins.h"
#include "scheduler/keeper/settings_file.h"
#include "scheduler/shell/host_table_file.h"
#include "scheduler/shell/lost_hosts.h"
#include "scheduler/shell/policy_file.h"
#include "scheduler/shell/settings_text.h"

namespace dcs::shell {
namespace {

template <class T>
void take(const Result<std::string> &text, const std::string &file,
          Result<T> (*parse)(std::string_view, const std::string &), T &into, std::vector<Status> &why) {
    Result<T> found = text ? parse(*text, file) : text.status();
    if (found) into = std::move(*found);
    else why.push_back(found.status());
}

Status check_options(const SchedulerOptions &options) {
    if (options.tls.empty() && !options.tls_users.empty())
        return fail(Code::invalid, "--tls-users needs --tls: without it grain servers of other hosts cannot connect");
    const std::pair<const char *, const std::string &> addresses[] = {{"--tls", options.tls},
                                                                      {"--tls-users", options.tls_users}};
    for (const auto &[option, address] : addresses)
        if (const auto at = net::parse_tcp_address(address); !address.empty() && !at)
            return fail(Code::invalid, std::string(option) + ": " + at.status().text);
    for (const std::string &name : options.master_names())
        if (!is_name(name)) return fail(Code::invalid, "--master: `" + name + "` is not a login name");
    return Status::ok();
}

std::vector<std::string> wrong_files(const SchedulerOptions &options) {
    std::vector<Status> why;
    (void)read_settings_files(options.settings(), why);
    std::vector<std::string> texts;
    // Not among the options' checks: a scheduler that serves cannot read the user database any more.
    if (!options.group.empty() && options.group != "none")
        if (const auto gid = group_number(options.group); !gid) texts.push_back("--group: " + gid.status().text);
    for (const Status &s : why)
        for (std::string_view rest = s.text; !rest.empty();) texts.emplace_back(take_line(rest));
    return texts;
}

// Of files without an error.
std::vector<std::string> doubtful_files(const SchedulerOptions &options) {
    std::vector<Status> why;
    const SettingsPaths paths = options.settings();
    const SettingsFiles files = read_settings_files(paths, why);
    std::vector<std::string> texts;
    if (!has_grain_host(files.hosts))
        texts.push_back(paths.hosts + " lists no host that runs grains: a scheduler that has some refuses it");
    if (const std::string alike = alike_names(files.hosts); !alike.empty()) texts.push_back(paths.hosts + ": " + alike);
    if (const auto age_s = files.policy.session_age_s; age_s > 0 && age_s < 24 * 3600)
        texts.push_back(paths.policy +
                        ": session_age removes sessions with their results on the day they are closed: "
                        "m means minutes, d days");
    if (!options.users_are_known_here()) return texts;
    UnknownLogins unknown([](const std::string &login) { return keeper::knows_login(login).code != Code::not_found; },
                          boot_clock);
    unknown.take(with_masters(files.logins, options.master_names()));
    for (const NamedLogin &named : unknown.look()) texts.push_back(unknown_login_text(named));
    return texts;
}

}  // namespace

std::vector<NamedLogin> with_masters(std::vector<NamedLogin> logins, const std::vector<std::string> &masters) {
    for (NamedLogin &master : logins_of_masters(masters)) logins.push_back(std::move(master));
    return logins;
}

std::vector<std::string> SchedulerOptions::master_names() const {
    std::vector<std::string> names;
    for (const std::string_view name : words_of(masters, ",")) names.emplace_back(name);
    return names;
}

CommandLine command_line(SchedulerOptions &into) {
    const Takes level = one_of("off|error|warn|info|debug"), mode = one_of("sync|lagging|off");
    return {
        .program = "dcs_scheduler",
        .purpose = "Assigns grains to grain servers and keeps all acknowledged work.",
        // clang-format off
        .options =
        {{"dir", &into.directory, "DIR", "working directory, with lock, sockets and state/", true},
         {"hosts", &into.hosts_file, "FILE", "host table, reread on SIGHUP (default: DIR/hosts)"},
         {"policy", &into.policy_file, "FILE", "the pool's policy, reread on SIGHUP (default: DIR/policy; optional)"},
         {"limits", &into.limits_file, "FILE", "limits of each user, reread on SIGHUP (default: DIR/limits; optional)"},
         {"tls", &into.tls, "ADDRESS:PORT",
          "serve grain servers and control programs of other hosts at this address, with TLS 1.3 (default: only this "
          "host)"},
         {"tls-users", &into.tls_users, "ADDRESS:PORT",
          "serve control programs of other hosts at this address, and at --tls only grain servers and the backup"},
         {"group", &into.group, "NAME",
          "members may use the pool; none: also users of other hosts without an account here (default: here root and "
          "this account, from other hosts members of dcs)"},
         {.name = "master", .into = &into.masters, .value = "LOGIN[,..]",
          .help = "logins with root's rights in the pool: scheduler_master", .where = Where::reload,
          .list = true},
         {.name = "mirror", .into = &into.mirror, .value = "MODE",
          .help = "keep a copy of the store at the backup: sync (commits wait for it), lagging or off (default)",
          .takes = mode},
         {.name = "log-level", .into = &into.log_level, .value = "LEVEL",
          .help = "off, error, warn, info or debug (default: info)", .where = Where::reload, .takes = level},
         {"accept-lost-turn", &into.accept_lost_turn, "N",
          "continue without turn N, which the last start reported as lost (its changes are lost)", false,
          Where::line},
         {"ready-fd", &into.ready_fd, "N", "write \"ready\" to this descriptor when serving", false, Where::line}},
        // clang-format on
        .check = [&into] { return check_options(into); },
        .check_files = [&into] { return wrong_files(into); },
        .warn_of_files = [&into] { return doubtful_files(into); }};
}

SettingsFiles read_settings_files(const SettingsPaths &paths, const ReadSettings &read, std::vector<Status> &why) {
    SettingsFiles files;
    const auto text = [&](keeper::Settings which, const std::string &file, const char *what) {
        Result<std::string> said = read(which, file, what);
        const bool missing = !said && said.status().code == Code::not_found;
        return missing && which != keeper::Settings::hosts ? Result<std::string>("") : said;
    };
    using keeper::Settings;
    const auto hosts = text(Settings::hosts, paths.hosts, "the host table");
    const auto policy = text(Settings::policy, paths.policy, "the policy");
    take(hosts, paths.hosts, parse_host_table, files.hosts, why);
    take(policy, paths.policy, parse_policy, files.policy, why);
    const auto limits = text(Settings::limits, paths.limits, "the limits");
    take(limits, paths.limits, parse_limits, files.limits, why);
    for (const auto *file : {&policy, &limits})
        if (*file) files.rules.merge(rules_of(**file));
    if (hosts) files.logins = logins_of_hosts(*hosts, paths.hosts);
    if (policy)
        for (NamedLogin &named : logins_of_policy(*policy, paths.policy)) files.logins.push_back(std::move(named));
    return files;
}

SettingsFiles read_settings_files(const SettingsPaths &paths, std::vector<Status> &why) {
    const auto read = [](keeper::Settings, const std::string &file, const char *what) {
        return keeper::read_settings(file, what);
    };
    return read_settings_files(paths, read, why);
}

std::vector<wire::ProblemRow> login_problems(const std::vector<NamedLogin> &unknown) {
    constexpr std::size_t most = 20;
    std::vector<wire::ProblemRow> rows;
    for (std::size_t i = 0; i < std::min(unknown.size(), most); ++i) {
        const NamedLogin &named = unknown[i];
        wire::ProblemRow row{"login " + named.login, named.place, "`" + named.words + "`"};
        row.advice = "correct it there and run `dcs reload`, or create the account";
        if (named.no_effect()) {
            row.problem += std::string(" has no effect: ") + why_no_effect(named);
            row.affects = named.words == "deny root" ? "root, who is not denied"
                                                     : "grains of root there, which run under an anonymous uid";
            row.advice = "remove it there and run `dcs reload`";
        } else if (named.shuts_out) {
            row.problem += ": no login of the list is known here";
            row.affects = "all users: only root and masters may use the pool, and grains of others do not start";
        } else if (named.words.starts_with("users=")) {
            row.problem += ": this host knows no such login";
            row.affects = "the host of that line, which is only for the users that its users= list";
        } else {
            row.problem += " has no effect, because this host knows no such login";
            row.affects = "what it should permit or deny";
        }
        rows.push_back(std::move(row));
    }
    return rows;
}

std::vector<wire::ProblemRow> with_refused(const std::string &why, std::vector<wire::ProblemRow> rows) {
    if (!why.empty())
        rows.push_back({"settings of the scheduler", "", "the last reload failed: " + why,
                        "the old settings remain in effect, but not over a restart", "correct it, then `dcs reload`"});
    return rows;
}

}  // namespace dcs::shell
