#pragma once
// All checkers, told of everything that they want to see; what is expensive is done now and then.
#include <functional>

#include "sim/checkers/durable.h"
#include "sim/checkers/grace.h"
#include "sim/checkers/leases.h"
#include "sim/checkers/promises.h"
#include "sim/checkers/resources.h"
#include "sim/checkers/seniority.h"
#include "sim/control_node.h"
#include "sim/scheduler_node.h"

namespace dcs::sim {

class Watch final : public SchedulerWatch, public ProcessWatch, public ControlWatch {
public:
    Watch(Clock &clock, Medium &medium, const SchedulerNode &scheduler)
        : promises(clock),
          leases(clock),
          seniority(clock),
          durable(clock, medium),
          grace(clock),
          resources(clock),
          clock_(clock),
          scheduler_(scheduler) {}

    // SchedulerWatch
    void started(const core::State &state, store::Store &store) override;
    void before_turn(const core::State &state) override;
    void after_turn(const core::State &state, store::Store &store) override;
    void sends(ConnId conn, const wire::AnyMessage &message, const core::State &state) override;
    void hears(ConnId conn, const wire::FrameHeader &header) override;
    void lost(const core::State &state, bool in_flight, std::uint64_t turn) override;
    void paused(Duration) override {}
    // ProcessWatch
    void process_begins(int host, const Process &process, const std::map<server::GrainId, Process> &on_host,
                        std::int32_t slots) override;
    // ControlWatch
    void asks(const SessionKey &key, const wire::AnyMessage &call) override;
    void told(const SessionKey &key, const Script &script, const wire::AnyMessage &call,
              const wire::AnyMessage &reply) override;
    void complete(const SessionKey &key, const Course &course) override;
    void forgets(const SessionKey &key, const Forgotten &what) override;

    // The last time that a call of a control program succeeded.
    Instant progress() const { return progress_; }

    // Of the backup, if there is one.
    std::function<void(ConnId, const wire::AnyMessage &, const core::State &)> before_sending;
    std::function<void()> after_each_turn;

    Promises promises;
    Leases leases;
    Seniority seniority;
    Durable durable;
    Grace grace;
    Resources resources;

private:
    bool off() const { return clock_.plan.scale; }
    Clock &clock_;
    const SchedulerNode &scheduler_;
    std::uint64_t turns_ = 0;
    Instant progress_{};
};

}  // namespace dcs::sim
