#pragma once
// The scheduler's side of its keeper.
#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include <sys/types.h>

#include "scheduler/keeper/keeper.h"

namespace dcs::keeper {

// Its calls wait for the answer, like those of the C library that they stand for. When the keeper is gone, or does not
// answer for half a minute, they fail with `unreachable`, now and ever after. Thread-safe.
class KeeperClient {
public:
    // Forks it, as who this process is now. Before any thread starts, and before anything is read that it should not
    // know.
    static Result<std::unique_ptr<KeeperClient>> start(const Place &place);
    ~KeeperClient();
    KeeperClient(const KeeperClient &) = delete;
    KeeperClient &operator=(const KeeperClient &) = delete;

    int fd() const { return socket_; }  // readable when the keeper is gone
    bool lost() const { return is_lost_; }  // gone, or silent, as a call has found out
    bool gone();                        // that, or found out now
    std::string how_it_ended();         // "was killed by signal 9"

    Result<std::string> authority();                                   // its certificate, DER
    Result<std::string> own_certificate(std::string_view public_key);  // DER, as the next
    Result<std::string> certificate(pki::Role role, const std::string &name, std::string_view public_key);
    Result<std::string> settings(Settings which, const std::string &file, const std::string &what);  // its text
    Status remove_host(const std::string &host);
    std::string user_name(std::uint32_t uid);                          // empty: none, or gone()
    Status check_login(const std::string &user);
    int echo_socket(bool v6);                                          // the caller's; -1: none

private:
    KeeperClient(int socket, pid_t pid) : socket_(socket), pid_(pid) {}
    Reply call(const Request &request, int *fd);
    Result<std::string> bytes(const Request &request);
    Status lose(const std::string &why);

    std::mutex mutex_;
    const int socket_;
    pid_t pid_;
    std::string lost_;  // why no call can succeed any more
    std::atomic<bool> is_lost_ = false;
};

}  // namespace dcs::keeper
