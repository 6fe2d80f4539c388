// Submissions and results, one by one or many at once: how many is drawn again each time, so that a program that is run
// again cuts its run differently.
#include "sim/control_node.h"

namespace dcs::sim {

void ControlNode::submit() {
    const std::int32_t session = job().session;
    const auto spec = [&](GrainNumber grain) { return job().script.spec(grain, to_text(key())); };
    const std::size_t most = job().batch > 1 ? 1 + random_.below(static_cast<std::uint64_t>(job().batch)) : 1;
    const std::vector<GrainNumber> grains = self_.course->submissions(most);
    if (grains.size() == 1) return say(wire::Gexec{session, grains[0], spec(grains[0])}, false);
    wire::GexecMany batch{session, {}};
    for (const GrainNumber grain : grains) batch.orders.push_back({grain, spec(grain)});
    say(std::move(batch), false);
}

void ControlNode::wait(bool block) {
    if (!self_.results.empty()) {
        take_result();
        return go_on();
    }
    const std::uint64_t most = job().batch > 1 ? random_.below(static_cast<std::uint64_t>(job().batch)) : 0;
    if (most == 0) return say(wire::Gwait{job().session, self_.next, block}, block);
    say(wire::GwaitMany{job().session, self_.next, static_cast<std::int32_t>(most), block}, block);
}

void ControlNode::take_result() {
    const wire::GrainResult result = std::move(self_.results.front());
    self_.results.pop_front();
    self_.next = result.sent;
    self_.course->got(result);
}

// False: the reply is about none of them.
bool ControlNode::takes(const wire::AnyMessage &reply) {
    if (const auto *submitted = std::get_if<wire::GexecMany>(&self_.call)) {
        for (std::size_t i = 0; i < submitted->orders.size(); ++i) self_.course->did();
        return true;
    }
    if (const auto *result = std::get_if<wire::GrainResult>(&reply)) self_.results = {*result};
    else if (const auto *many = std::get_if<wire::GrainResults>(&reply))
        self_.results.assign(many->results.begin(), many->results.end());
    else return false;
    take_result();
    return true;
}

void ControlNode::go_on() {
    if (job().keeps_notes) {
        notes_ = self_.course;
        notes_next_ = self_.next;
    }
    if (self_.course->done()) return closed();
    think();
}

}  // namespace dcs::sim
