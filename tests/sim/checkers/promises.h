#pragma once
// What control programs were promised: a submission, a kill, a close, a result that was acknowledged is
// never lost; results keep their order and their bytes; each grain has one of them; nothing killed comes
// back. Kept from the replies alone, so that it can contradict the scheduler.
#include <map>
#include <set>

#include "scheduler/state/state.h"
#include "sim/clock.h"
#include "sim/control_node.h"
#include "wire/message.h"

namespace dcs::sim {

class Promises {
public:
    explicit Promises(Clock &clock) : clock_(clock) {}
    void asks(const SessionKey &key, const wire::AnyMessage &call);
    void told(const SessionKey &key, const Script &script, const wire::AnyMessage &call, const wire::AnyMessage &reply,
              const core::State *state);
    // The state: of now, if the scheduler runs.
    void complete(const SessionKey &key, const Course &course, const core::State *state);
    void forgets(const SessionKey &key, const Forgotten &what);
    // Does the scheduler know all that it promised?
    void compare(const core::State &state);
    std::uint64_t results() const { return results_; }
    std::uint64_t forgotten() const { return forgotten_; }

private:
    struct Result {
        GrainNumber grain = 0;
        std::int32_t code = 0, signal = 0;
        std::uint64_t out_length = 0, err_length = 0, digest = 0;
        bool operator==(const Result &) const = default;
    };
    struct Book {
        bool closing = false, closed = false, cleaning = false;
        std::uint64_t seniority = 0;         // 0: not seen yet
        std::map<GrainNumber, bool> grains;  // submitted; true: killed
        std::set<GrainNumber> asked;         // the same, answered or not
        bool batches = false;                // some results were asked for together: handed out, though never received
        std::map<std::int32_t, Result> order;
        std::map<GrainNumber, std::int32_t> index;
        Forgotten forgotten;  // ordered last
    };
    void opened(const SessionKey &key, const wire::OpenSession &call, const wire::OpenReply &reply);
    void result(const SessionKey &key, Book &book, const Script &script, const wire::GrainResult &reply);
    void forgotten(const SessionKey &key, Book &book, const core::State *state);
    void compare_book(const SessionKey &key, Book &book, const core::State &state);
    void wrong(const SessionKey &key, const std::string &what) {
        clock_.complain("promises", to_text(key) + ": " + what);
    }

    Clock &clock_;
    std::map<SessionKey, Book> books_;
    std::uint64_t results_ = 0, forgotten_ = 0;
};

// What is wrong with the bytes of a result; "" if nothing is.
std::string wrong_with_output(const Plan &plan, const Model &model, const wire::GrainResult &result);
std::string wrong_with_piece(const Model &model, const wire::Fetch &call, const wire::Piece &piece);

}  // namespace dcs::sim
