#include "pool_directory.h"

#include <algorithm>
#include <cerrno>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/files.h"
#include "base/resources.h"
#include "base/text.h"
#include "arguments.h"
#include "locks/dcs_atoms.h"
#include "locks/files/lock_search.h"
#include "client/pool.h"
#include "client/pool_path.h"

namespace dcs::commands {
namespace {

constexpr std::size_t pool_text_most = 65536;
constexpr std::string_view table_mark = "# Written by `dcs up`";  // at the top of the host table

// Never in scientific notation: people and the scheduler's parser read it.
std::string decimal(double value) { return formatted("%.10g", value); }

// local2 before local10: names of equal stem by the number behind it.
bool name_before(const std::string &a, const std::string &b) {
    const std::size_t a_stem = a.find_last_not_of("0123456789") + 1, b_stem = b.find_last_not_of("0123456789") + 1;
    if (a_stem == b_stem && a.compare(0, a_stem, b, 0, b_stem) == 0 && a.size() != b.size()) return a.size() < b.size();
    return a < b;
}

constexpr std::size_t most_bytes = 1u << 20;
constexpr int looks = 100;  // a daemon writes it in one moment, which may be this one
constexpr unsigned pause_us = 10'000;

std::unique_ptr<client::Pool> &opened_pool() {
    static auto *pool = new std::unique_ptr<client::Pool>;  // threads may still be in a call when the command ends
    return *pool;
}

}  // namespace

std::string absolute_path(const std::string &path) {
    std::string text = path;
    if (text.empty() || text[0] != '/') {
        char here[4096];
        if (::getcwd(here, sizeof here) == nullptr) return path;
        text = std::string(here) + "/" + path;
    }
    while (text.size() > 1 && text.back() == '/') text.pop_back();
    return text;
}

std::string pool_text(const PoolNumbers &numbers) {
    return "servers " + std::to_string(numbers.servers) + "\nslots " + std::to_string(numbers.slots) + "\ninterval " +
           decimal(numbers.interval_s) + "\n" +
           (numbers.courtesy == "priority" ? "" : "courtesy " + numbers.courtesy + "\n") +
           (numbers.mirror == "off" ? "" : "mirror " + numbers.mirror + "\n") +
           (numbers.pilots == 0 ? "" : "pilots " + std::to_string(numbers.pilots) + "\n") +
           (numbers.pilot_slots == 1 ? "" : "pilot-slots " + std::to_string(numbers.pilot_slots) + "\n") +
           (numbers.resources.empty() ? "" : "resources " + numbers.resources + "\n") +
           (numbers.listen.empty() ? "" : "listen " + numbers.listen + "\n");
}

Result<PoolNumbers> numbers_of_pool_text(std::string_view text) {
    PoolNumbers numbers;
    int line_number = 0;
    while (!text.empty()) {
        const std::string_view line = take_line(text);
        ++line_number;
        if (line.empty() || line[0] == '#') continue;
        const std::size_t blank = line.find(' ');
        const std::string_view name = line.substr(0, blank);
        const std::string_view value = blank == std::string_view::npos ? "" : line.substr(blank + 1);
        const auto servers = number_of(value, 0, most_servers), slots = number_of(value, 1, most_slots);
        const auto interval = seconds_of_text(value);
        const auto may_be = [&](const char *words) { return complaint(one_of(words), std::string(value)).empty(); };
        if (name == "servers" && servers) numbers.servers = static_cast<int>(*servers);
        else if (name == "pilots" && servers) numbers.pilots = static_cast<int>(*servers);
        else if (name == "pilot-slots" && slots) numbers.pilot_slots = static_cast<int>(*slots);
        else if (name == "resources" && offers_of(value)) numbers.resources = std::string(value);
        else if (name == "listen" && !value.empty()) numbers.listen = std::string(value);
        else if (name == "slots" && slots) numbers.slots = static_cast<int>(*slots);
        else if (name == "interval" && interval && *interval >= least_interval_s && *interval <= most_interval_s)
            numbers.interval_s = *interval;
        else if (name == "courtesy" && may_be(courtesies)) numbers.courtesy = value;
        else if (name == "mirror" && may_be(mirror_modes)) numbers.mirror = std::string(value);
        else
            return fail(Code::invalid,
                        "line " + std::to_string(line_number) + " is not understood: " + std::string(line));
    }
    if (numbers.servers + numbers.pilots == 0) return fail(Code::invalid, "the line `servers N` is missing");
    return numbers;
}

std::string host_table_text(const PoolNumbers &numbers, const std::string &binary_class) {
    std::string text = std::string(table_mark) + ", which writes it again when the numbers of the pool change.\n";
    const double s = numbers.interval_s;
    const std::string offered = numbers.resources.empty() ? "" : " resources=" + numbers.resources;
    const std::string rest = " interval=" + decimal(s) + " alert=" + decimal(3 * s) + " limit=" + decimal(6 * s) +
                             " extended=" + decimal(12 * s) + "\n";
    const std::string binary = " binary=" + binary_class + " slots=";
    for (int i = 1; i <= numbers.servers; ++i)
        text += "local" + std::to_string(i) + " class=0x1" + binary + std::to_string(numbers.slots) +
                (i == 1 ? offered : "") + rest;
    if (numbers.pilots > 0) text += "class pilots=0x2\n";
    for (int i = 1; i <= numbers.pilots; ++i)
        text += "pilot" + std::to_string(i) + " class=pilots pilot=yes" + binary + std::to_string(numbers.pilot_slots) +
                rest;
    return text;
}

std::string binary_class_of_this_host() {
    utsname host = {};
    if (::uname(&host) != 0) return "unknown-linux-gnu";
    return std::string(host.machine) + "-linux-gnu";
}

bool Pool::exists() const {
    struct stat st = {};
    return ::stat(directory_.c_str(), &st) == 0 && S_ISDIR(st.st_mode);
}

Pool::Maker Pool::maker() const {
    const auto there = [this](const char *name) { return ::access(path(name).c_str(), F_OK) == 0 || errno == EACCES; };
    if (there("pool")) return ::access(path("pool").c_str(), R_OK) == 0 ? Maker::dcs_up : Maker::other;
    const auto hosts = read_file(path("scheduler/hosts"), 16u << 20);
    if (hosts) return hosts->compare(0, table_mark.size(), table_mark) == 0 ? Maker::dcs_up : Maker::other;
    for (const char *name : {"scheduler/hosts", "scheduler/state/.", "scheduler/lock", "scheduler/user.sock"})
        if (there(name)) return Maker::other;
    return Maker::none;
}

Result<std::string> submit_folder(const std::string &pool_directory) {
    const Pool pool(pool_directory);
    if (pool.maker() == Pool::Maker::dcs_up && ::access(pool_directory.c_str(), W_OK) == 0) return pool.path("submit");
    auto own = client::own_pool_directory();
    return own ? own->substr(0, own->rfind('/')) + "/dcs-submit" : own;
}

std::string not_by_up(const Pool &pool) {
    return pool.directory() +
           " holds a pool that `dcs up` did not make: its host table and its daemons are an administrator's";
}

Result<PoolNumbers> Pool::numbers() const {
    const auto text = read_file(path("pool"), pool_text_most);
    if (!text) return text.status();
    auto numbers = numbers_of_pool_text(*text);
    if (!numbers) return fail(numbers.status().code, path("pool") + ": " + numbers.status().text);
    return numbers;
}

std::vector<std::string> Pool::server_names() const {
    std::vector<std::string> names;
    DIR *list = ::opendir(path("servers").c_str());
    if (list == nullptr) return names;
    while (const dirent *entry = ::readdir(list))
        if (entry->d_name[0] != '.') names.push_back(entry->d_name);
    ::closedir(list);
    std::sort(names.begin(), names.end(), name_before);
    return names;
}

Daemon Pool::look(const char *role, const std::string &name, const std::string &directory, const char *lock) const {
    Daemon daemon{role, name, directory, directory + "/" + lock};
    daemon.known = ::access(daemon.lock.c_str(), R_OK) == 0 || errno == ENOENT;
    daemon.up = locks::is_held(daemon.lock);
    if (daemon.up) daemon.pid = locks::holder_of(daemon.lock);
    return daemon;
}

Daemon Pool::scheduler() const { return look("scheduler", "scheduler", path("scheduler"), "lock"); }
Daemon Pool::backup() const { return look("backup", "backup", path("backup"), "lock"); }
Daemon Pool::page() const { return look("page", "page", path("page"), "lock"); }

std::string Pool::page_url() const {
    if (!page().up) return "";
    const auto text = read_file(path("page/url"), 4096);
    return text ? text->substr(0, text->find('\n')) : "";
}

Daemon Pool::server(const std::string &name) const { return look("grainserver", name, server_directory(name), "lock"); }
Daemon Pool::launcher(const std::string &name) const {
    return look("launcher", name, server_directory(name), "launcher.lock");
}

std::vector<Daemon> Pool::daemons() const {
    std::vector<Daemon> all;
    const auto recorded = numbers();
    if (!recorded && !exists()) return all;
    all.push_back(scheduler());
    if (::access(path("backup").c_str(), F_OK) == 0) all.push_back(backup());
    std::vector<std::string> names = server_names();
    for (int i = 1; recorded && i <= recorded->servers; ++i) {
        const std::string name = "local" + std::to_string(i);
        all.push_back(server(name));
        names.erase(std::remove(names.begin(), names.end(), name), names.end());
    }
    for (const std::string &name : names) {
        Daemon daemon = server(name);
        if (daemon.up) all.push_back(daemon);
    }
    return all;
}

Result<std::string> read_file(const std::string &path, std::size_t most) {
    const Fd fd(open_regular(path.c_str()));
    if (fd) return read_open(fd.get(), path, most, false);
    const int error = errno;
    struct stat st = {};
    const bool other = error == EACCES && ::stat(path.c_str(), &st) == 0 && !S_ISREG(st.st_mode);
    return other ? fail(Code::io_error, path + " is not a regular file") : file_error(path, error);
}

Result<std::string> read_document(const std::string &path, std::size_t most) {
    const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) return fail_errno(errno == ENOENT ? Code::not_found : Code::io_error, path, errno);
    std::string text;
    if (!read_to_end(fd.get(), most, text)) return fail_errno(Code::io_error, path, errno);
    if (text.size() > most) return fail(Code::limit, path + " is larger than " + std::to_string(most) + " bytes");
    return text;
}

Status write_file(const std::string &path, const std::string &text) {
    const std::string temporary = path + ".tmp";
    Fd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!fd) return fail_errno(Code::io_error, temporary, errno);
    if (dcs::write_all(fd.get(), text) && ::fsync(fd.get()) == 0 && fd.close_checked() &&
        ::rename(temporary.c_str(), path.c_str()) == 0)
        return Status::ok();
    const int error = errno;
    ::unlink(temporary.c_str());
    return fail_errno(Code::io_error, path, error);
}

// 0: there is none; O_NOFOLLOW: so that none is laid now; -1: one that another user has laid where all may write.
static int flag_for_link(const std::string &path) {
    struct stat link = {}, place = {};
    if (::lstat(path.c_str(), &link) != 0 || !S_ISLNK(link.st_mode)) return O_NOFOLLOW;
    const std::string directory = path.find('/') == path.npos ? "." : path.substr(0, path.rfind('/') + 1);
    const bool for_all =
        ::stat(directory.c_str(), &place) != 0 || (place.st_mode & (S_ISVTX | S_IWOTH)) == (S_ISVTX | S_IWOTH);
    return for_all && link.st_uid != ::geteuid() && link.st_uid != place.st_uid ? -1 : 0;
}

std::FILE *open_document(const std::string &path, bool append) {
    const int flag = flag_for_link(path);
    if (flag < 0) {
        errno = EACCES;
        return nullptr;
    }
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | (append ? O_APPEND : O_TRUNC) | flag | O_CLOEXEC, 0666);
    return fd < 0 ? nullptr : ::fdopen(fd, append ? "a" : "w");
}

Status write_document(const std::string &path, const std::string &text) {
    std::FILE *file = path == "-" ? stdout : open_document(path, false);
    if (file == nullptr) return fail_errno(Code::io_error, path, errno);
    bool good = std::fwrite(text.data(), 1, text.size(), file) == text.size();
    good = std::fflush(file) == 0 && good;
    const int error = errno;
    if (file != stdout && std::fclose(file) != 0) good = false;
    return good ? Status::ok() : fail_errno(Code::io_error, "cannot write " + path, error);
}

Copied copy_stream(std::FILE *from, std::FILE *to) {
    char buffer[65536];
    Copied copied;
    for (std::size_t n = 0; copied.written && (n = std::fread(buffer, 1, sizeof buffer, from)) > 0;)
        copied.written = std::fwrite(buffer, 1, n, to) == n;
    copied.error = errno;
    copied.read = std::ferror(from) == 0;
    return copied;
}

Result<ConfigRecord> daemon_record(const std::string &directory) {
    const std::string path = directory + "/" + configuration_name;
    for (int look = 0; look < looks; ++look) {
        const auto text = read_file(path, most_bytes);
        if (!text) return text.status();
        if (auto record = config_record_of(*text)) return std::move(*record);
        ::usleep(pause_us);
    }
    return fail(Code::io_error, path + " is not in the format that daemons write");
}

d_pool &this_pool() { return client::pool_of(opened_pool().get()); }

void open_this_pool(const std::string &directory) {
    client::PoolOptions options;
    options.directory = directory;  // unless dcs_begin has begun this command for a scheduler elsewhere
    opened_pool() = std::make_unique<client::Pool>(std::move(options));
}

void describe_new_sessions(const std::string &label, std::int32_t nice) { this_pool().new_sessions = {label, nice}; }

}  // namespace dcs::commands
