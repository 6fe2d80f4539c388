#pragma once
// Threads that wait for decoders of imports (scheduler/reader), so that the loop does not.
#include <condition_variable>
#include <deque>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "net/loop.h"
#include "scheduler/reader/reader.h"

namespace dcs::shell {

class ImportThreads {
public:
    // `loop` is woken when one is done. Both outlive this.
    ImportThreads(reader::Reader &reader, net::Loop &loop);
    ~ImportThreads();  // what is under way is given up
    ImportThreads(const ImportThreads &) = delete;
    ImportThreads &operator=(const ImportThreads &) = delete;

    void start(std::uint64_t id, std::string stream);
    struct Done {
        std::uint64_t id = 0;
        Result<std::string> rows;
    };
    std::vector<Done> take();
    int watched() const { return reader_.fd(); }  // when it is readable the reader may be gone
    void look_at_reader();

private:
    struct Job {
        std::uint64_t id = 0;
        std::string stream;
    };
    void work();
    Result<std::string> decode(std::string stream);

    reader::Reader &reader_;
    net::Loop &loop_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Job> jobs_;
    std::vector<Done> done_;
    std::set<int> sockets_;  // to decoders at work
    bool stopping_ = false;
    std::vector<std::thread> threads_;
};

}  // namespace dcs::shell
