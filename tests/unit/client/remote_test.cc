// What dcs_begin leaves when the scheduler is on another host.
#include "client/remote.h"

#include <cstdlib>

#include <pwd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "client/pool_path.h"
#include "client/pool.h"
#include "dcs.h"
#include "pki/authority.h"
#include "support/about.h"
#include "support/catch.h"

using namespace dcs;
using namespace dcs::client;

namespace {

struct Left {
    pki::Authority authority = pki::make_authority(wall_clock_s());
    std::string key = pki::new_key();
    std::string certificate(const std::string &of, std::int64_t age_s = 0) const {
        return *pki::issue(authority, *pki::public_key_of(of), pki::Role::program, "ann/desk1/find",
                           wall_clock_s() - age_s, pki::program_life_s);
    }
    std::string text(const std::string &der) const {
        return "DCS-CREDENTIALS 1\nscheduler pool.example:7001\ntoken " + std::string(64, 'a') + "\n" +
               pki::key_to_pem(key) + pki::certificate_to_pem(der) + pki::certificate_to_pem(authority.certificate.der);
    }
};

}  // namespace

TEST_CASE("credentials of another host are read, or it is said what is wrong with them") {
    const Left left;
    const std::string good = left.text(left.certificate(left.key));
    const auto read = read_remote_credentials(good);
    REQUIRE(read);
    CHECK(read->address == "pool.example:7001");
    CHECK(read->token == std::string(32, '\xaa'));
    CHECK(read->key == left.key);
    CHECK(read->certificate.name == "ann/desk1/find");
    CHECK(read->authority == left.authority.certificate.der);
    for (std::size_t n = 0; n + 2 < good.size(); n += 13) CHECK_FALSE(read_remote_credentials(good.substr(0, n)));
    const auto wrong = [&](const std::string &what, const std::string &by) {
        std::string text = good;
        text.replace(text.find(what), what.size(), by);
        const auto r = read_remote_credentials(text);
        return !r && r.status().code == Code::invalid;
    };
    CHECK(wrong("CREDENTIALS 1", "CREDENTIALS 2"));
    CHECK(wrong("scheduler ", "schedule "));
    CHECK(wrong("pool.example:7001", "pool.example"));
    CHECK(read_remote_credentials("DCS-CREDENTIALS 1\nscheduler pool.example\n" + good.substr(good.find("token ")))
              .status()
              .text.starts_with("the credentials of dcs_begin: the scheduler: "));
    CHECK(wrong("token aa", "token a"));
    CHECK(wrong("token aa", "token aA"));
    CHECK(wrong("BEGIN PRIVATE KEY", "BEGIN SECRET KEY"));
    CHECK_FALSE(read_remote_credentials(std::string(32, 'T')));
}

// Of the default pool, or as another user: a child does what follows. Returns the line of the first check that failed.
#define EXPECT(what) \
    if (!(what)) return __LINE__

static int renews() {
    const Left left;
    Pool pool(PoolOptions{});
    EXPECT(!take_renewal(pool));
    EXPECT(renewal_due(pool, boot_clock()) == Instant::never());
    const auto young = read_remote_credentials(left.text(left.certificate(left.key)));
    EXPECT(use_remote(pool, *young));
    const RemotePtr first = pool.remote();
    EXPECT(first && !take_renewal(pool));
    EXPECT(renewal_due(pool, boot_clock()) > boot_clock() + seconds(3600));
    EXPECT(renewal_due(pool, boot_clock()) < boot_clock() + seconds(24 * 3600));
    // Nearly over: with the day before it was made it was good for two.
    const auto old = read_remote_credentials(left.text(left.certificate(left.key, 23 * 3600)));
    EXPECT(use_remote(pool, *old));
    EXPECT(renewal_due(pool, boot_clock()) <= boot_clock() + seconds(2));
    EXPECT(take_renewal(pool));
    EXPECT(!take_renewal(pool));  // a party is about it
    EXPECT(renewal_due(pool, boot_clock()) > boot_clock() + seconds(30));
    EXPECT(use_renewed(pool, left.certificate(pki::new_key())).code == Code::protocol);
    EXPECT(use_renewed(pool, "nonsense").code == Code::protocol);
    const auto others =
        pki::issue(left.authority, *pki::public_key_of(left.key), pki::Role::program, "ben/desk1/find", wall_clock_s());
    EXPECT(use_renewed(pool, *others).code == Code::protocol);
    EXPECT(pool.remote()->certificate.der == old->certificate.der);
    const std::string fresh = left.certificate(left.key);
    EXPECT(use_renewed(pool, fresh));
    EXPECT(pool.remote()->certificate.der == fresh && pool.remote() != first);
    EXPECT(first->certificate.der == young->certificate.der);  // a party that uses it still has it
    EXPECT(!take_renewal(pool));
    return 0;
}

static int is_forgotten() {
    const Left left;
    Pool &pool = default_pool();
    EXPECT(use_remote(pool, *read_remote_credentials(left.text(left.certificate(left.key)))));
    pool.set_credentials({});  // other tests have left theirs
    const std::string token(sizeof(Token), 'T');
    pool.set_inherited_token(token);
    pool.forget_token(token);  // as when the scheduler has said that it does not know it
    EXPECT(d_get_auth("find") == D_E_NO_AUTH);
    EXPECT(d_errortext() == about("scheduler knows program dcs_begin again"));
    return 0;
}

static int has_no_home() {
    uid_t nobody = 60000;
    while (::getpwuid(nobody)) ++nobody;
    for (const char *name : {"DCS_DIR", "XDG_STATE_HOME", "HOME"}) ::unsetenv(name);
    EXPECT(::setresuid(nobody, nobody, nobody) == 0);
    EXPECT(pool_directory().status().text == about("DCS_DIR HOME set DCS_DIR directory"));
    return 0;
}

static void in_a_child(int (*checks)()) {
    int report[2], line = -1;
    REQUIRE(::pipe(report) == 0);
    const pid_t child = ::fork();
    if (child == 0) {
        line = checks();
        ::_exit(::write(report[1], &line, sizeof line) == sizeof line ? 0 : 1);
    }
    ::close(report[1]);
    CHECK(::read(report[0], &line, sizeof line) == sizeof line);
    ::close(report[0]);
    CHECK(::waitpid(child, nullptr, 0) == child);
    CHECK(line == 0);
}

TEST_CASE("a certificate is renewed in time, by one thread, for the same key and name") { in_a_child(renews); }

TEST_CASE("whom the scheduler does not know any more is told to begin again") { in_a_child(is_forgotten); }

TEST_CASE("who has neither a home nor a name must say where the pool is") {
    if (::getuid() != 0) {
        WARN("SKIPPED: only root can become a uid without a name");
        return;
    }
    in_a_child(has_no_home);
}
