// What `dcs doctor` says of the pool's certificates.
#include <catch2/catch.hpp>

#include "scheduler/shell/tls_door.h"

using namespace dcs;

TEST_CASE("the doctor names a certificate before it ends") {
    pki::Certificate authority, own;
    const auto problems = [&](std::int64_t authority_days, std::int64_t own_days) {
        authority.not_after_s = 1'000'000'000 + authority_days * pki::day_s;
        own.not_after_s = 1'000'000'000 + own_days * pki::day_s;
        std::string text;
        for (const auto &row : shell::certificate_problems(authority, own, 1'000'000'000))
            text += row.entity + " " + row.problem + "; ";
        return text;
    };
    CHECK(problems(10'000, 90).empty());
    CHECK(problems(365, 23).empty());
    CHECK(problems(364, 30) == "certificate of the pool's authority expires in 364 days; ");
    CHECK(problems(400, 22) == "certificate of the scheduler expires in 22 days; ");
    CHECK(problems(-1, -1) ==
          "certificate of the pool's authority has expired; certificate of the scheduler has expired; ");
}
