#include "scheduler/shell/mirror_host.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/files.h"
#include "base/planted.h"
#include "daemon/log.h"
#include "scheduler/core/authorise.h"

namespace dcs::shell {
namespace {

// All of one length: one is written over the other.
constexpr std::array<const char *, 3> words = {"never   \n", "attached\n", "detached\n"};
constexpr const char *ended = "ended   \n";  // `dcs` looks for it, too (start_hint.cc)
constexpr std::size_t word_bytes = 9, number_digits = 20, line_bytes = word_bytes + 2 * (number_digits + 1);

}  // namespace

std::string words_of_end(std::uint64_t later, std::uint64_t own) {
    return "the backup's copy has been made the scheduler of this pool (epoch " + std::to_string(later) + ", here " +
           std::to_string(own) + ")";
}

Status still_in_office(AttachedFile &file, std::uint64_t epoch, const std::string &directory) {
    file.is_of(epoch);
    const std::uint64_t later = file.later_epoch();
    if (later == 0) return Status::ok();
    return fail(Code::refused, words_of_end(later, epoch) + ": its state directory is out of date, and the new " +
                                   "scheduler has what was done since. Keep " + directory +
                                   " aside; only if the new one is given up, remove " + directory + "/attached");
}

Result<std::unique_ptr<AttachedFile>> AttachedFile::open(const std::string &path) {
    Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!fd) return fail_errno(Code::io_error, "cannot open " + path, errno);
    std::unique_ptr<AttachedFile> file(new AttachedFile(std::move(fd)));
    char byte = 0;
    if (::pread(file->fd_.get(), &byte, 1, 0) == 0)  // new
        if (Status s = file->write(turn::Attachment::never, 0); !s) return s;
    return file;
}

// Of an older release there is the word alone.
AttachedFile::Line AttachedFile::read_line() const {
    char text[line_bytes] = {};
    const ssize_t n = ::pread(fd_.get(), text, sizeof text, 0);
    if (n < static_cast<ssize_t>(word_bytes)) return {};
    Line line{{text, word_bytes}};
    const auto number_at = [&](std::size_t at, std::uint64_t &number) {
        const char *begin = text + at, *end = begin + number_digits;
        const auto [stop, error] = std::from_chars(begin, end, number);
        return error == std::errc{} && stop == end;
    };
    const bool whole = n == static_cast<ssize_t>(line_bytes) && number_at(word_bytes, line.number) &&
                       number_at(word_bytes + number_digits + 1, line.epoch);
    if (!whole) line.number = line.epoch = 0;
    return line;
}

turn::Attachment AttachedFile::read() const {
    const std::string word = read_line().word;
    for (const turn::Attachment a : {turn::Attachment::never, turn::Attachment::detached})
        if (word == words[static_cast<int>(a)]) return a;
    return turn::Attachment::attached;
}

std::uint64_t AttachedFile::own_up_to() const {
    const Line line = read_line();
    return line.epoch == epoch_ && line.word != ended ? line.number : 0;
}

std::uint64_t AttachedFile::later_epoch() const {
    const Line line = read_line();
    return line.word == ended && line.number > epoch_ ? line.number : 0;
}

Status AttachedFile::write(turn::Attachment attachment, std::uint64_t own_up_to) {
    if (later_epoch() != 0) return fail(Code::refused, "the backup's copy has taken the place of this scheduler");
    failpoint("mirror.attached.before_write");
    Status s = write_line(words[static_cast<int>(attachment)], own_up_to);
    if (!s) s.text = "cannot record whether commits wait for the backup's copy: " + s.text;
    failpoint("mirror.attached.after_write");
    return s;
}

Status AttachedFile::end(std::uint64_t later_epoch) { return write_line(ended, later_epoch); }

Status AttachedFile::write_line(const char *word, std::uint64_t number) {
    char line[line_bytes + 1];
    constexpr int digits = number_digits;
    std::snprintf(line, sizeof line, "%s%0*" PRIu64 "\n%0*" PRIu64 "\n", word, digits, number, digits, epoch_);
    if (!pwrite_all(fd_.get(), {line, line_bytes}, 0) || ::fdatasync(fd_.get()) != 0)
        return fail(Code::io_error, std::strerror(errno));
    return Status::ok();
}

void CommittedTurns::add(std::uint64_t turn, const std::vector<store::Step> &steps) {
    if (!wanted_) return;
    turn::CopiedTurn copied{turn, store::encode_for_copy(turn, steps)};
    const std::lock_guard<std::mutex> guard(mutex_);
    turns_.push_back(std::move(copied));
}

void CommittedTurns::add_recovered(std::uint64_t turn, const std::vector<store::Step> &steps) {
    const auto lacks_bytes = [](const store::Step &step) {
        return step.damaged || step.kind == store::StepKind::beside || step.kind == store::StepKind::placed;
    };
    const bool follows = turns_.empty() || turns_.back().turn + 1 == turn;
    const bool whole = std::none_of(steps.begin(), steps.end(), lacks_bytes);
    if (!follows || !whole) turns_.clear();
    if (whole) add(turn, steps);
}

std::vector<turn::CopiedTurn> CommittedTurns::take() {
    const std::lock_guard<std::mutex> guard(mutex_);
    return std::exchange(turns_, {});
}

MirrorHost::MirrorHost(turn::Mirror::Setup setup, AttachedFile &file, CommittedTurns &turns, store::Store &store,
                       const library::Library &library, net::Loop &loop, std::function<void(const std::string &)> ended)
    : file_(file),
      turns_(turns),
      loop_(loop),
      ended_(std::move(ended)),
      epoch_(setup.identity.epoch),
      mirror_(setup, store, library, *this) {
    // The copy may lack the last of an earlier process, which was killed before it had sent them.
    auto before = turns_.take();
    if (!before.empty() && before.back().turn == store.turn()) mirror_.committed(std::move(before));
}

bool MirrorHost::frame(const net::Arrival &arrival) {
    if (!turn::Mirror::concerns(arrival.header.kind)) return false;
    const auto message = wire::decode_payload(arrival.header, arrival.payload);
    if (message) {
        mirror_.came(arrival.conn, *message, arrival.header.request);
    } else {
        log_warn("connection " + to_text(arrival.conn) + ": " + message.status().text);
        loop_.close(arrival.conn);
        mirror_.gone(arrival.conn);
    }
    return true;
}

bool MirrorHost::turn_out(ConnId conn, const core::Certified &peer, const core::State &state) {
    const Status s = core::check_backup(state, peer);
    if (s || planted("mirror.anybody")) return false;
    log_audit("audit: the copy of the store was refused to " +
              (peer.host.empty() ? "a process of this host" : "host " + peer.host) + ": " + s.text);
    (void)loop_.send(conn, wire::Refused{s.text});
    loop_.close(conn);
    if (mirror_.turned_out(conn, s.text)) turned_out_ = peer;
    return true;
}

// Whatever is answered here could be unsaid there. The mark refuses the next start, which no backup would see in time.
void MirrorHost::fenced(std::uint64_t epoch) {
    if (const Status s = file_.end(epoch); !s)
        log_error("cannot record that this scheduler must not start again: " + s.text);
    ended_(words_of_end(epoch, epoch_));
}

// Only now: a removal that failed on the way to the disk must not end the promise of mode sync.
void MirrorHost::let_go(const core::State &state) {
    if (!turned_out_) return;
    const Status gone = core::check_backup(state, *std::exchange(turned_out_, std::nullopt));
    if (gone || !mirror_.waits()) return;
    if (Status s = mirror_.detach("the removal of its host"); !s) log_error(s.text);
}

std::vector<wire::ProblemRow> MirrorHost::problems(const core::State &state) const {
    const std::string &name = state.backup_host.name;
    return mirror_.problems(state.trust.backups.count(name) == 0 ? name : "");
}

void MirrorHost::pump(bool may_read) {
    mirror_.pump(may_read);
    mirror_.look(boot_clock());
}

Instant MirrorHost::now() { return boot_clock(); }

void MirrorHost::send(ConnId conn, const wire::AnyMessage &message, std::uint64_t request) {
    if (Status s = loop_.send(conn, message, request); !s)
        log_warn("connection " + to_text(conn) + ": " + wire::kind_name(message) + " was not sent: " + s.text);
}

void MirrorHost::close(ConnId conn) { loop_.close(conn); }

void MirrorHost::log(turn::Level level, const std::string &line) {
    core::is_audit(line) ? log_audit(line) : log_line(level, line);
}

}  // namespace dcs::shell
