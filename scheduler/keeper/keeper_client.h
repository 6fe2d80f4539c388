#pragma once
// The scheduler's side of its keeper.
#include <memory>
#include <string>

#include "daemon/side_process.h"
#include "scheduler/keeper/keeper.h"

namespace dcs::keeper {

// Its calls wait for the answer, like those of the C library that they stand for. When the keeper is gone, or does not
// answer for half a minute, they fail with `unreachable`, now and ever after. Thread-safe.
class KeeperClient {
public:
    // Forks it, as who this process is now. Before any thread starts, and before anything is read that it should not
    // know.
    static Result<std::unique_ptr<KeeperClient>> start(const Place &place);

    int fd() const { return process_->fd(); }                        // readable when the keeper is gone
    bool lost() const { return process_->lost(); }                   // gone, or silent, as a call has found out
    bool gone() { return process_->gone(); }                         // that, or found out now
    std::string how_it_ended() { return process_->how_it_ended(); }  // "was killed by signal 9"

    Result<std::string> authority();                                   // its certificate, DER
    Result<std::string> own_certificate(std::string_view public_key);  // DER, as the next
    Result<std::string> certificate(pki::Role role, const std::string &name, std::string_view public_key);
    Result<std::string> settings(Settings which, const std::string &file, const std::string &what);  // its text
    Status remove_host(const std::string &host);
    std::string user_name(std::uint32_t uid);  // empty: none, or gone()
    Status check_login(const std::string &user);
    Status knows_login(const std::string &user);
    int echo_socket(bool v6);  // the caller's; -1: none

private:
    explicit KeeperClient(std::unique_ptr<SideProcess> process) : process_(std::move(process)) {}
    Result<std::string> call(const Request &request, Fd *fd = nullptr);

    const std::unique_ptr<SideProcess> process_;
};

}  // namespace dcs::keeper
