// What only the pool's authority can make, for tests that have its key: certificates that are old, or of another role.
//   tls_forge AUTHORITY_DIR OUT_DIR ROLE NAME AGE_DAYS LIFE_DAYS
// The key of OUT_DIR is used if there is one.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/clock.h"
#include "pki/authority.h"

int main(int argc, char **argv) {
    using namespace dcs;
    if (argc != 7) return 2;
    const std::string role = argv[3];
    const pki::Role wanted = role == "client"      ? pki::Role::client
                             : role == "scheduler" ? pki::Role::scheduler
                             : role == "program"   ? pki::Role::program
                             : role == "backup"    ? pki::Role::backup
                                                   : pki::Role::grain_server;
    const std::int64_t now = wall_clock_s() - std::atol(argv[5]) * pki::day_s;
    const auto authority = pki::authority_in(argv[1], wall_clock_s());
    const auto key = pki::key_in(argv[2]);
    if (!authority || !key) return 1;
    const auto der =
        pki::issue(*authority, *pki::public_key_of(*key), wanted, argv[4], now, std::atol(argv[6]) * pki::day_s);
    if (!der) return 1;
    const pki::Identity who{*key, *pki::read_certificate(*der), authority->certificate};
    const Status s = pki::write_identity(argv[2], who);
    if (!s) std::fprintf(stderr, "%s\n", s.text.c_str());
    return s ? 0 : 1;
}
