#include "client_host.h"

#include <cerrno>
#include <grp.h>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "commands/dcs/frame/pool_directory.h"
#include "commands/dcs/pool/start_daemon.h"
#include "base/limits.h"
#include "net/loop.h"

namespace dcs::commands {
namespace {

constexpr std::size_t most_conf_bytes = 64u << 10;

std::string conf_of(const std::string &directory) { return directory + "/pool.conf"; }

// The value of a line "word value" of pool.conf; '#' begins a comment.
std::string value_of(const std::string &directory, const std::string &wanted) {
    const auto text = read_file(conf_of(directory), most_conf_bytes);
    std::istringstream file(text ? *text : "");
    for (std::string line; std::getline(file, line);) {
        std::istringstream words(line.substr(0, line.find('#')));
        std::string word, value;
        if (words >> word >> value && word == wanted) return value;
    }
    return "";
}

constexpr Duration answer_patience = seconds(30);

Result<wire::AnyMessage> ask_at(const std::string &address, net::TlsContextPtr context,
                                const wire::AnyMessage &question) {
    const std::unique_ptr<net::Loop> loop = net::Loop::create();
    if (!loop) return fail(Code::limit, "no descriptors left: raise ulimit -n");
    net::Limits limits;
    limits.max_payload = 4 * limits::certificate_bytes;
    limits.hello = answer_patience;
    const ConnId conn = loop->connect_tls(address, limits, std::move(context));
    (void)loop->send(conn, question);
    for (;;)
        for (const net::Arrival &a : loop->wait(Instant::never(), 1)) {
            if (a.what == net::What::closed)
                return fail(Code::unreachable, (a.why.find(address) == a.why.npos ? address + ": " : "") + a.why);
            if (a.what == net::What::frame) return wire::decode_payload(a.header, a.payload);
        }
}

}  // namespace

std::string scheduler_of(const std::string &directory) { return value_of(directory, "scheduler"); }

Status run_by_begin(const std::vector<std::string> &words, const std::string &scheduler) {
    std::string own = own_path();
    const std::string begin = own_folder() + "/dcs_begin";
    std::vector<char *> argv = pointers_to(words);
    argv.insert(argv.begin(), {const_cast<char *>("dcs_begin"), own.data()});
    ::execv(begin.c_str(), argv.data());
    return fail_errno(
        errno == ENOENT ? Code::not_found : Code::refused,
        "the pool's scheduler is on another host, " + scheduler + ", and " + begin + " is needed to reach it", errno);
}

Status prepare_client(const std::string &directory, const std::string &scheduler) {
    if (::mkdir(directory.c_str(), 0755) == 0) (void)::chmod(directory.c_str(), 0755);
    else if (errno != EEXIST) return fail_errno(Code::io_error, "cannot make the directory " + directory, errno);
    const std::string named = scheduler_of(directory), own = value_of(directory, "dir");
    if (!own.empty())
        return fail(Code::refused, conf_of(directory) + " says that the scheduler runs on this host, in " + own +
                                       ": it does not need to join. If the scheduler has "
                                       "moved to another host, remove that line");
    if (named.empty() || named == scheduler) return Status::ok();
    return fail(Code::refused, conf_of(directory) + " names another scheduler, " + named +
                                   ": remove that file if this host is to belong to the pool at " + scheduler);
}

std::optional<std::uint32_t> group_of_key() {
    const group *found = ::getgrnam("dcs-key");
    return found == nullptr || ::geteuid() != 0 ? std::optional<std::uint32_t>() : found->gr_gid;
}

Status write_client(const std::string &directory, const std::string &scheduler) {
    if (scheduler_of(directory) == scheduler) return Status::ok();
    const std::string conf = conf_of(directory);
    std::string text =
        "# The pool whose control programs dcs_begin starts here; written by `dcs host join`.\n"
        "scheduler " +
        scheduler + "\n";
    if (directory != client_directory) text += "pki " + directory + "/pki\n";
    if (Status s = write_file(conf, text); !s) return s;
    return ::chmod(conf.c_str(), 0644) == 0 ? Status::ok() : fail_errno(Code::io_error, conf, errno);
}

Result<wire::AnyMessage> ask_scheduler(const std::vector<std::string> &addresses, const net::TlsSelf &self,
                                       net::TlsTrust trust, const wire::AnyMessage &question) {
    trust.role = pki::Role::scheduler;
    const auto context = net::tls_context(self, trust);
    if (!context) return context.status();
    Status why = Status::ok();
    for (const std::string &address : addresses) {
        auto answer = ask_at(address, *context, question);
        if (answer || answer.status().code != Code::unreachable) return answer;
        why = fail(Code::unreachable, (why.text.empty() ? "" : why.text + "; ") + answer.status().text);
    }
    return why;
}

}  // namespace dcs::commands
