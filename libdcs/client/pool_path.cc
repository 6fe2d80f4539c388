#include "client/pool_path.h"

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <memory>

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/text.h"

namespace dcs::client {
namespace {

constexpr std::size_t conf_bytes = 8192;  // as dcs_begin takes it

std::string variable(const char *name) {
    const char *value = std::getenv(name);
    return value ? value : "";
}

std::string home_directory() {
    if (const std::string home = variable("HOME"); !home.empty() && home[0] == '/') return home;
    char buffer[4096];
    passwd entry{}, *found = nullptr;
    if (::getpwuid_r(::geteuid(), &entry, buffer, sizeof buffer, &found) == 0 && found && found->pw_dir)
        return found->pw_dir;
    return {};
}

bool holds_pool(const std::string &directory) {
    struct stat st {};
    return ::stat((directory + "/scheduler").c_str(), &st) == 0 && S_ISDIR(st.st_mode);
}

// A user who can write it could send programs to another scheduler.
Status check_roots(const struct stat &st, const std::string &path) {
    if (st.st_uid == 0 && (st.st_mode & 022) == 0) return Status::ok();
    return fail(Code::refused, path + ": users other than root can write it: chown root, chmod go-w");
}

Result<std::string> read_conf(int fd) {
    std::string text;
    if (!read_to_end(fd, conf_bytes, text)) return fail_errno(Code::io_error, host_file, errno);
    if (text.size() <= conf_bytes) return text;
    return fail(Code::limit, std::string(host_file) + ": it is too long for a valid file of this name");
}

}  // namespace

Result<HostConf> parse_host_conf(std::string_view text) {
    HostConf conf;
    for (int number = 1; !text.empty(); ++number) {
        const std::string_view line = take_line(text);
        const auto words = words_of(line.substr(0, line.find('#')));
        if (words.empty()) continue;
        std::string *to = words[0] == "scheduler" ? &conf.scheduler
                          : words[0] == "pki"     ? &conf.pki
                          : words[0] == "dir"     ? &conf.dir
                                                  : nullptr;
        const bool good = to && to->empty() && words.size() == 2 && (to == &conf.scheduler || words[1][0] == '/');
        if (!good)
            return fail(Code::invalid, std::string(host_file) + ", line " + std::to_string(number) +
                                           ": expected `scheduler HOST:PORT[,HOST:PORT]`, `pki DIR` or `dir DIR`, "
                                           "each once, with absolute paths");
        *to = words[1];
    }
    return conf;
}

Result<HostConf> host_conf() {
    const Fd fd(::open(host_file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (!fd && (errno == ENOENT || errno == ENOTDIR)) return HostConf{};
    if (!fd) return fail_errno(Code::io_error, host_file, errno);
    struct stat file {
    }, folder{};
    const bool known = ::fstat(fd.get(), &file) == 0 && ::stat(host_folder, &folder) == 0;
    Status s = known ? check_roots(file, host_file) : fail_errno(Code::io_error, host_file, errno);
    if (s) s = check_roots(folder, host_folder);
    if (s && !S_ISREG(file.st_mode)) s = fail(Code::invalid, std::string(host_file) + " is not a file");
    const Result<std::string> text = s ? read_conf(fd.get()) : Result<std::string>(s);
    return text ? parse_host_conf(*text) : Result<HostConf>(text.status());
}

Result<std::string> own_pool_directory() {
    const std::string state = variable("XDG_STATE_HOME");
    if (!state.empty() && state[0] == '/') return state + "/dcs";  // relative ones do not count there
    const std::string home = home_directory();
    if (home.empty())
        return fail(Code::invalid, "neither DCS_DIR nor HOME is set: set DCS_DIR to the pool's directory");
    return home + "/.local/state/dcs";
}

Result<PoolPlace> find_pool() {
    using Kind = PoolPlace::Kind;
    const std::string dir = variable("DCS_DIR");
    if (!dir.empty() && dir[0] != '/')
        return fail(Code::invalid, "DCS_DIR is \"" + dir + "\": give it as an absolute path");
    if (!dir.empty()) return PoolPlace{Kind::named, dir, {}};
    const auto own = own_pool_directory();
    if (own && holds_pool(*own)) return PoolPlace{Kind::own, *own, {}};
    const auto host = host_conf();
    if (!host) return host.status();
    if (!host->dir.empty()) return PoolPlace{Kind::host, host->dir, {}};
    if (!host->scheduler.empty()) return PoolPlace{Kind::elsewhere, {}, host->scheduler};
    return own ? Result<PoolPlace>(PoolPlace{Kind::none, *own, {}}) : Result<PoolPlace>(own.status());
}

Result<std::string> pool_directory() {
    static std::atomic<const std::string *> found{nullptr};  // no mutex: a fork may come at any time
    const std::string *before = found.load();
    if (before && variable("DCS_DIR").empty()) return *before;
    const auto place = find_pool();
    if (!place) return place.status();
    if (place->kind == PoolPlace::Kind::elsewhere)
        return fail(Code::no_auth, "the scheduler of this host's pool is on another host, " + place->scheduler +
                                       ": start this program by dcs_begin");
    if (place->kind != PoolPlace::Kind::own && place->kind != PoolPlace::Kind::host) return place->directory;
    before = nullptr;
    auto first = std::make_unique<const std::string>(place->directory);
    if (found.compare_exchange_strong(before, first.get())) before = first.release();
    return *before;
}

}  // namespace dcs::client
