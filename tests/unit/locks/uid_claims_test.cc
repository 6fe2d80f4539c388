#include "locks/uid_claims.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "scratch.h"
#include "support/catch.h"

using namespace dcs;
using namespace dcs::locks;

namespace {

Status claim(UidClaims &claims, const std::string &owner, const std::string &path, std::uint32_t first,
             std::uint32_t last) {
    const Status opened = claims.open(owner, path);
    return opened ? claims.take(first, last) : opened;
}

}  // namespace

TEST_CASE("uids belong to the servers of one directory as long as one of them lives") {
    const scratch::Directory a, b, run;
    const std::string path = run / "dcs/uids.lock";
    const pid_t first = scratch::sleeper([&] {
        static UidClaims claims;
        return static_cast<bool>(claim(claims, a.path(), path, 1000, 1999));
    });
    REQUIRE(first > 0);
    for (const auto &[from, to] : {std::pair{1000u, 1999u}, {1999u, 2500u}, {5u, 1000u}, {1500u, 1500u}, {0u, 5000u}}) {
        INFO(from << "-" << to);
        UidClaims claims;
        const Status s = claim(claims, b.path(), path, from, to);
        CHECK(s.code == Code::refused);
        CHECK(s.text.find("1000-1999 of process " + std::to_string(first) + " (") == 0);
        CHECK(s.text.find("the next free uids are 2000-" + std::to_string(2000 + to - from)) != std::string::npos);
    }
    {
        const scratch::Directory c;
        UidClaims behind, refused;
        CHECK(claim(behind, c.path(), path, 2000, 2499));
        CHECK(claim(refused, b.path(), path, 1000, 1999).text.find("free uids are 2500-3499") != std::string::npos);
        CHECK(claim(refused, b.path(), path, 1, ~1u - 1).text.find("uids are") == std::string::npos);
    }
    UidClaims beside, above, same;
    CHECK(claim(beside, b.path(), path, 1, 999));
    CHECK(above.open(b.path(), path));
    CHECK(above.take(2000, ~1u));
    CHECK(above.take(2000, ~1u));
    CHECK(claim(same, a.path(), path, 1000, 1999));
    scratch::end(first);
    UidClaims later;
    CHECK(claim(later, b.path(), path, 1000, 1999).code == Code::refused);
    Fd copy(::dup(same.fd()));
    same = UidClaims();
    CHECK(later.take(1000, 1999).code == Code::refused);
    copy = Fd();
    CHECK(later.take(1000, 1999));
}

TEST_CASE("a file of claims that cannot be made is an error, and no claim") {
    const scratch::Directory a;
    UidClaims claims;
    CHECK(claims.open(a.path(), "/proc/none/uids.lock").code == Code::not_found);
    CHECK(claims.open(a / "none", a / "uids.lock").code == Code::not_found);
    CHECK(claims.fd() < 0);
}

TEST_CASE("a file of claims that others can write is an error, and one that was removed or replaced has none") {
    const scratch::Directory a, run;
    const std::string folder = run / "dcs", path = folder + "/uids.lock";
    UidClaims claims, again;
    REQUIRE(claim(claims, a.path(), path, 1000, 1999));
    CHECK(claims.count());
    REQUIRE(::chmod(path.c_str(), 0622) == 0);
    CHECK(again.open(a.path(), path).code == Code::invalid);
    REQUIRE(::chmod(path.c_str(), 0600) == 0);
    REQUIRE(::chmod(folder.c_str(), 0777) == 0);
    CHECK(again.open(a.path(), path).code == Code::invalid);
    REQUIRE(::chmod(folder.c_str(), 0755) == 0);
    CHECK(claims.count());
    REQUIRE(::unlink(path.c_str()) == 0);
    CHECK_FALSE(claims.count());
    CHECK(again.open(a.path(), path));
    CHECK_FALSE(claims.count());
    CHECK(again.count());
}
