#pragma once
// What is read of a session, with the hosts that it names, and words for what is wrong with it.
#include <map>
#include <string>
#include <vector>

#include "scheduler/state/decision.h"

namespace dcs::record {

// Ids for the hosts that records name: those that a State has, and for further ones those that it gives next.
class HostNames {
public:
    using Known = std::map<std::string, core::HostId>;  // ids from 0 on, without gaps
    explicit HostNames(const Known &known) : known_(&known) {}
    core::HostId id(const std::string &name);
    const Known &known() const { return *known_; }
    const std::vector<std::string> &further() const { return further_; }

private:
    core::HostId look_up(const std::string &name);
    const Known *known_;
    std::vector<std::string> further_;
    Known ids_;              // of these
    std::string last_name_;  // grains that follow each other often ran on one host
    core::HostId last_ = core::no_host;
};

struct SessionOnDisk : core::LoadedSession {
    core::Sifted sifted;
    HostNames hosts;
};

// An error of a file.
Status of_file(const std::string &path, const Status &why);
// A grain contradicts others, or itself.
Status contradicts(const SessionKey &key, GrainNumber number, const std::string &what);

}  // namespace dcs::record
