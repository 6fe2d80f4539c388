#pragma once
// The connection of one thread to one pool, and for which token and socket, or scheduler elsewhere, it was made.
#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "client/transport.h"
#include "wire/user_calls.h"

namespace dcs::client {

struct Remote;
using RemotePtr = std::shared_ptr<const Remote>;
class TakeResult;
struct Forks;

struct Line {
    Transport transport;
    std::atomic<bool> over{false};  // its pool is closed
    std::string token, path, user;
    RemotePtr remote;
    bool greeted = false;
    wire::PeerForm form;           // once greeted
    std::size_t at = 0, next = 0;  // of the remote's addresses: the last that was connected to, the first to try now
    std::vector<wire::GrainResult> handed_out;  // by this thread's last wait; the caller has their texts until its next
};

}  // namespace dcs::client
