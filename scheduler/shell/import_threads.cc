#include "scheduler/shell/import_threads.h"

#include <utility>

#include <sys/socket.h>

#include "daemon/log.h"

namespace dcs::shell {
namespace {

constexpr int decoders_at_once = 4;  // turn::Imports sends out no more

}  // namespace

ImportThreads::ImportThreads(reader::Reader &reader, net::Loop &loop)
    : reader_(reader), loop_(loop), threads_(decoders_at_once, loop, [this](Job job) {
          return Done{job.id, decode(std::move(job.stream))};
      }) {}

ImportThreads::~ImportThreads() {
    const std::lock_guard<std::mutex> guard(mutex_);
    stopping_ = true;
    for (const int socket : sockets_) ::shutdown(socket, SHUT_RDWR);
}

// An import can wait for the next start; nothing else waits for that process.
void ImportThreads::look_at_reader() {
    if (!reader_.gone()) return;
    loop_.unwatch(watched());
    log_error("the scheduler's reader " + reader_.how_it_ended() +
              ": imports of sessions are refused until the scheduler is started again; everything else continues");
}

Result<std::string> ImportThreads::decode(std::string stream) {
    int held = -1;
    const auto busy = [&](int socket) {
        std::lock_guard<std::mutex> guard(mutex_);
        if (socket >= 0) sockets_.insert(socket);
        else sockets_.erase(held);
        held = socket;
        if (socket >= 0 && stopping_) ::shutdown(socket, SHUT_RDWR);
    };
    return reader_.decode(std::move(stream), busy);
}

}  // namespace dcs::shell
