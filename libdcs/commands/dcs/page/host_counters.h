#pragma once
// What the hosts did since this process saw them first. A host that leaves the table takes nothing with it, and one
// that comes to it, or back, brings nothing: no change of the table looks like work.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "wire/message.h"

namespace dcs::commands::page {

class HostCounters {
public:
    void take(const std::vector<wire::HostRow> &hosts);

    const std::map<std::string, std::int64_t> &starts() const { return starts_; }  // by class
    std::int64_t finished() const { return finished_; }
    std::int64_t failed() const { return failed_; }
    std::int64_t given_back() const { return given_back_; }
    double cpu_s() const { return cpu_s_; }

private:
    struct Host {
        std::int64_t launched = 0, finished = 0, failed = 0, given_back = 0;
        double cpu_s = 0;
    };
    std::map<std::string, Host> last_;
    std::map<std::string, std::int64_t> starts_;
    std::int64_t finished_ = 0, failed_ = 0, given_back_ = 0;
    double cpu_s_ = 0;
};

}  // namespace dcs::commands::page
