#pragma once
// A directory for the keeper's files, which is gone with its test.
#include <string>

#include <stdlib.h>
#include <unistd.h>

#include "scheduler/keeper/keeper.h"
#include "support/catch.h"

namespace dcs::keeper {

struct Directory {
    std::string path;
    Directory() {
        char name[] = "/tmp/dcs_keeper_XXXXXX";
        REQUIRE(::mkdtemp(name) != nullptr);
        path = name;
    }
    ~Directory() {
        for (const char *file : {"/pki/authority-key.pem", "/pki/authority.pem", "/hosts", "/hosts.new"})
            ::unlink((path + file).c_str());
        ::rmdir((path + "/pki").c_str());
        ::rmdir(path.c_str());
    }
    Place place() const { return {path + "/pki", path + "/hosts", path + "/policy", path + "/limits", ""}; }
};

}  // namespace dcs::keeper
