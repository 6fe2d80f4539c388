// The start of a grain server: its directory, its owner's options, its privileges, the grains of an earlier server.
#include <cerrno>
#include <cstdlib>

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/trusted_path.h"
#include "daemon/privileges.h"
#include "grainserver/shell/found_resources.h"
#include "grainserver/shell/configured.h"
#include "grainserver/shell/server.h"
#include "process/table.h"
#include "resolver/resolver.h"

namespace dcs::server {
namespace {
constexpr const char *own_folder = "server";
constexpr Duration lock_patience = seconds(5);

bool lives(pid_t pid) {
    ProcessStat stat;
    return pid > 0 && read_stat(pid, stat) && stat.state != 'Z' && stat.state != 'X';
}

// If a server is killed while it starts its warden, the warden has the lock for a moment.
Result<locks::AdaptiveLock> take_lock(const std::string &path) {
    for (const Instant deadline = boot_clock() + lock_patience;;) {
        Result<locks::AdaptiveLock> lock = locks::take_dcs_atom(locks::DcsAtom::grain_server, path);
        if (lock || lock.status().code != Code::refused || boot_clock() >= deadline) return lock;
        if (lives(locks::holder_of(path))) return lock;
        ::usleep(20'000);
    }
}

files::OwnerRules rules_for_launcher(const GrainRules &rules, const std::string &directory) {
    return {.users = rules.identity.users,
            .accounts = rules.identity.accounts,
            .first = rules.identity.first,
            .last = rules.identity.last,
            .limits = rules.limits,
            .rungs = rules.rungs,
            .writable = rules.writable,
            .homes = directory + "/" + files::homes_folder,
            .images_mb = rules.images_mb};
}

}  // namespace

// This process writes below these directories only: it will lose access to the rest of DIR.
Status Server::begin_directory() {
    for (const std::string *path : {&options_.directory, &options_.slots_directory})
        if (Status s = path->empty() ? Status::ok() : trusted_path(*path); !s) return fail(Code::invalid, s.text);
    // Missing directories above are made accessible, as they are not for this server alone.
    const mode_t above = ::geteuid() == 0 ? 0711 : 0700;
    if (Status s = make_directories(options_.directory, above); !s) return s;
    char *real = ::realpath(options_.directory.c_str(), nullptr);
    if (real == nullptr) return file_error(options_.directory, errno);
    options_.directory = real;
    ::free(real);
    Result<locks::AdaptiveLock> lock = take_lock(options_.directory + "/lock");
    if (!lock) return lock.status();
    lock_ = std::move(*lock);
    for (const char *folder : {files::grains_folder, files::homes_folder, library_folder, own_folder})
        if (Status s = make_directories(options_.directory + "/" + folder); !s) return s;
    // Earlier releases made the library passable for all accounts; the mode of this directory closes all below
    // it.
    const std::string library = options_.directory + "/" + library_folder;
    if (::chmod(library.c_str(), 0700) != 0) return file_error(library, errno);
    if (!options_.slots_directory.empty())
        if (Status s = make_directories(options_.slots_directory, above); !s) return s;
    const Result<Fd> base = open_directory(AT_FDCWD, options_.directory);
    Result<Fd> own = open_directory(AT_FDCWD, options_.directory + "/" + own_folder);
    if (!base || !own) return base ? own.status() : base.status();
    own_ = std::move(*own);
    for (const char *name : {configured_name, made_up_name})  // their former place
        if (!file_exists(own_.get(), name)) (void)::renameat(base->get(), name, own_.get(), name);
    return Status::ok();
}

// Of this machine, as long as this server, its launcher or its grains live.
Status Server::claim_uids() {
    const std::string &owner = options_.slots_directory.empty() ? options_.directory : options_.slots_directory;
    if (Status s = uids_.open(owner); !s) {
        if (s.code == Code::invalid) return s;
        log_(Level::warning, "not known whether another server of this machine has these anonymous uids: " + s.text);
        return Status::ok();
    }
    const Status s = uids_.take(options_.identity.first, options_.identity.last);
    if (s || s.code != Code::refused) return s;
    return fail(Code::invalid,
                "--anonymous-uids " + std::to_string(options_.identity.first) + "-" +
                    std::to_string(options_.identity.last) + " overlaps " + s.text +
                    ": give this server a range of its own by --anonymous-uids, or, if both are to share slots and "
                    "uids, both the same --slots-dir");
}

void Server::check_claims() {
    if (uids_lost_ || uids_.fd() < 0 || uids_.count()) return;
    uids_lost_ = true;
    log_(Level::error, std::string(locks::uid_claims_path) +
                           " was removed or replaced: until all grain servers of this machine and their launchers "
                           "have been restarted, two may have the same anonymous uids");
}

// Writes the owner's rules where the launcher finds them and this process can no longer change them.
Result<GrainRules> Server::settle_rules() {
    const files::Available host = files::rungs_available(options_.identity.users, options_.directory);
    const Result<Rungs> rungs = rungs_for(options_.rungs, host);
    if (!rungs) return rungs.status();
    state_.confinement = *rungs;
    const std::string lack = lacks_containers(options_.identity.users);
    if (options_.resources == "auto" || options_.resources == no_devices)
        log_(Level::info, lack.empty() ? "grains can run in containers" : "grains cannot run in containers: " + lack);
    if (const auto found = found_resources(options_.resources, std::getenv("CUDA_VISIBLE_DEVICES"), lack.empty()))
        state_.resources = resource_text(*found);
    log_(Level::info, "grains are confined by " + to_words(*rungs));
    const files::Limits &most = options_.limits;
    state_.limits = {most.memory_mb, most.processes, most.cpu_s, most.file_mb, most.disk_mb};
    const std::string uids =
        options_.slots_directory.empty() ? options_.directory + "/" + own_folder : options_.slots_directory;
    if (options_.identity.users) {
        if (Status s = claim_uids(); !s) return s;
        if (Status s = Identities::make_lock(uids); !s) return s;
    }
    GrainRules rules{options_.identity,       uids,
                     options_.limits,         *rungs,
                     options_.rungs.writable, static_cast<std::uint32_t>(options_.images_mb)};
    const Result<Fd> base = open_directory(AT_FDCWD, options_.directory);
    if (!base) return base.status();
    files::OwnerRules words = rules_for_launcher(rules, options_.directory);
    words.ordinary_priority = options_.ordinary_priority;
    for (const std::string &name : words.accounts)
        if (const auto login = files::logins_of_this_host().login(words, name); !login)
            log_(Level::warning,
                 "--accounts " + name + ": " + login.status().text + ": its grains run under an anonymous uid");
    if (Status s = replace_durably(base->get(), files::rules_name, files::pack(words)); !s)
        return fail(s.code, s.text + (s.code == Code::no_space ? ": free space there, then start it again" : ""));
    const std::string launcher = options_.own_launcher ? options_.launcher_program : "";  // else it can start none
    auto warden = warden::WardenClient::start(
        words, {launcher, options_.directory, options_.name, options_.slots_directory, options_.use_cgroups});
    if (!warden) return warden.status();
    warden_ = std::move(*warden);
    rules.logins = warden_.get();
    rules.giving = warden_;
    return rules;
}

// Root keeps its rights over the files in the directories below, some of which belong to accounts of grains, and no
// others; the warden has the rest.
Status Server::give_up_the_rest() {
    constexpr std::uint64_t kept = 1ull << CAP_DAC_OVERRIDE | 1ull << CAP_FOWNER;
    failpoint("server.start.before_fence");
    std::vector<std::string> own{options_.pki_directory};
    for (const char *folder : {files::grains_folder, files::homes_folder, library_folder, own_folder})
        own.push_back(options_.directory + "/" + folder);
    if (!options_.slots_directory.empty()) own.push_back(options_.slots_directory);
    const std::vector<std::string> readable{options_.directory, "/proc", "/sys/fs/cgroup"};
    if (Status s = keep_only_files("the grain server", kept, own, readable); !s) return s;
    ::umask(0);  // each file and directory is created with its final mode, which cannot be changed later
    return Status::ok();
}

Status Server::open(const ServerOptions &options) {
    options_ = options;
    if (Status s = begin_directory(); !s) return s;
    if (options_.pki_directory.empty()) options_.pki_directory = options_.directory + "/pki";
    const Result<GrainRules> rules = settle_rules();
    if (!rules) return rules.status();
    if (Status s = configuration_.open(options_.directory); !s) return s;
    if (options_.scheduler.find('/') == std::string::npos)
        if (Status s = start_resolver("the grain server", resolver_); !s) return s;
    if (Status s = give_up_the_rest(); !s) return s;  // before any foreign data is read
    state_.host = options_.name;
    state_.binary_class = options_.binary_class;
    state_.boot_id = boot_id();
    state_.instance = random_number();
    state_.courtesy.on = options.watch;
    state_.job.part_of = options.leave_after.ns > 0;
    if (state_.job.part_of) state_.job.leave_at = boot_clock() + options.leave_after;
    state_.job.idle = options.leave_idle;
    constexpr auto role = pki::Role::grain_server;
    if (Status s = link_.open(options_.scheduler, options_.pki_directory, role, options_.name); !s) return s;
    const bool local = options_.backup.find('/') != std::string::npos;
    if (!options_.backup.empty() && !local && !link_.tls())
        return fail(Code::invalid, "--backup HOST:PORT requires a scheduler at HOST:PORT, but --scheduler is a socket");
    state_.asks_for_backup = link_.tls() && !local;
    state_.has_backup = local;
    load_configured(own_.get(), state_);
    files_.run_by(options_.runner);
    if (Status s = open_grains(*rules); !s) return s;
    loop_ = net::Loop::create();
    for (Adopted &a : files_.adopt()) {
        log_(Level::info, to_text(a.id) + (a.exit      ? " has ended"
                                           : a.started ? " continues to run"
                                                       : " has not started yet"));
        put(std::move(a));
    }
    put(Began{});
    return Status::ok();
}

Status Server::open_grains(const GrainRules &rules) {
    if (Status s = files_.open(options_.directory, options_.name, state_.boot_id, rules); !s) return s;
    launcher_.open(options_.directory, [this] {
        if (options_.own_launcher) return warden_->start_launcher();
        return fail(Code::unreachable, "no launcher serves " + options_.directory +
                                           ", and with --launcher service this server starts none: see its unit, "
                                           "dcs-launcher.service");
    });
    contents_.open_programs_by([this](const std::string &path, const files::Account &account) {
        return warden_->open_program(path, account);
    });
    return contents_.open(options_.directory, options_.binary_class,
                          static_cast<std::uint64_t>(options_.library_mb) << 20, [this] { return needed_contents(); });
}

}  // namespace dcs::server
