#include "grainserver/launcher/launcher.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/planted.h"
#include "base/require.h"
#include "grainserver/files/program_mark.h"
#include "grainserver/files/say.h"
#include "daemon/privileges.h"

namespace dcs::launcher {
namespace {
constexpr std::size_t peers_max = 16;
constexpr Duration retry = milliseconds(120);
constexpr Duration look_around = seconds(30);
constexpr Duration answers_last = milliseconds(5);  // in which the next ends join them
constexpr Duration lower_every = seconds(1);
constexpr Duration spares_last = seconds(2);
constexpr std::size_t mounts_max = 1u << 20;

Status take_signals(Fd &fd) {
    // Inherited handlers must not reach the grains; by raw system call, as libc reserves two signals.
    const unsigned long by_default[4] = {};
    for (int n = 1; n <= 64; ++n) ::syscall(SYS_rt_sigaction, n, by_default, nullptr, 8);
    for (const int of_write : {SIGPIPE, SIGXFSZ}) ::signal(of_write, SIG_IGN);
    sigset_t set;
    ::sigemptyset(&set);
    for (const int n : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&set, n);
    ::sigprocmask(SIG_SETMASK, &set, nullptr);
    fd = Fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    return fd ? Status::ok() : fail_errno(Code::io_error, "signalfd", errno);
}

std::string absolute(const std::string &path) {
    char *real = ::realpath(path.c_str(), nullptr);
    std::string text = real != nullptr ? real : "";
    ::free(real);
    return text;
}
// Without the file of the owner's rules, or with a damaged one, no grain is started.
files::OwnerRules rules_in(int base) {
    const auto bytes = files::read_record(base, files::rules_name);
    const auto rules = bytes ? files::unpack_rules(*bytes) : Result<files::OwnerRules>(bytes.status());
    return rules ? *rules : files::OwnerRules();
}

}  // namespace

Status Launcher::open(const LauncherOptions &options) {
    directory_ = absolute(options.directory);
    if (directory_.empty()) return file_error(options.directory, errno);
    Result<locks::AdaptiveLock> lock =
        locks::take_dcs_atom(locks::DcsAtom::launcher, directory_ + "/" + files::launcher_lock);
    if (!lock) return lock.status();
    lock_ = std::move(*lock);
    path_ = directory_ + "/" + files::grains_folder;
    if (Status s = make_directories(path_); !s) return s;
    Result<Fd> base = open_directory(AT_FDCWD, directory_);
    if (!base) return base.status();
    base_ = std::move(*base);
    Result<Fd> grains = open_directory(AT_FDCWD, path_);
    if (!grains) return grains.status();
    grains_fd_ = std::move(*grains);
    const std::string slots = options.slots.empty() ? directory_ + "/" + files::slots_folder : options.slots;
    if (Status s = make_directory(slots); !s) return s;
    place_ = Place{base_.get(), grains_fd_.get(), path_, slots, &leaves_, &keeper_, &starter_};
    struct stat st {};
    if (options.cgroups && ::fstat(base_.get(), &st) == 0) {
        const std::string group = "dcs-" + std::to_string(st.st_dev) + "-" + std::to_string(st.st_ino);
        files::say(cgroups_.open(group, "", !rules_in(base_.get()).ordinary_priority));
        counts_ = !cgroups_.set_all_limits();
    }
    if (Status s = take_signals(signals_); !s) return s;
    ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    if (Status s = starter_.start(directory_, cgroups_); !s) return s;
    bury_the_dead();
    if (Status s = keeper_.start(starter_); !s) return s;
    if (::geteuid() == 0)
        if (const Status s = uids_.open(options.slots.empty() ? directory_ : slots); !s) files::say(s.text);
    claim_uids();
    const std::string mark = files::program_mark(::getpid(), "/proc/self/exe");
    if (Status s = replace_file(base_.get(), files::program_mark_name, mark); !s) files::say(s.text);
    if (Status s = listen(); !s) return s;
    return options.fence ? give_up_the_rest() : Status::ok();
}

// When a server calls, too, as the first one writes its rules after this launcher has started.
void Launcher::claim_uids() {
    const files::OwnerRules rules = rules_in(base_.get());
    if (!rules.users || uids_.fd() < 0) return;
    const Status s = uids_.take(rules.first, rules.last);
    if (!s) files::say("anonymous uids: " + s.text);
    else (void)keeper_.hold_uids(uids_.fd());
}

// Before it reads a record or a call. Root keeps its uid, and with it what belongs to root below these directories.
Status Launcher::give_up_the_rest() {
    failpoint("launcher.open.before_fence");
    // Such a /proc shows processes only to a process that may trace them, and none of grains to one with Landlock.
    const bool hidden = kernel_text("/proc/self/mountinfo", mounts_max).find("hidepid=") != std::string::npos;
    if (Status s = give_up_capabilities(hidden ? 1ull << CAP_SYS_PTRACE : 0); !s) return s;
    std::vector<std::string> readable = cgroups_.places();
    readable.insert(readable.end(), {directory_, "/proc"});
    const Result<bool> files = hidden ? false : give_up_files({path_, place_.slots}, readable);
    if (!files) return files.status();
    if (!*files)
        files::say(std::string(hidden ? "/proc hides processes (hidepid)" : "this kernel has no Landlock") +
                   ", so the launcher keeps its account's rights to files; see SECURITY.md");
    const Result<bool> calls = give_up_calls({.process_ends = true, .own_children = true});
    if (!calls) return calls.status();
    if (!*calls) files::say("this kernel cannot filter system calls (seccomp); see SECURITY.md");
    failpoint("launcher.open.after_fence");
    return Status::ok();
}

// Through the directory's descriptor: a socket address holds 107 bytes, a path may be longer.
Status Launcher::listen() {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", base_.get(),
                  files::launcher_socket);
    listener_ = Fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!listener_) return fail_errno(Code::io_error, "socket", errno);
    remove_file(base_.get(), files::launcher_socket);  // of a dead launcher: this one holds the lock
    const mode_t old = ::umask(0177);
    const int bound = ::bind(listener_.get(), reinterpret_cast<const sockaddr *>(&address), sizeof address);
    const int error = errno;
    ::umask(old);
    if (bound != 0) return fail_errno(Code::io_error, directory_ + "/" + files::launcher_socket, error);
    if (::listen(listener_.get(), 8) != 0) return fail_errno(Code::io_error, "listen", errno);
    return Status::ok();
}

void Launcher::end_orphan(const std::string &dir, const std::string &leaf) {
    if (const Status s = starter_.end_orphan(dir, leaf); !s) files::say((dir.empty() ? leaf : dir) + ": " + s.text);
}

void Launcher::bury(const std::string &dir, int grain) {
    DCS_REQUIRE(grains_.empty(), "only grains of an earlier launcher are buried");
    const Result<std::string> text = files::read_record(grain, files::pid_name);
    const Result<files::PidRecord> old = text ? files::parse_pid(*text) : Result<files::PidRecord>(text.status());
    if (!old || old->boot_id == boot_id()) {
        files::say(dir + ": its launcher died; ending its remaining processes");
        end_orphan(dir, "");
    }
    files::ExitRecord exit{.innocent = true, .reason = "the launcher of this host died while the grain ran"};
    // In the room that the server has made for it: the disk may be full.
    if (Status s = files::write_record(grain, files::exit_name, files::pack(exit)); !s) files::say(dir + ": " + s.text);
}

// The leaves first: which of them was whose died with the launcher, and all their processes are to be ended.
void Launcher::bury_the_dead() {
    const std::vector<std::string> leaves = cgroups_.leaves();
    for (const std::string &leaf : leaves)
        if (!cgroups_.members(leaf).empty()) end_orphan("", leaf);
    if (const Result<std::vector<std::string>> dirs = list_directory(grains_fd_.get()))
        for (const std::string &dir : *dirs) {
            const Result<Fd> grain = open_directory(grains_fd_.get(), dir);
            if (!grain) continue;
            if (!files::has_record(grain->get(), files::pid_name)) continue;
            if (!files::has_record(grain->get(), files::exit_name)) bury(dir, grain->get());
            const Result<std::string> text = files::read_record(grain->get(), files::launch_name);
            if (const auto launch = text ? files::unpack_launch(*text) : Result<files::LaunchRecord>(text.status());
                launch)
                note_leftovers(launch->account);
        }
    for (const std::string &leaf : leaves)
        if (!starter_.remove_leaf(leaf)) stale_leaves_.insert(leaf);
}

Status Launcher::run() {
    while (!ended_ && !starter_.lost()) {
        wait_once(boot_clock());
        if (stopping_) push_stop(boot_clock());
    }
    // The next launcher ends the grains, and until then the keeper holds their slots.
    if (starter_.lost()) return fail(Code::unreachable, "the launcher's starter " + starter_.how_it_ended());
    DCS_REQUIRE(ended_, "the loop ends only with the launcher");
    leaves_.remove_spares();
    if (grains_.empty()) keeper_.finish();
    if (cgroups_.leaves().empty()) starter_.remove_group();
    return Status::ok();
}

// One poll, and the handling of all its events. The time-out is finite while a refused operation must be
// retried, and to notice the removal of the server's directory.
void Launcher::wait_once(Instant now) {
    bool again = stopping_ || !stale_leaves_.empty();
    for (const auto &[dir, grain] : grains_) again = again || grain.first_process_ended || !grain.low_priority;
    std::vector<pollfd> fds = {{signals_.get(), POLLIN, 0},
                               {listener_.get(), POLLIN, 0},
                               {keeper_.fd(), POLLIN, 0},
                               {starter_.fd(), POLLIN, 0}};
    for (const int peer : peers_) fds.push_back({peer, POLLIN, 0});
    const bool may_begin_sessions = !grains_.empty() && NewSessions::matter();
    Duration wait = again || lower_again_ ? retry : may_begin_sessions ? lower_every : look_around;
    if (!grains_.empty() || !leaves_.any_spare()) spares_until_ = Instant::never();
    else if (spares_until_ == Instant::never()) spares_until_ = now + spares_last;
    const Instant next = std::min({next_watch_, leftovers_.next(), spares_until_, answers_by_});
    if (next != Instant::never()) wait = std::clamp(next - now, milliseconds(0), wait);
    if (may_start_queued()) wait = std::clamp(next_queue_try_ - now, milliseconds(0), wait);
    DCS_REQUIRE(wait.ns >= 0, "the time-out of poll is not negative");
    const int n = ::poll(fds.data(), fds.size(), static_cast<int>((wait.ns + 999'999) / 1'000'000));
    if (n < 0) return;
    if (fds[3].revents != 0) starter_.lose();
    if (starter_.lost()) return;
    for (std::size_t i = fds.size(); i-- > 4;)
        if (fds[i].revents != 0) read_peer(i - 4);
    if (fds[2].revents != 0) keep_keeper();
    if (fds[1].revents != 0) accept_peer();
    if (fds[0].revents != 0) on_signals();
    if (n == 0 || (again && now >= next_try_)) {
        next_try_ = now + retry;
        look_at_children();
        for (auto &[dir, grain] : grains_)
            if (!grain.low_priority) grain.low_priority = starter_.lower(grain.pid);
        for (auto it = stale_leaves_.begin(); it != stale_leaves_.end();)
            it = starter_.remove_leaf(*it) ? stale_leaves_.erase(it) : std::next(it);
    }
    if (boot_clock() >= spares_until_) leaves_.remove_spares();
    if (may_begin_sessions && now >= next_lower_) lower_sessions(now);
    if (boot_clock() >= next_watch_) watch(boot_clock());
    if (boot_clock() >= leftovers_.next()) clear_leftovers(boot_clock());
    start_queue(boot_clock());
    if (boot_clock() >= answers_by_) send_answers();
    struct stat st {};
    if (n == 0 && !stopping_ && ::fstat(base_.get(), &st) == 0 && st.st_nlink == 0) stop_all(boot_clock());
}

void Launcher::lower_sessions(Instant now) {
    std::set<pid_t> firsts;
    for (const auto &[dir, grain] : grains_) firsts.insert(grain.pid);
    lower_again_ = !new_sessions_.lower(firsts, starter_);
    next_lower_ = now + (lower_again_ ? retry : lower_every);
}

void Launcher::on_signals() {
    signalfd_siginfo all[8];
    bool stop = false;
    for (ssize_t n = sizeof all; n == static_cast<ssize_t>(sizeof all);) {
        n = ::read(signals_.get(), all, sizeof all);
        for (ssize_t i = 0; i < n / static_cast<ssize_t>(sizeof all[0]); ++i)
            stop = stop || all[i].ssi_signo == SIGTERM || all[i].ssi_signo == SIGINT;
    }
    look_at_children();
    if (stop && !stopping_) stop_all(boot_clock());
}

void Launcher::accept_peer() {
    const int fd = ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return;
    ucred peer{};
    socklen_t size = sizeof peer;
    const bool known = ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0;
    if (!known || (peer.uid != ::geteuid() && peer.uid != 0) || peers_.size() >= peers_max) {
        ::close(fd);
        return;
    }
    peers_.push_back(fd);
    claim_uids();
}

void Launcher::drop_peer(int fd) {
    DCS_REQUIRE(std::count(peers_.begin(), peers_.end(), fd) == 1, "a connection is closed once");
    peers_.erase(std::remove(peers_.begin(), peers_.end(), fd), peers_.end());
    answers_.erase(fd);
    // A server that connects reads the directories, and must know that nothing else is started meanwhile.
    if (!planted("launcher.queue_outlives_server"))
        std::erase_if(queue_, [&](const Queued &waits) { return waits.peer == fd; });
    ::close(fd);
}

void Launcher::read_peer(std::size_t index) {
    DCS_REQUIRE(index < peers_.size(), "the index of the peer is valid");
    const int peer = peers_[index];
    std::string packet(files::launcher_packet_max, '\0');
    const ssize_t n = ::recv(peer, packet.data(), packet.size(), MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) return drop_peer(peer);
    packet.resize(static_cast<std::size_t>(n));
    for (const files::LauncherCall &call : files::parse_calls(packet)) {
        if (std::count(peers_.begin(), peers_.end(), peer) == 0) return;
        handle(peer, call);
    }
}

// Without the starter it is not known what has been started: the next launcher looks for it.
void Launcher::send_packet_to(int peer, const std::string &packet) {
    if (starter_.lost()) return;
    if (::send(peer, packet.data(), packet.size(), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) return;
    // A server that has stopped reading connects again and reads the directories.
    ::shutdown(peer, SHUT_RDWR);
}

void Launcher::send_to(int peer, const files::LauncherCall &call) {
    const std::string text = files::format(call);
    const auto several = answers_.find(peer);
    if (several == answers_.end()) return send_packet_to(peer, text);
    const bool may_wait = (call.verb == files::Verb::started || call.verb == files::Verb::left) && has_enough_queued();
    answers_by_ = may_wait ? std::min(answers_by_, boot_clock() + answers_last) : Instant{};
    if (files::add_call(several->second, text)) return;
    send_packet_to(peer, several->second);
    several->second = text;
}

void Launcher::send_answers() {
    answers_by_ = Instant::never();
    for (auto &[peer, packet] : answers_) {
        if (packet.empty()) continue;
        failpoint("launcher.answers.before_send");
        send_packet_to(peer, packet);
        failpoint("launcher.answers.after_send");
        packet.clear();
    }
}

void Launcher::handle(int peer, const files::LauncherCall &call) {
    using files::Verb;
    const auto found = grains_.find(call.dir);
    const bool lives = found != grains_.end() && !found->second.first_process_ended;
    switch (call.verb) {
    case Verb::start: return start(peer, call);
    case Verb::queue:
    case Verb::first: return queue(peer, call);
    case Verb::recall: return recall(peer, call.dir);
    case Verb::prove: return prove(peer, call);
    case Verb::signal:
        if (lives && call.number > 0 && call.number < 64) starter_.signal(found->second.pid, call.number);
        return;
    case Verb::term:
        if (!lives) return;
        DCS_REQUIRE(found->second.pid > 1, "the pid of a grain is greater than 1");
        starter_.signal_group(found->second.pid, SIGTERM);
        starter_.signal_group(found->second.pid, SIGCONT);
        return;
    case Verb::kill:
        if (lives) kill_tree(call.dir, found->second);
        return;
    case Verb::list: return list(peer);
    case Verb::quit:
        if (grains_.empty() && queue_.empty()) ended_ = true;
        return send_to(peer, {ended_ ? Verb::end : Verb::busy});
    default: return drop_peer(peer);
    }
}

void Launcher::prove(int peer, const files::LauncherCall &call) {
    const StartOutcome outcome = prove_grain(place_, call.dir);
    files::LauncherCall answer;
    answer.dir = call.dir;
    answer.verb = outcome.kind == StartOutcome::Kind::failed ? files::Verb::failed : files::Verb::proved;
    answer.number = static_cast<int>(outcome.code);
    answer.text = outcome.text;
    failpoint("launcher.prove.before_answer");
    send_to(peer, answer);
}

// Replaces the keeper if it has ended. The new one takes all slots before anything else happens.
void Launcher::keep_keeper() {
    pollfd state{keeper_.fd(), POLLIN, 0};
    if (keeper_.fd() >= 0 && ::poll(&state, 1, 0) == 0) return;
    files::say("the keeper of slots has ended; starting another");
    Status s = keeper_.start(starter_);
    claim_uids();
    for (const auto &[dir, grain] : grains_) {
        DCS_REQUIRE(grain.slot.held(), "a grain has its slot until its last process has ended");
        if (s && !keeper_.hold(dir, grain.leaf.name, grain.slot.lock_fds()[0]))
            s = fail(Code::io_error, "the keeper of slots does not listen");
    }
    if (!s) files::say(s.text);
}

void Launcher::list(int peer) {
    send_to(peer, {files::Verb::queues, "", counts_});
    for (const auto &[dir, grain] : grains_) send_to(peer, {files::Verb::running, dir});
    send_to(peer, {files::Verb::end});
}

}  // namespace dcs::launcher
