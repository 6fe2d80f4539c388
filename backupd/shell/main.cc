// dcs_backupd: the passive backup. It accepts grain servers' reports while the scheduler is away (backupd/turn/turn.h).
#include <cerrno>
#include <cstdio>

#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backupd/shell/backup_options.h"
#include "backupd/shell/members_file.h"
#include "backupd/shell/promote.h"
#include "backupd/shell/serve.h"
#include "base/clock.h"
#include "base/failpoint.h"
#include "daemon/configuration.h"
#include "daemon/privileges.h"
#include "daemon/log.h"
#include "daemon/service.h"
#include "daemon/directory.h"
#include "resolver/resolver.h"
#include "store/disk_posix.h"

namespace dcs::backup {
namespace {

// The name of a store is unique, because numbers of reports are valid only for their store.
Result<std::uint64_t> fresh_name() {
    std::uint64_t name = 0;
    while (name == 0)
        if (::getrandom(&name, sizeof name, 0) != static_cast<ssize_t>(sizeof name))
            return fail_errno(Code::io_error, "cannot generate a name for the store", errno);
    return name;
}

Result<State> load(store::Store &store, const BackupOptions &line) {
    auto rebuilt = record::rebuild(store);
    if (!rebuilt) return rebuilt.status();
    for (const std::string &what : rebuilt->reports) log_error(what);
    State state = std::move(rebuilt->state);
    state.started = boot_clock();
    state.most_bytes = line.most_bytes();
    if (state.store != 0) return state;
    const auto name = fresh_name();
    if (!name) return name.status();
    state.store = *name;
    rebuilt->first.push_back(record::name_store(*name));
    const store::CommitResult done = store.commit(rebuilt->first);
    if (done.answer != store::Answer::done) return fail(Code::io_error, "cannot name the store: " + done.status.text);
    return state;
}

Status run(const BackupOptions &line, Configuration &configuration) {
    if (Status s = check_ready_fd(line.ready_fd); !s) return s;
    ServiceManager manager = ServiceManager::find();
    manager.tell("STATUS=reading the state in " + line.directory);
    const auto own = take_own_directory(line.directory, locks::DcsAtom::backup, locks::DcsAtom::backup_store, "backup");
    if (!own) return own.status();
    net::PoolLink link;
    const std::string pki = line.pki.empty() ? line.directory + "/pki" : line.pki;
    if (Status s = link.open(line.scheduler, pki, pki::Role::backup, ""); !s) return s;
    if (Status s = configuration.open(line.directory); !s) return s;
    auto members = read_members(line.directory);
    if (!members) return members.status();
    auto signals = Signals::open();
    if (!signals) return signals.status();
    const std::unique_ptr<net::Loop> loop = net::Loop::create();
    if (!loop) return fail(Code::limit, "no descriptors left for an event loop: raise ulimit -n");
    const Result<Doors> doors = open_doors(*loop, line.directory, line.tls, link);
    if (!doors) return doors.status();
    auto places = open_mirror_places(line.directory);
    if (!places) return places.status();
    failpoint("backup.start.before_recovery");
    // Before any foreign data is read. With TLS it must write its certificate and the list of its peers.
    std::unique_ptr<SideProcess> resolver;
    if (link.tls())
        if (Status s = start_resolver("the backup", resolver); !s) return s;
    std::vector<std::string> files{own->state, line.directory + "/mirror"};
    if (link.tls()) files = {line.directory, pki};
    if (Status s = keep_only_files("the backup", 0, files); !s) return s;
    auto disk = store::open_posix_disk(own->state, keeps_openat2());
    if (!disk) return disk.status();
    store::RecoveryReport recovery;
    store::StoreOptions options;
    locks::LockFile alone;  // asked before each commit
    options.still_alone = [&] { return locks::still_alone(own->store, alone); };
    auto store = store::Store::open(**disk, record::forest(), options, &recovery);
    if (!store) return store.status();
    for (const store::Damage &damage : recovery.damaged)
        log_error("backup's store: " + damage.path + ": " + damage.what);
    auto loaded = load(**store, line);
    if (!loaded) return loaded.status();
    loaded->members = std::move(*members);
    failpoint("backup.start.after_recovery");
    std::unique_ptr<net::Loop> mirror_loop = net::Loop::create();
    if (!mirror_loop) return fail(Code::limit, "no descriptors left for an event loop: raise ulimit -n");
    net::PoolLink mirror_way = link;  // one for each thread
    const MirrorLink mirror(std::move(*places), mirror_way, std::move(mirror_loop),
                            [&] { return locks::still_alone(own->store); });
    Service service({line.directory, line.ready_fd, std::move(manager), RemovalWatch(own->daemon), std::move(resolver)},
                    *signals, **store, *loop, link, *doors, std::move(*loaded), mirror, configuration);
    return service.run();
}

// Takes the backup's lock, so that it cannot run at the same time.
int promote_copy(const BackupOptions &line) {
    const auto own = take_own_directory(line.directory, locks::DcsAtom::backup, locks::DcsAtom::backup_store, "backup");
    const auto done = own ? promote(line.directory, line.promote) : Result<Promoted>(own.status());
    if (!done) {
        std::fprintf(stderr, "dcs_backupd: %s\n", done.status().text.c_str());
        return !own || done.status().code == Code::refused ? 4 : 1;  // 4: nothing has changed
    }
    if (!done->kept.empty()) std::printf("The former state directory is kept as %s.\n", done->kept.c_str());
    if (done->turn == 0) {
        std::printf("The copy is already promoted, to epoch %llu; the state directory %s is unchanged.\n",
                    static_cast<unsigned long long>(done->epoch), line.promote.c_str());
        return 0;
    }
    std::printf("The copy, as of turn %llu, is now the state directory %s, in epoch %llu.\n",
                static_cast<unsigned long long>(done->turn), line.promote.c_str(),
                static_cast<unsigned long long>(done->epoch));
    std::printf(
        "If commits did not wait for the copy (--mirror lagging, or `dcs backup detach`), what was "
        "acknowledged after turn %llu is lost.\n",
        static_cast<unsigned long long>(done->turn));
    return 0;
}

int main(int argc, char **argv) {
    BackupOptions options;
    Configuration configuration = Configuration::take(command_line(options), argc, argv);
    ::umask(077);
    if (!options.promote.empty()) return promote_copy(options);
    log_open("dcs_backupd", *level_of(options.log_level));
    const Status s = run(options, configuration);
    if (s) return 0;
    std::fprintf(stderr, "dcs_backupd: %s\n", s.text.c_str());
    return s.code == Code::refused ? 4 : 1;
}

}  // namespace
}  // namespace dcs::backup

int main(int argc, char **argv) { return dcs::backup::main(argc, argv); }
