#pragma once
// What goes wrong, and when it is put right again.
#include <functional>
#include <map>

#include "sim/clock.h"

namespace dcs::sim {

class World;

class Faults final : public Handler {
public:
    explicit Faults(World &world);
    void begin();
    // Everything is put right now, and nothing goes wrong any more.
    void heal();
    std::uint64_t count() const { return count_; }

private:
    using Undo = std::function<void()>;
    void happen(std::uint32_t what, std::uint64_t arg) override;
    void plan_next(std::size_t fault);
    void strike(Fault fault);
    void strike_scheduler(Fault fault);
    void strike_link(Fault fault);
    void strike_host(Fault fault);
    void host_down(Fault fault, int host);
    void strike_control(Fault fault);
    void strike_backup(Fault fault);
    void swizzle();
    void later(Duration after, Undo undo);
    Duration span(Duration least, Duration most) { return spread(random_, least, most); }
    int some_host();
    int some_site(int host) const;
    void note(Fault fault, const std::string &what);

    World &w_;
    Random random_;
    std::map<std::uint64_t, Undo> undo_;
    std::uint64_t next_undo_ = 1, count_ = 0;
    int lost_ = 0;
    bool off_ = false;
};

}  // namespace dcs::sim
