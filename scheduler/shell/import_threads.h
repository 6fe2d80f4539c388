#pragma once
// Threads that wait for decoders of imports (scheduler/reader), so that the loop does not.
#include <queue>
#include <set>
#include <string>

#include "scheduler/reader/reader.h"
#include "scheduler/shell/job_threads.h"

namespace dcs::shell {

class ImportThreads {
public:
    // `loop` is woken when one is done. Both outlive this.
    ImportThreads(reader::Reader &reader, net::Loop &loop);
    ~ImportThreads();  // what is under way is given up

    struct Done {
        std::uint64_t id = 0;
        Result<std::string> rows;
    };
    void start(std::uint64_t id, std::string stream) { threads_.start({id, std::move(stream)}); }
    std::vector<Done> take() { return threads_.take(); }
    int watched() const { return reader_.fd(); }  // when it is readable the reader may be gone
    void look_at_reader();

private:
    struct Job {
        std::uint64_t id = 0;
        std::string stream;
    };
    struct Queue : private std::queue<Job> {
        using std::queue<Job>::empty;
        void put(Job job) { push(std::move(job)); }
        Job take() {
            Job first = std::move(front());
            pop();
            return first;
        }
    };
    Result<std::string> decode(std::string stream);

    reader::Reader &reader_;
    net::Loop &loop_;
    std::mutex mutex_;
    std::set<int> sockets_;  // to decoders at work
    bool stopping_ = false;
    JobThreads<Queue, Job, Done> threads_;
};

}  // namespace dcs::shell
