#pragma once
// What a control program does, as a function of its seed and of the results that it has received: run
// again from the beginning with the same results in the same order, it makes the same calls. That is
// what DCS asks of its users' programs.
#include <deque>
#include <set>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "sim/grain_model.h"
#include "sim/plan.h"
#include "wire/message.h"

namespace dcs::sim {

struct Submit {
    GrainNumber grain = 0;
};
struct Kill {
    GrainNumber grain = 0;
};
struct Wait {
    bool block = true;
};
struct Fetch {
    GrainNumber grain = 0;
};
struct Close {};
using Action = std::variant<Submit, Kill, Wait, Fetch, Close>;

// Fixed for one session of a program.
struct Script {
    std::uint64_t seed = 0;
    int first = 1, most = 1;  // grains at the beginning; at most
    int classes = 1;
    Duration cpu_max{};
    bool polls = false;   // does not block in d_gwait
    int close_after = 0;  // results; 0: when nothing is left
    bool may_fail = true;
    bool contents = false, resources = false;

    Model model(GrainNumber grain) const;
    wire::GrainSpec spec(GrainNumber grain, const std::string &owner) const;
    // Bytes of the contents that its spec names.
    std::vector<std::string> contents_of(GrainNumber grain) const;

private:
    void add_files(GrainNumber grain, wire::GrainSpec &spec) const;
};
// What a grain puts into an output of this name.
std::string output_of(const GrainKey &key, const std::string &name);
// The grains that a call submits; none: it is another call.
std::vector<GrainNumber> submitted_by(const wire::AnyMessage &call);
Script draw_script(Random &r, const Plan &plan, int grains);

// One run through it.
class Course {
public:
    explicit Course(const Script &script);
    bool done() const { return actions_.empty(); }
    const Action &next() const { return actions_.front(); }
    // The grains of the submissions at hand, one after the other.
    std::vector<GrainNumber> submissions(std::size_t most) const;
    // The action at hand succeeded.
    void did();
    void got(const wire::GrainResult &result);
    // Nothing is left, or nothing can run: the end.
    void finish();
    const std::set<GrainNumber> &submitted() const { return submitted_; }
    const std::set<GrainNumber> &killed() const { return killed_; }
    const std::set<GrainNumber> &received() const { return received_; }

private:
    void branch(const wire::GrainResult &result);

    const Script *script_;
    std::deque<Action> actions_;
    GrainNumber next_grain_ = 0;
    std::set<GrainNumber> submitted_, killed_, received_;
};

}  // namespace dcs::sim
