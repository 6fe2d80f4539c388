#include "grainserver/starter/filter.h"

#include <semaphore>
#include <system_error>
#include <thread>

#include <sys/prctl.h>

#include "base/planted.h"
#include "base/require.h"

namespace dcs::starter {

// The caller waits: nothing happens in two threads at a time.
class Filter::Unfiltered {
public:
    Unfiltered() : thread_([this] { serve(); }) {}
    ~Unfiltered() {
        work_ = nullptr;
        asked_.release();
        thread_.join();
    }
    void run(const std::function<void()> &work) {
        DCS_REQUIRE(work, "there is work to do");
        work_ = &work;
        asked_.release();
        done_.acquire();
    }

private:
    void serve() {
        for (;; done_.release()) {
            asked_.acquire();
            if (work_ == nullptr) return;
            (*work_)();
        }
    }

    const std::function<void()> *work_ = nullptr;
    std::binary_semaphore asked_{0}, done_{0};
    std::thread thread_;  // the last: it uses the others
};

Filter::Filter() = default;
Filter::~Filter() = default;

bool Filter::is_inherited(const Plan &plan) {
    const files::Confinement &confinement = *plan.confinement;
    // Filters deny the calls that make namespaces; a container has its filter inside; a trial ends before the exec.
    if (confinement.filter.empty() || plan.contained || plan.only_prove) return false;
    if ((confinement.rungs & rung_namespaces) != 0) return false;
    const Rungs kind = confinement.rungs & (rung_filter | rung_no_network | rung_scope);
    if (unfiltered_ != nullptr) return kind == kind_ || planted("starter.filter_of_others");
    if (std::exchange(tried_, true)) return false;
    try {
        auto unfiltered = std::make_unique<Unfiltered>();
        if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || files::put_filter_on(confinement.filter) != 0)
            return false;
        unfiltered_ = std::move(unfiltered);
        kind_ = kind;
    } catch (const std::system_error &) {  // too many threads
        return false;
    }
    return true;
}

void Filter::without(const std::function<void()> &work) {
    if (unfiltered_ != nullptr) unfiltered_->run(work);
    else work();
}

void Filter::with_network(const std::function<void()> &work) {
    if ((kind_ & rung_no_network) != 0) without(work);
    else work();
}

}  // namespace dcs::starter
