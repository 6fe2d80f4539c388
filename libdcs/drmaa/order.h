#pragma once
// A job template as a grain.
#include <string>
#include <vector>

#include "dcs.h"
#include "job_template.h"
#include "call.h"

namespace dcs::drmaa {

// drmaa_native_specification: what a job needs of the pool, as options of `dcs run`, or in the words of Grid Engine's
// qsub that programs use here.
struct Native {
    std::string classes;
    long cores = 0, memory_mb = 0, wall_s = 0, attempts = 1, notice = 0, thrash = 0;
    bool urgent = false;
    bool environment = false;  // -V: all variables of the program
};

Outcome read_native(const std::string &text, Native &native);

// What owns the strings of a grain's submission.
struct Order {
    int number = 0;
    std::vector<std::string> arguments, environment;
    std::string label;
    Native native;
    unsigned host_class = 0;
};

// What all jobs of a call have in common: of the program, its directory and its variables.
struct Place {
    std::string home, directory, umask;
    std::vector<std::string> environment;        // of a job that says nothing
    std::vector<std::string> whole_environment;  // of one with -V
};
Place this_place();

// One job of the template: `index` is its place in a bulk, -1 outside of one.
Outcome make_order(const Template &job, const Place &place, const std::string &job_id, long index, Order &order);

// Submits them in one call. *taken: so many of them are in the session.
int submit(d_pool *pool, int session, const std::vector<Order> &orders, std::size_t &taken);

}  // namespace dcs::drmaa
