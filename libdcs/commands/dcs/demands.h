#pragma once
// What `dcs run` and `dcs map` may say about a grain's placement and attempts.
#include <cstdint>
#include <optional>
#include <vector>

#include "arguments.h"
#include "dcs.h"
#include "failure.h"

namespace dcs::commands {

struct Demands {
    std::uint32_t host_class = 0;
    int attempts = 1;
    int cores = 0, memory_mb = 0, wall_s = 0;
    int thrash = 0, notice = 0;
    bool urgent = false;

    void put_into(d_grain &grain) const;
};

// `options` and those that say it: --class --attempts --cores --memory --wall --thrash --notice --urgent.
std::vector<Option> with_demands(std::vector<Option> options);
// What the command line says; a usage error otherwise.
std::optional<Failure> take_demands(const Arguments &arguments, Demands &demands);

}  // namespace dcs::commands
