// dcs_scheduler: one directory, one scheduler. Everything it does is in scheduler/turn/turn.h.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/large_work.h"
#include "base/program_start.h"
#include "base/version.h"
#include "daemon/configuration.h"
#include "daemon/privileges.h"
#include "daemon/log.h"
#include "daemon/service.h"
#include "daemon/directory.h"
#include "pki/digest.h"
#include "scheduler/record/paths.h"
#include "scheduler/shell/lost_authority.h"
#include "scheduler/shell/lost_hosts.h"
#include "scheduler/shell/scheduler_options.h"
#include "resolver/resolver.h"
#include "scheduler/shell/one_state.h"
#include "scheduler/shell/serve.h"
#include "scheduler/shell/settings_text.h"
#include "store/disk_posix.h"
#include "store/identity.h"

namespace dcs::shell {
namespace {

void report_recovery(const store::RecoveryReport &report) {
    if (report.turns_finished > 0 || report.temporaries_discarded > 0)
        log_info("backing store recovered: " + std::to_string(report.turns_finished) +
                 " committed turns applied again, " + std::to_string(report.temporaries_discarded) +
                 " temporaries discarded");
    for (const store::Damage &damage : report.damaged) log_error("backing store: " + damage.path + ": " + damage.what);
}

// A session over which the scheduler aborted twice running must not stop it a third time.
Status set_aside_culprit(Suspect &suspect, store::Store &store) {
    const std::string culprit = suspect.culprit();
    const auto session = session_of(culprit);
    if (!session && !culprit.empty())
        log_error(
            "the scheduler aborted twice while reading messages of " + culprit +
            "; no session is set aside: "
            "report this to the maintainers, and exclude the sender in the policy's list of users or the host table");
    if (!session) return Status::ok();
    const std::string directory = record::session_directory(*session);
    if (!store.list(directory)) return Status::ok();  // it was never saved
    const std::string why = "the scheduler aborted twice while processing it";
    log_error("session " + culprit + " is set aside: " + why);
    return store.set_aside(directory, why);
}

Status look_at_limits() {
    rlimit now{};
    if (::getrlimit(RLIMIT_FSIZE, &now) == 0 && now.rlim_cur != RLIM_INFINITY)
        log_warn("files are limited to " + std::to_string(now.rlim_cur) +
                 " bytes (`ulimit -f`, LimitFSIZE=): beyond that, the disk counts as full");
    // Connections, and what the store and a few others have open beside them.
    constexpr rlim_t wanted = limits::connections + 1024, least = 64;
    if (::getrlimit(RLIMIT_NOFILE, &now) != 0 || now.rlim_cur >= wanted) return Status::ok();
    now.rlim_cur = std::min(wanted, now.rlim_max);
    const bool raised = ::setrlimit(RLIMIT_NOFILE, &now) == 0 && now.rlim_cur == wanted;
    const auto lacking = [&](rlim_t needed) {
        return "this process may open " + std::to_string(now.rlim_cur) + " files, " + std::to_string(needed) +
               " are needed: raise ulimit -Hn (LimitNOFILE=)";
    };
    if (now.rlim_cur < least) return fail(Code::limit, lacking(least));
    if (!raised) log_warn("for all connections: " + lacking(wanted));
    return Status::ok();
}

std::vector<wire::ProblemRow> problems_at_start(const store::RecoveryReport &recovery,
                                                std::vector<wire::ProblemRow> rebuilt) {
    // Sessions and grains that are set aside have rows of their own, as long as they are.
    const std::string sessions = std::string(record::sessions_directory) + "/";
    for (const store::Damage &damage : recovery.damaged)
        if (damage.path.compare(0, sessions.size(), sessions) != 0)
            rebuilt.push_back({"backing store", damage.path, damage.what, "nothing else", "check the disk"});
    return rebuilt;
}

turn::Turn::Setup setup_of(record::Rebuilt &rebuilt, std::uint64_t epoch, const store::RecoveryReport &recovery) {
    turn::Turn::Setup setup{.state = std::move(rebuilt.state)};
    setup.state.epoch = epoch;
    setup.set_aside = std::move(rebuilt.set_aside);
    setup.about = turn::AboutProcess{::getpid(), boot_clock(), DCS_VERSION};
    setup.about.problems = problems_at_start(recovery, std::move(rebuilt.problems));
    return setup;
}

// What the options say, and the files that they name.
Result<ServeSettings> settings_of(const SchedulerOptions &options) {
    std::vector<Status> why;
    SettingsFiles files = read_settings_files(options.settings(), why);
    if (!why.empty()) return in_short(why[0]);
    ServeSettings settings;
    settings.directory = options.directory;
    settings.files = options.settings();
    settings.ready_fd = options.ready_fd;
    settings.members_only = !options.group.empty() && options.group != "none";
    settings.masters = options.master_names();
    settings.hosts = std::move(files.hosts);
    settings.policy = std::move(files.policy);
    settings.rules = std::move(files.rules);
    settings.limits = files.limits;
    settings.look_up_logins = options.users_are_known_here();
    if (settings.look_up_logins) settings.logins = with_masters(std::move(files.logins), settings.masters);
    return settings;
}

keeper::Place keeper_place(const SchedulerOptions &line, const ServeSettings &settings) {
    const std::string members = line.group.empty() ? "dcs" : line.group == "none" ? "" : line.group;
    return {line.directory + "/pki", settings.files.hosts, settings.files.policy, settings.files.limits, members};
}

// A store that has no name yet gets one. Who promotes a copy of it raises the epoch.
Result<store::Identity> name_store(store::Store &store) {
    auto identity = store::read_identity(store);
    if (!identity || (identity->name != 0 && identity->whole)) return identity;
    if (identity->name != 0) {
        log_error("identity: one of its copies was damaged and has been rewritten");
        const store::CommitResult done = store.commit({store::identity_update(*identity)});
        if (done.answer != store::Answer::done) return done.status;
        return identity;
    }
    const Token token = pki::random_token();
    std::memcpy(&identity->name, token.data(), sizeof identity->name);
    identity->name |= 1;  // never 0
    const store::CommitResult done = store.commit({store::identity_update(*identity)});
    if (done.answer != store::Answer::done) return done.status;
    return identity;
}

Result<record::Rebuilt> rebuild(store::Store &store, Suspect &suspect, const ServeSettings &settings) {
    const LargeSteps steps;
    auto rebuilt = record::rebuild(store, boot_clock(),
                                   [&](const SessionKey &session) { suspect.working_on(session_text(session)); });
    suspect.working_on("");
    if (!rebuilt) return rebuilt;
    failpoint("shell.start.after_rebuild");
    for (const std::string &what : rebuilt->reports) log_error(what);
    std::string lost;
    if (Status s = keeps_working_hosts(rebuilt->state, settings.hosts, settings.files.hosts, lost); !s) return s;
    if (!lost.empty()) log_warn(lost);
    log_info(std::to_string(rebuilt->state.sessions.size()) + " sessions after turn " + std::to_string(store.turn()));
    return rebuilt;
}

store::StoreOptions store_options(const SchedulerOptions &line) {
    return {.accept_lost_turn = static_cast<std::uint64_t>(std::max(0, line.accept_lost_turn))};
}

Result<Doors> doors_of(const SchedulerOptions &line, const std::string &state, keeper::KeeperClient &keeper,
                       net::Loop &loop) {
    if (!line.tls.empty())
        if (Status s = authority_is_there(line.directory + "/pki", state, store_options(line)); !s) return s;
    return open_doors(loop, keeper, line.directory, line.group, line.tls, line.tls_users);
}

turn::Mirror::Setup mirror_setup(const store::Identity &identity, turn::MirrorMode mode, AttachedFile &attached) {
    turn::Mirror::Setup setup{identity, mode, attached.read()};
    setup.own_up_to = attached.own_up_to();
    return setup;
}

// From here on the log is the place for errors.
Status run(const SchedulerOptions &line, Configuration &configuration) {
    if (Status enough = look_at_limits(); !enough) return enough;
    ServiceManager manager = ServiceManager::find();
    manager.tell("STATUS=reading the state in " + line.directory);
    const auto own = take_own_directory(line.directory, locks::DcsAtom::scheduler, locks::DcsAtom::store, "scheduler");
    if (!own) return own.status();
    const auto mark = take_state(line.directory);
    if (!mark) return mark.status();

    auto settings = settings_of(line);
    if (!settings) return settings.status();
    if (Status s = configuration.open(line.directory); !s) return s;
    auto signals = Signals::open();
    if (!signals) return signals.status();
    const auto keeper = keeper::KeeperClient::start(keeper_place(line, *settings));
    if (!keeper) return keeper.status();
    const auto reader = reader::Reader::start();
    if (!reader) return reader.status();
    if (Status s = start_resolver("the scheduler", settings->resolver); !s) return s;
    const std::unique_ptr<net::Loop> loop = net::Loop::create();
    if (!loop) return fail(Code::limit, "no descriptors left for an event loop: raise ulimit -n");
    failpoint("shell.start.before_listen");
    auto doors = doors_of(line, own->state, **keeper, *loop);
    if (!doors) return doors.status();
    failpoint("shell.start.after_listen");
    auto suspect = Suspect::open(line.directory + "/suspect");
    if (!suspect) return suspect.status();
    auto attached = AttachedFile::open(line.directory + "/attached");
    if (!attached) return attached.status();
    failpoint("shell.start.before_recovery");
    // Before it reads a byte that others wrote. The keeper has the rest.
    if (Status s = keep_only_files("the scheduler", 0, {own->state}); !s) return s;

    auto disk = store::open_posix_disk(own->state, keeps_openat2());
    if (!disk) return disk.status();
    store::RecoveryReport recovery;
    store::StoreOptions options = store_options(line);
    locks::LockFile alone;  // asked before each commit
    options.still_alone = [&] { return locks::still_alone(own->store, alone); };
    const turn::MirrorMode mode = *turn::mirror_mode_of(line.mirror);
    CommittedTurns turns(mode != turn::MirrorMode::off);
    options.committed = [&](std::uint64_t turn, const std::vector<store::Step> &steps) { turns.add(turn, steps); };
    options.recovered = [&](std::uint64_t turn, const auto &steps) { turns.add_recovered(turn, steps); };
    auto store = store::Store::open(**disk, record::forest(), options, &recovery);
    if (!store) return store.status();
    report_recovery(recovery);
    failpoint("shell.start.after_recovery");
    if (Status s = set_aside_culprit(**suspect, **store); !s) return s;
    const auto identity = name_store(**store);
    if (!identity) return identity.status();
    if (Status s = still_in_office(**attached, identity->epoch, line.directory); !s) return s;
    if (Status s = note_store(*mark, own->state); !s) return s;
    auto rebuilt = rebuild(**store, **suspect, *settings);
    if (!rebuilt) return rebuilt.status();
    turn::Turn::Setup setup = setup_of(*rebuilt, identity->epoch, recovery);
    auto library = library::Library::open(**disk, boot_clock());
    if (!library) return library.status();
    setup.library = std::move(*library);
    auto library_disk = store::open_posix_disk(own->state, keeps_openat2());  // a Disk is of one thread
    if (!library_disk) return library_disk.status();
    settings->manager = std::move(manager);
    RemovalWatch removal(own->daemon);
    settings->removal = &removal;
    Service service(std::move(*settings), *signals, **suspect, **store, std::move(*library_disk), *loop, **keeper,
                    **reader, std::move(*doors), std::move(setup),
                    {mirror_setup(*identity, mode, **attached), **attached, turns}, configuration);
    return service.run();
}

int main(int argc, char **argv) {
    keep_buffers();
    SchedulerOptions options;
    Configuration configuration = Configuration::take(command_line(options), argc, argv);
    ::umask(077);
    log_open("dcs_scheduler", *level_of(options.log_level));
    const Status passed = check_ready_fd(options.ready_fd), s = passed ? run(options, configuration) : passed;
    if (s) return 0;
    std::fprintf(stderr, "dcs_scheduler: %s\n", s.text.c_str());
    return s.code == Code::refused ? 4 : 1;  // 4: to start it again would change nothing
}

}  // namespace
}  // namespace dcs::shell

int main(int argc, char **argv) { return dcs::shell::main(argc, argv); }
