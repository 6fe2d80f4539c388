#include "scheduler/shell/import_threads.h"

#include <utility>

#include <sys/socket.h>

#include "daemon/log.h"

namespace dcs::shell {
namespace {

constexpr int decoders_at_once = 4;  // turn::Imports sends out no more

}  // namespace

ImportThreads::ImportThreads(reader::Reader &reader, net::Loop &loop) : reader_(reader), loop_(loop) {
    for (int i = 0; i < decoders_at_once; ++i) threads_.emplace_back([this] { work(); });
}

ImportThreads::~ImportThreads() {
    {
        std::lock_guard<std::mutex> guard(mutex_);
        stopping_ = true;
        for (const int socket : sockets_) ::shutdown(socket, SHUT_RDWR);
    }
    changed_.notify_all();
    for (std::thread &thread : threads_) thread.join();
}

void ImportThreads::start(std::uint64_t id, std::string stream) {
    {
        std::lock_guard<std::mutex> guard(mutex_);
        jobs_.push_back({id, std::move(stream)});
    }
    changed_.notify_one();
}

std::vector<ImportThreads::Done> ImportThreads::take() {
    std::lock_guard<std::mutex> guard(mutex_);
    return std::exchange(done_, {});
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

void ImportThreads::work() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
        changed_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
        if (stopping_) return;
        Job job = std::move(jobs_.front());
        jobs_.pop_front();
        lock.unlock();
        auto rows = decode(std::move(job.stream));
        lock.lock();
        done_.push_back({job.id, std::move(rows)});
        loop_.wake();
    }
}

}  // namespace dcs::shell
