#include "locks/files/lock_file.h"

#include <algorithm>
#include <fcntl.h>
#include <fstream>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "locks/files/lock_search.h"
#include "process/identity.h"
#include "locks/files/record.h"
#include "scratch.h"
#include "support/catch.h"

using namespace dcs;
using namespace dcs::locks;

namespace {

Place named(const scratch::Directory &dir, const std::string &operation, const std::string &operand = "") {
    ::setenv("DCS_LOCK_DIR", dir.path().c_str(), 1);
    Result<Place> place = place_of(Atom{operation, operand, ""}, ".lock");
    REQUIRE(place);
    return *place;
}

Place at_path(const std::string &path) {
    Result<Place> place = place_of(path, ".lock");
    REQUIRE(place);
    return *place;
}

LockFile opened(const Place &place, FileKind kind = FileKind::atom) {
    Result<LockFile> file = LockFile::open(place, kind);
    INFO(file.status().text);
    REQUIRE(file);
    return std::move(*file);
}

bool got(const Result<bool> &answer) {
    REQUIRE(answer);
    return *answer;
}

}  // namespace

TEST_CASE("P23 P24 P26 different atoms have different names, and a name says which atom it is") {
    const char *parts[] = {"/a/b", "/a_b", "a,b", "a%2Cb", "db-1", "db_1", "a.b", "a", "b", "\xc3\xa9", "e", "%", "~"};
    std::vector<std::string> names;
    for (const char *operation : parts)
        for (const char *operand : parts) {
            const Atom atom{operation, operand, "h"};
            Result<std::string> name = encoded_name(atom);
            REQUIRE(name);
            CHECK(std::find(names.begin(), names.end(), *name) == names.end());
            names.push_back(*name);
            Result<Atom> back = decoded_name(*name);
            REQUIRE(back);
            CHECK(*back == atom);
        }
    CHECK_FALSE(encoded_name(Atom{"", "x", ""}));
    CHECK_FALSE(encoded_name(Atom{std::string("a\0b", 3), "x", ""}));
    CHECK_FALSE(decoded_name("a,b"));
    CHECK_FALSE(decoded_name("a,b,%G0"));
    CHECK_FALSE(decoded_name("a,b,%41"));
    CHECK_FALSE(decoded_name(",b,c"));
    CHECK_FALSE(decoded_name("a,,c"));
}

TEST_CASE("P25 an operand of four kilobytes works, and its whole name is compared") {
    scratch::Directory dir;
    const std::string longish(4096, 'x');
    const Place one = named(dir, "edit", longish + "1"), two = named(dir, "edit", longish + "2");
    CHECK(one.path != two.path);
    CHECK(one.path.size() - dir.path().size() < 255);
    LockFile first = opened(one);
    CHECK(opened(one).kind() == FileKind::atom);
    // The same file under the other's name, as if their hashes were equal.
    REQUIRE(::link(one.path.c_str(), two.path.c_str()) == 0);
    Result<LockFile> wrong = LockFile::open(two, FileKind::atom);
    REQUIRE_FALSE(wrong);
    CHECK(wrong.status().code == Code::invalid);
    CHECK(wrong.status().text.find("belongs to the atom") != std::string::npos);
    Result<LockFile> seen = LockFile::look(one);
    REQUIRE(seen);
    CHECK(seen->atom().operand == longish + "1");
    CHECK_FALSE(encoded_name(Atom{"a", std::string(name_part_max + 1, 'x'), ""}));
}

TEST_CASE("a file of the user's is locked and never written") {
    scratch::Directory dir;
    const std::string data = dir / "data";
    std::ofstream(data) << "mine\n";
    LockFile file = opened(at_path(data));
    CHECK(file.kind() == FileKind::foreign);
    CHECK_FALSE(file.keeps_records());
    CHECK(got(file.hold(false, Deadline::none())));
    CHECK_FALSE(got(opened(at_path(data)).hold(false, Deadline::none())));
    const std::string empty = dir / "empty";
    std::ofstream(empty).close();
    LockFile other = opened(at_path(empty));
    CHECK(other.kind() == FileKind::foreign);
    CHECK(got(other.hold(false, Deadline::none())));
    struct stat st = {};
    REQUIRE(::stat(empty.c_str(), &st) == 0);
    CHECK(st.st_size == 0);
    std::ifstream in(data);
    std::string text;
    std::getline(in, text);
    CHECK(text == "mine");
    CHECK(opened(at_path(dir.path())).kind() == FileKind::foreign);  // flock works on a directory, and so do we
}

TEST_CASE("P4 a truncated or zeroed lock file is broken, stays a lock, and is made whole") {
    scratch::Directory dir;
    const Place place = named(dir, "edit", "motd");
    { opened(place); }
    for (long size : {0L, 100L, 512L}) {
        REQUIRE(::truncate(place.path.c_str(), size) == 0);
        if (size == 512) {
            const int fd = ::open(place.path.c_str(), O_WRONLY | O_CLOEXEC);
            char zeros[512] = {};
            REQUIRE(::pwrite(fd, zeros, sizeof zeros, 0) == 512);
            ::close(fd);
        }
        LockFile file = opened(place);
        CHECK(file.kind() == FileKind::broken);
        CHECK(got(file.hold(false, Deadline::none())));
        CHECK_FALSE(got(opened(place).hold(false, Deadline::none())));
        REQUIRE(file.make_whole());
        CHECK(opened(place).kind() == FileKind::atom);
        CHECK(read_record(file, nullptr).owner.process.pid == 0);
    }
}

TEST_CASE("P28 links, FIFOs and foreign files where a lock belongs are refused") {
    scratch::Directory dir;
    const Place place = named(dir, "edit");
    REQUIRE(::symlink("/tmp/dcs_victim_that_is_not_there", place.path.c_str()) == 0);
    Result<LockFile> link = LockFile::open(place, FileKind::atom);
    REQUIRE_FALSE(link);
    CHECK(link.status().code == Code::invalid);
    CHECK(::access("/tmp/dcs_victim_that_is_not_there", F_OK) != 0);
    ::unlink(place.path.c_str());
    REQUIRE(::mkfifo(place.path.c_str(), 0600) == 0);
    CHECK(LockFile::open(place, FileKind::atom).status().code == Code::invalid);
    ::unlink(place.path.c_str());
    std::ofstream(place.path) << "something else\n";
    CHECK(LockFile::open(place, FileKind::atom).status().text.find("is not a lock file") != std::string::npos);
    if (::geteuid() == 0) {
        ::unlink(place.path.c_str());
        { opened(place); }
        REQUIRE(::chown(place.path.c_str(), 12345, 0) == 0);
        CHECK(LockFile::open(place, FileKind::atom).status().code == Code::refused);
    }
    CHECK(LockFile::open(at_path(dir / "no/such/lock"), FileKind::atom).status().code == Code::not_found);
}

TEST_CASE("a file of one kind is not used as the other, and a new file has the mode that was asked for") {
    scratch::Directory dir;
    const std::string path = dir / "l";
    ::umask(077);
    { REQUIRE(LockFile::open(at_path(path), FileKind::atom, 0666)); }
    struct stat st = {};
    REQUIRE(::stat(path.c_str(), &st) == 0);
    CHECK((st.st_mode & 0777) == 0666);
    CHECK(LockFile::open(at_path(path), FileKind::slots).status().code == Code::invalid);
}

TEST_CASE("C6 P27 a lock file that was removed or replaced guards nothing, and that is noticed") {
    scratch::Directory dir;
    const Place place = named(dir, "edit");
    LockFile file = opened(place);
    CHECK(got(file.hold(false, Deadline::none())));
    CHECK(file.still_named());
    ::unlink(place.path.c_str());
    CHECK_FALSE(file.still_named());
}

TEST_CASE("C13 users of flock(2) and of fcntl(2) exclude us and we exclude them") {
    scratch::Directory dir;
    const std::string path = dir / "l";
    LockFile file = opened(at_path(path));
    const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    struct flock whole = {};
    whole.l_type = F_WRLCK;
    CHECK_FALSE(is_held(path));
    REQUIRE(::flock(fd, LOCK_EX | LOCK_NB) == 0);
    CHECK(is_held(path));
    CHECK_FALSE(got(file.hold(false, Deadline::none())));
    CHECK(file.first_locked(holder_byte, 1) == -1);  // the byte was given back
    ::flock(fd, LOCK_UN);
    CHECK_FALSE(is_held(path));
    REQUIRE(::fcntl(fd, F_OFD_SETLK, &whole) == 0);
    CHECK(is_held(path));
    CHECK_FALSE(got(file.hold(false, Deadline::none())));
    CHECK(Guard::take(file).status().code == Code::refused);
    whole.l_type = F_UNLCK;
    REQUIRE(::fcntl(fd, F_OFD_SETLK, &whole) == 0);
    CHECK(got(file.hold(false, Deadline::none())));
    CHECK(::flock(fd, LOCK_EX | LOCK_NB) != 0);
    whole.l_type = F_WRLCK;
    CHECK(::fcntl(fd, F_OFD_SETLK, &whole) != 0);
    ::close(fd);
    file.let_go();
    LockFile reader = opened(at_path(path)), second = opened(at_path(path));
    CHECK(got(reader.hold(true, Deadline::none())));
    CHECK(got(second.hold(true, Deadline::none())));
    CHECK_FALSE(got(file.hold(false, Deadline::none())));
}

TEST_CASE("E5 C1 a child that inherited the descriptor keeps the lock") {
    scratch::Directory dir;
    const std::string path = dir / "l";
    LockFile file = opened(at_path(path));
    REQUIRE(got(file.hold(false, Deadline::none())));
    const pid_t child = scratch::sleeper([] { return true; });
    REQUIRE(child > 0);
    file = LockFile();
    CHECK(is_held(path));
    CHECK_FALSE(got(opened(at_path(path)).hold(false, Deadline::none())));
    scratch::end(child);
    CHECK_FALSE(is_held(path));
    CHECK_FALSE(is_held(dir / "no such file"));
}

TEST_CASE("C8 a wait ends at its deadline, and the lock can be had at once when its holder dies") {
    scratch::Directory dir;
    const std::string path = dir / "l";
    const pid_t holder = scratch::sleeper([&] {
        static Result<LockFile> file = LockFile::open(at_path(path), FileKind::atom);  // held until the process ends
        return file && *file->hold(false, Deadline::none());
    });
    LockFile file = opened(at_path(path));
    const std::int64_t start = this_world().now().boot;
    CHECK_FALSE(got(file.hold(false, Deadline{start + 50'000'000})));
    CHECK(this_world().now().boot >= start + 50'000'000);
    const pid_t killer = ::fork();
    if (killer == 0) {
        ::usleep(50'000);
        ::kill(holder, SIGKILL);
        ::_exit(0);
    }
    CHECK(got(file.hold(false, Deadline::never())));
    ::waitpid(killer, nullptr, 0);
    ::waitpid(holder, nullptr, 0);
    CHECK(file.still_named());
}

TEST_CASE("a record is read back whole, the newer one counts, and a torn one does not") {
    scratch::Directory dir;
    LockFile file = opened(named(dir, "edit"));
    Record r;
    r.generation = 7;
    r.outcome = Outcome::running;
    r.owner.process = own_identity();
    r.owner.cgroup = "/a/b";
    r.owner.host = "host";
    r.owner.command = "sleep 1000";
    r.owner.cookie = 0x1234567890abcdefULL;
    r.started = {1, 2, 3};
    r.last_start = {4, 0, 6};
    r.ended = {7, 0, 9};
    r.if_elapsed = 10;
    r.expire_after = 11;
    r.expired_in_row = 12;
    r.samples = 13;
    r.burst_factor = 14;
    REQUIRE(write_record(file, r));
    bool damaged = true;
    Record back = read_record(file, &damaged);
    CHECK_FALSE(damaged);
    CHECK(back.generation == 7);
    CHECK(back.owner.process == own_identity());
    CHECK(back.owner.cgroup == "/a/b");
    CHECK(back.owner.command == "sleep 1000");
    CHECK(back.owner.cookie == r.owner.cookie);
    CHECK(back.started.mono == 2);
    CHECK(back.last_start.boot == 6);
    CHECK(back.ended.wall == 7);
    CHECK(back.burst_factor == 14);
    r.generation = 8;
    REQUIRE(write_record(file, r));
    CHECK(read_record(file, nullptr).generation == 8);
    for (std::int64_t byte : {record_a_at + 20, record_b_at + 300}) {  // the newer one, then both
        char c = 0;
        REQUIRE(::pread(file.fd(), &c, 1, byte) == 1);
        c = static_cast<char>(c ^ 1);
        REQUIRE(::pwrite(file.fd(), &c, 1, byte) == 1);
        back = read_record(file, &damaged);
        CHECK(back.generation == (byte == record_a_at + 20 ? 7 : 0));
        CHECK(damaged == (byte != record_a_at + 20));
    }
}

TEST_CASE("a record with the highest sequence there is does not stay for ever") {
    scratch::Directory dir;
    LockFile file = opened(named(dir, "edit"));
    Record r;
    r.sequence = ~0ull - 2;
    for (std::uint64_t i = 1; i < 6; ++i) {
        r.generation = i;
        REQUIRE(write_record(file, r));
        bool damaged = true;
        r = read_record(file, &damaged);
        CHECK_FALSE(damaged);
        CHECK(r.generation == i);
    }
}

TEST_CASE("samples and refusals are rings, oldest first") {
    scratch::Directory dir;
    LockFile file = opened(named(dir, "edit"));
    for (std::uint64_t i = 0; i < samples_kept + 5; ++i) {
        Sample s;
        s.runtime = static_cast<std::int64_t>(i);
        s.outcome = Outcome::done;
        REQUIRE(write_sample(file, i, s));
    }
    const std::vector<Sample> samples = read_samples(file);
    REQUIRE(samples.size() == samples_kept);
    CHECK(samples.front().runtime == 5);
    CHECK(samples.back().runtime == static_cast<std::int64_t>(samples_kept) + 4);
    for (int i = 0; i < 70; ++i) note_denial(file, Denial{i, i % 2 == 1, 1000, 5, 6, "cron"});
    const std::vector<Denial> denials = read_denials(file);
    REQUIRE(denials.size() == refusals_kept);
    CHECK(denials.front().wall == 6);
    CHECK(denials.back().too_soon);
    CHECK(denials.back().command == "cron");
}

TEST_CASE("P5 a process is known from another one of its pid") {
    const pid_t child = ::fork();
    if (child == 0) {
        ::pause();
        ::_exit(0);
    }
    Result<ProcessIdentity> who = identify(child);
    REQUIRE(who);
    Result<ProcessHandle> handle = ProcessHandle::open(*who);
    REQUIRE(handle);
    CHECK_FALSE(handle->ended(0));
    ProcessIdentity other = *who;
    other.pidfs_inode += 1;
    if (who->pidfs_inode != 0) CHECK(ProcessHandle::open(other).status().code == Code::not_found);
    other = *who;
    other.pidfs_inode = 0;
    other.start_ticks += 1;
    CHECK(ProcessHandle::open(other).status().code == Code::not_found);
    REQUIRE(handle->signal(SIGKILL));
    CHECK(handle->ended(this_world().now().boot + 5'000'000'000));
    CHECK(identify(child).status().code == Code::not_found);  // a zombie is no process
    ::waitpid(child, nullptr, 0);
    CHECK(ProcessHandle::open(*who).status().code == Code::not_found);
    CHECK(handle->signal(SIGKILL).code == Code::not_found);
    CHECK(ProcessHandle::open(ProcessIdentity{}).status().code == Code::not_found);
    const std::vector<pid_t> line = self_and_ancestors();
    REQUIRE(line.size() >= 2);
    CHECK(line[0] == ::getpid());
    CHECK(line[1] == ::getppid());
}
