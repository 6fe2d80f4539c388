#include <linux/capability.h>

#include "base/bytes.h"
#include "daemon/privileges.h"
#include "grainserver/warden/warden.h"

namespace dcs::warden {
namespace {
constexpr int patience_s = 30;  // a name service may be slow
// What it and the launcher need for accounts of grains: files of all of them, identities, signals, namespaces; and the
// part of a disk that is reserved for root, to record the end of a grain that filled the rest.
constexpr std::uint64_t kept_for_accounts = 1ull << CAP_CHOWN | 1ull << CAP_DAC_OVERRIDE | 1ull << CAP_FOWNER |
                                            1ull << CAP_KILL | 1ull << CAP_SETGID | 1ull << CAP_SETUID |
                                            1ull << CAP_SYS_PTRACE | 1ull << CAP_SYS_ADMIN | 1ull << CAP_SYS_RESOURCE;

Request about(Ask ask, const std::string &text, const files::Account &account) {
    Request request{.ask = ask, .text = text};
    if (!account.change) return request;
    request.change = true;
    request.made_up = account.made_up;
    request.uid = account.uid;
    request.gid = account.gid;
    return request;
}

[[noreturn]] void run_warden(int socket, const files::OwnerRules &rules, const LauncherOptions &launcher) {
    Status s = settle_side_process(socket, "dcs_warden");
    if (s && rules.users) s = give_up_capabilities(kept_for_accounts);
    Warden warden(rules, launcher, files::logins_of_this_host());
    serve_side_process(s, socket, patience_s,
                       [&](std::string_view packet, int *fd) { return warden.answer(packet, fd); });
}
}  // namespace

Result<std::shared_ptr<WardenClient>> WardenClient::start(const files::OwnerRules &rules,
                                                          const LauncherOptions &launcher) {
    auto process = SideProcess::start({"the grain server's warden", "the grain server"}, patience_s,
                                      [&](int socket) { run_warden(socket, rules, launcher); });
    if (!process) return process.status();
    return std::shared_ptr<WardenClient>(new WardenClient(std::move(*process)));
}

Result<std::string> WardenClient::call(const Request &request, Fd *fd) const {
    if (!read_packet(to_packet(request))) return fail(Code::invalid, "the warden does not accept this request");
    return process_->call(to_packet(request), fd);
}

Status WardenClient::start_launcher() const { return call({}).status(); }

std::optional<std::string> WardenClient::name_of(std::uint32_t uid) const {
    const Result<std::string> name = call({.ask = Ask::name_of_uid, .uid = uid});
    if (name) return *name;
    // If the name service fails, the uid counts as assigned.
    if (name.status().code != Code::not_found) return "an unknown user";

    return {};
}

Result<files::Account> WardenClient::login(const files::OwnerRules &, const std::string &name) const {
    const Result<std::string> found = call({.ask = Ask::login, .text = name});
    if (!found) return found.status();
    ByteReader r(*found);
    files::Account account{.change = true, .uid = r.u32(), .gid = r.u32()};
    while (r.good() && !r.at_end()) account.groups.push_back(r.u32());
    if (!r.good()) return process_->distrust();
    return account;
}

Result<Fd> WardenClient::open_program(const std::string &path, const files::Account &account) const {
    Fd file;
    const Result<std::string> opened = call(about(Ask::program, path, account), &file);
    if (!opened) return opened.status();
    if (!file) return process_->distrust();
    return file;
}

Status WardenClient::give_room(const std::string &grain, const files::Account &account) const {
    return account.change ? call(about(Ask::give_room, grain, account)).status() : Status::ok();
}

Status WardenClient::take_room(const std::string &grain, const files::Account &account) const {
    return account.change ? call(about(Ask::take_room, grain, account)).status() : Status::ok();
}

Status WardenClient::give_home(const std::string &user, const files::Account &account) const {
    return account.change ? call(about(Ask::give_home, user, account)).status() : Status::ok();
}

}  // namespace dcs::warden
