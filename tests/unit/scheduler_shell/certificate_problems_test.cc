// What `dcs doctor` says of the pool's certificates.
#include <catch2/catch.hpp>

#include "scheduler/shell/tls_door.h"
#include "support/about.h"

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
    CHECK(problems(364, 30) == about("certificate pool's authority expires 364 days"));
    CHECK(problems(400, 22) == about("certificate scheduler expires 22 days"));
    CHECK(problems(-1, -1) == about("certificate pool's authority expired certificate scheduler expired"));
}
