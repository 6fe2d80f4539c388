#include "scheduler/keeper/keeper_client.h"

#include "base/fd.h"
#include "scheduler/keeper/settings_file.h"

namespace dcs::keeper {

Result<std::unique_ptr<KeeperClient>> KeeperClient::start(const Place &place) {
    auto process = SideProcess::start({"the scheduler's keeper", "the scheduler"}, patience_s,
                                      [&](int socket) { run_keeper(socket, place); });
    if (!process) return process.status();
    return std::unique_ptr<KeeperClient>(new KeeperClient(std::move(*process)));
}

Reply KeeperClient::call(const Request &request, int *fd) {
    *fd = -1;
    if (request.name.size() >= name_max) return {fail(Code::invalid, "the name is too long"), ""};
    const Result<std::string> answer = process_->ask(to_packet(request), fd);
    if (!answer) return {answer.status(), ""};
    auto reply = read_side_answer(*answer);
    if (!reply) return {process_->distrust(), ""};
    return std::move(*reply);
}

Result<std::string> KeeperClient::bytes(const Request &request) {
    int fd = -1;
    Reply reply = call(request, &fd);
    const Fd unwanted(fd);
    if (!reply.status) return reply.status;
    return std::move(reply.bytes);
}

Result<std::string> KeeperClient::authority() {
    Request request;
    request.ask = Ask::authority;
    return bytes(request);
}

Result<std::string> KeeperClient::own_certificate(std::string_view public_key) {
    return certificate(pki::Role::scheduler, "", public_key);
}

Result<std::string> KeeperClient::certificate(pki::Role role, const std::string &name, std::string_view public_key) {
    const std::optional<Point> point = point_of(public_key);
    if (!point) return fail(Code::invalid, "it is not a public key on the curve P-256");
    Request request;
    request.ask = role == pki::Role::scheduler ? Ask::own_certificate : Ask::certificate;
    request.role = role == pki::Role::scheduler ? pki::Role::none : role;
    request.name = name;
    request.point = *point;
    return bytes(request);
}

Result<std::string> KeeperClient::settings(Settings which, const std::string &file, const std::string &what) {
    Request request;
    request.ask = Ask::settings;
    request.which = which;
    int fd = -1;
    const Reply reply = call(request, &fd);
    if (!reply.status) return reply.status;
    if (fd < 0)
        return fail(Code::limit, "the keeper could not hand over " + file +
                                     ": this process has no file descriptors "
                                     "left, raise ulimit -n");
    return read_settings(fd, file, what);
}

Status KeeperClient::remove_host(const std::string &host) {
    Request request;
    request.ask = Ask::remove_host;
    request.name = host;
    return bytes(request).status();
}

std::string KeeperClient::user_name(std::uint32_t uid) {
    Request request;
    request.ask = Ask::user_name;
    request.number = uid;
    const Result<std::string> name = bytes(request);
    return name ? *name : std::string();
}

Status KeeperClient::check_login(const std::string &user) {
    Request request;
    request.ask = Ask::check_login;
    request.name = user;
    return bytes(request).status();
}

int KeeperClient::echo_socket(bool v6) {
    Request request;
    request.ask = Ask::echo_socket;
    request.number = v6 ? 6 : 4;
    int fd = -1;
    const bool opened = static_cast<bool>(call(request, &fd).status);
    Fd socket(fd);
    return opened ? socket.release() : -1;
}

}  // namespace dcs::keeper
