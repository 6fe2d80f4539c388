#pragma once
// The options of dcs_grainserver: of its command line and of its configuration file.
#include <string>
#include <vector>

#include "daemon/options.h"
#include "grainserver/files/grain_record.h"
#include "grainserver/files/owner_rules.h"
#include "grainserver/shell/identity.h"
#include "grainserver/shell/rungs.h"

namespace dcs::server {

struct ServerOptions {
    std::string name, directory, scheduler, binary_class, launcher_program;
    bool own_launcher = true;     // else a service manager starts it
    std::string backup;           // its socket, or its address in place of the scheduler's; empty: not given
    std::string slots_directory;  // empty: the server's own
    std::string pki_directory;    // empty: directory/pki
    bool use_cgroups = true;
    IdentityOptions identity;
    RungOptions rungs;
    files::Limits limits;
    std::string resources = "auto";          // what this host offers: "auto" as found, "none", or as base/resources.h
    int library_mb = 4096;                   // size of the library of contents
    int images_mb = files::usual_images_mb;  // of unpacked images
    std::vector<std::string> runner;         // runs this host's programs; empty: they are executed directly
    bool watch = true;                       // the host's owner has priority
    bool ordinary_priority = false;          // of grains; false: the lowest
    Duration leave_after{}, leave_idle{};    // as part of a batch job; 0: it is none, or stays without grains
};

// What the options say; GRAIN_HOSTS.md has it in words. `server` has what follows from them once the line's check has
// passed.
struct OptionWords {
    std::string run_as, accounts = "none", of_users = "all", uids, cgroups = "auto", network = "yes", writable;
    std::string launcher = "self";
    std::string log_level = "off", runner, courtesy = "watch";
    int memory_mb = 0, processes = 512, cpu_s = 0, file_mb = 0, disk_mb = 0;
    int ready_fd = -1;
    ServerOptions server;

    OptionWords();  // with what this host is and where this program lies
};

// Options that go into the fields of `into`, which outlives it.
CommandLine command_line(OptionWords &into);

}  // namespace dcs::server
