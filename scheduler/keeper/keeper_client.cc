#include "scheduler/keeper/keeper_client.h"

#include "scheduler/keeper/settings_file.h"

namespace dcs::keeper {

Result<std::unique_ptr<KeeperClient>> KeeperClient::start(const Place &place) {
    auto process = SideProcess::start({"the scheduler's keeper", "the scheduler"}, patience_s,
                                      [&](int socket) { run_keeper(socket, place); });
    if (!process) return process.status();
    return std::unique_ptr<KeeperClient>(new KeeperClient(std::move(*process)));
}

Result<std::string> KeeperClient::call(const Request &request, Fd *fd) {
    if (request.name.size() >= name_max) return fail(Code::invalid, "the name is too long");
    return process_->call(to_packet(request), fd);
}

Result<std::string> KeeperClient::authority() { return call({.ask = Ask::authority}); }

Result<std::string> KeeperClient::own_certificate(std::string_view public_key) {
    return certificate(pki::Role::scheduler, "", public_key);
}

Result<std::string> KeeperClient::certificate(pki::Role role, const std::string &name, std::string_view public_key) {
    const std::optional<Point> point = point_of(public_key);
    if (!point) return fail(Code::invalid, "it is not a public key on the curve P-256");
    const bool own = role == pki::Role::scheduler;
    return call({.ask = own ? Ask::own_certificate : Ask::certificate,
                 .role = own ? pki::Role::none : role,
                 .name = name,
                 .point = *point});
}

Result<std::string> KeeperClient::settings(Settings which, const std::string &file, const std::string &what) {
    Fd fd;
    const Result<std::string> reply = call({.ask = Ask::settings, .which = which}, &fd);
    if (!reply) return reply.status();
    if (!fd)
        return fail(Code::limit, "the keeper could not hand over " + file +
                                     ": this process has no file descriptors "
                                     "left, raise ulimit -n");
    return read_settings(fd.release(), file, what);
}

Status KeeperClient::remove_host(const std::string &host) {
    return call({.ask = Ask::remove_host, .name = host}).status();
}

std::string KeeperClient::user_name(std::uint32_t uid) {
    const Result<std::string> name = call({.ask = Ask::user_name, .number = uid});
    return name ? *name : std::string();
}

Status KeeperClient::check_login(const std::string &user) {
    return call({.ask = Ask::check_login, .name = user}).status();
}

Status KeeperClient::knows_login(const std::string &user) {
    return call({.ask = Ask::knows_login, .name = user}).status();
}

int KeeperClient::echo_socket(bool v6) {
    Fd socket;
    return call({.ask = Ask::echo_socket, .number = v6 ? 6u : 4u}, &socket) ? socket.release() : -1;
}

}  // namespace dcs::keeper
