#pragma once
// A scheduler of a few lines for the tests of the C calls: one thread, a real Unix socket in a pool
// directory of its own, and a script per request that answers, cuts, delays or sends garbage.
#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "wire/message.h"

namespace dcs::test {

struct Seen {
    int connection;
    std::uint64_t request;
    wire::AnyMessage message;
};

// What to do with a request. Nothing: answer with `reply`.
struct Act {
    wire::AnyMessage reply = wire::Done{};
    bool cut_before = false;                       // close without a reply
    bool cut_inside = false;                       // close in the middle of the reply
    bool cut_after = false;                        // close after the reply
    bool park = false;                             // do not answer, until another act answers what is parked
    std::optional<wire::AnyMessage> parked_reply;  // to all that is parked, before the reply
    int delay_ms = 0;
    std::string raw;     // send these bytes instead
    std::string append;  // send these bytes after the reply
};

class FakeScheduler {
public:
    using Script = std::function<Act(const wire::AnyMessage &request, int nth)>;

    // Sets DCS_DIR to its pool. `listen` false: there is a pool, but no party listens yet.
    explicit FakeScheduler(bool listen = true, const std::string &deep = "");
    ~FakeScheduler();

    void be_old() { old_ = true; }                 // of release 0.1: offers are request ids to it
    void greet(std::optional<std::string> bytes);  // sends these on every new connection and closes it
    std::set<wire::Form> forms() const;            // in which it was spoken to
    void script(Script s);                         // default: a plausible answer to everything
    void start();
    void stop();  // closes the socket and all connections
    std::vector<Seen> seen() const;
    int connections() const { return connections_; }
    int open_now() const { return open_now_; }
    const std::string &dir() const { return dir_; }
    template <class M> std::vector<std::pair<std::uint64_t, M>> all() const {
        std::vector<std::pair<std::uint64_t, M>> found;
        for (const Seen &s : seen())
            if (const M *m = std::get_if<M>(&s.message)) found.emplace_back(s.request, *m);
        return found;
    }

private:
    struct Conn {
        int fd, number;
        std::string bytes;
        wire::PeerForm form;
        std::vector<std::uint64_t> parked;
    };
    void run();
    void take(Conn &c);
    void answer(Conn &c, std::uint64_t request, const wire::AnyMessage &message);
    static bool write(const Conn &c, std::string_view bytes);
    void answer_parked(const wire::AnyMessage &reply);
    void drop(Conn &c);

    std::string dir_;
    int listener_ = -1, wake_[2] = {-1, -1};
    std::thread thread_;
    mutable std::mutex mutex_;
    Script script_;
    std::optional<std::string> greeting_;
    std::vector<Seen> seen_;
    std::vector<Conn> conns_;
    std::set<wire::Form> forms_;
    std::atomic<bool> old_{false};
    std::atomic<int> connections_{0}, open_now_{0}, requests_{0};
};

wire::AnyMessage plausible(const wire::AnyMessage &request);

}  // namespace dcs::test
