#pragma once
// Is between a control program and the scheduler that has its recorded sessions, passes everything on, and watches
// whether the program repeats what was recorded.
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "net/loop.h"

namespace dcs::commands {

struct Recorded {
    std::string ident;
    std::set<std::int32_t> grains;
    std::int32_t handed_out = 0;  // results that the program had seen
};

struct Replayed {
    std::set<std::int32_t> grains;  // submitted again, as recorded
    std::int32_t taken = 0;         // index after the last result that it took
    bool opened = false, at_end = false;
    // As far as the record goes; what a program does then is new, and no departure.
    bool whole(const Recorded &record) const {
        return grains.size() >= record.grains.size() && taken >= record.handed_out;
    }
};

struct Departure {
    std::int32_t session = 0, grain = -1;
    std::string what;
};

class ReplayProxy {
public:
    // Listens as the scheduler of the pool in `directory`, for the one that listens at `socket`.
    static Result<std::unique_ptr<ReplayProxy>> open(const std::string &directory, const std::string &socket,
                                                     std::map<std::int32_t, Recorded> records);
    // Until the process behind `pidfd` has ended, or `signals` has some.
    void serve(int pidfd, int signals);

    const std::map<std::int32_t, Recorded> &records() const { return records_; }
    const Replayed &replayed(std::int32_t session) { return replayed_[session]; }
    const std::optional<Departure> &departure() const { return departure_; }

private:
    struct Asked {  // what a reply will be about
        std::int32_t session = -1;
        std::set<std::int32_t> grains;
    };
    struct Pair {
        ConnId program{}, scheduler{};
        std::uint64_t hello = 0;               // the program's id of its Hello: ours is our own offer
        std::map<std::uint64_t, Asked> asked;  // by request
    };

    ReplayProxy() : loop_(net::Loop::create()) {}
    bool take(const net::Arrival &arrival);  // false: that is the end
    void opened(ConnId program);
    void closed(ConnId conn);
    void pass_on(ConnId to, const wire::AnyMessage &message, std::uint64_t id);
    void request(Pair &pair, const wire::AnyMessage &message, std::uint64_t id);
    void reply(Pair &pair, const wire::AnyMessage &message, std::uint64_t id);
    void took(const Asked &asked, const wire::GrainResult &result);
    void submitted(const Asked &asked);
    void refused(const Asked &asked, const wire::ErrorReply &error);
    void depart(std::int32_t session, std::int32_t grain, std::string what);

    std::unique_ptr<net::Loop> loop_;
    std::string socket_;
    std::map<std::int32_t, Recorded> records_;
    std::map<std::int32_t, Replayed> replayed_;
    std::optional<Departure> departure_;             // the first one
    std::map<ConnId, std::shared_ptr<Pair>> pairs_;  // by either end
};

}  // namespace dcs::commands
