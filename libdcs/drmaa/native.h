#pragma once
// drmaa_native_specification: what a job needs of the pool, as options of `dcs run`, or in the words of Grid Engine's
// qsub that programs use here.
#include <string>

#include "outcome.h"

namespace dcs::drmaa {

struct Native {
    std::string classes;
    long cores = 0, memory_mb = 0, wall_s = 0, attempts = 1, notice = 0, thrash = 0;
    bool urgent = false;
    bool environment = false;  // -V: all variables of the program
};

Outcome read_native(const std::string &text, Native &native);

}  // namespace dcs::drmaa
