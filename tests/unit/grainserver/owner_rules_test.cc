// What the owner of a host allows, as the launcher and the warden hold the grain server to it.
#include "support/about.h"
#include "support/catch.h"
#include <sys/stat.h>
#include <unistd.h>

#include "base/confinement.h"
#include "grainserver/warden/warden.h"
#include "launcher_bench.h"

using namespace dcs;
using files::Account;
using files::LaunchRecord;
using files::OwnerRules;

namespace {
// ann 1001 (groups 1001 and 50), daemon 1, nobody 65534.
struct SomeLogins final : files::Logins {
    std::optional<std::string> name_of(std::uint32_t uid) const override {
        if (uid == 1001) return "ann";
        if (uid == 1002) return "bob";
        if (uid == 0) return "root";
        return {};
    }
    Result<Account> login(const OwnerRules &rules, const std::string &name) const override {
        if (name != "ann" || rules.accounts.empty()) return fail(Code::refused, "not listed");
        return account(1001, 1001, {1001, 50});
    }
    static Account account(std::uint32_t uid, std::uint32_t gid, std::vector<std::uint32_t> groups) {
        return Account{true, uid, gid, std::move(groups), false};
    }
};
Account made_up_account(std::uint32_t uid) { return Account{true, uid, uid, {}, true}; }

OwnerRules strict() {
    OwnerRules rules;
    rules.users = true;
    rules.accounts = {"ann"};
    rules.first = 2'000'000'000;
    rules.last = 2'000'000'009;
    rules.limits = {100, 10, 0, 50, 20};
    rules.rungs = rung_filter | rung_scope;
    rules.writable = {"/scratch"};
    rules.homes = "/var/lib/dcs/h1/home";
    return rules;
}
LaunchRecord good() {
    LaunchRecord record;
    record.account = made_up_account(2'000'000'003);
    record.limits = {100, 5, 7, 50, 20};
    record.rungs = rung_filter | rung_scope | rung_files;
    record.writable = {"/scratch", "/var/lib/dcs/h1/home/bob"};
    return record;
}
const SomeLogins logins;
bool allowed(const LaunchRecord &record) {
    const Status s = permits(strict(), record, logins);
    CHECK((s || s.code == Code::refused));
    return static_cast<bool>(s);
}
bool allowed(const Account &account) {
    LaunchRecord record = good();
    record.account = account;
    return allowed(record);
}
}  // namespace

TEST_CASE("a grain in a container has an account and limits like any other") {
    LaunchRecord record = good();
    record.files.push_back({wire::FileRole::image, "", std::string(32, 'i'), 5, ""});
    CHECK(allowed(record));
    record.account = {};
    CHECK_FALSE(allowed(record));
}

TEST_CASE("the owner's rules on disk: what is written comes back, and nothing else") {
    OwnerRules rules = strict();
    rules.ordinary_priority = true;
    CHECK(*files::unpack_rules(pack(rules)) == rules);
    rules.ordinary_priority = false;
    const std::string bytes = pack(rules);
    REQUIRE(files::unpack_rules(bytes));
    CHECK(*files::unpack_rules(bytes) == rules);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        std::string bad = bytes;
        bad[i] = static_cast<char>(bad[i] ^ 4);
        CHECK_FALSE(files::unpack_rules(bad));
        CHECK_FALSE(files::unpack_rules(bytes.substr(0, i)));
    }
}

TEST_CASE("accounts that the owner allows") {
    CHECK(allowed(made_up_account(2'000'000'000)));
    CHECK(allowed(made_up_account(2'000'000'009)));
    CHECK(allowed(SomeLogins::account(1001, 1001, {1001, 50})));
    CHECK(allowed(SomeLogins::account(1001, 1001, {})));
    OwnerRules self;
    CHECK(permits(self, Account{}, logins));
}

TEST_CASE("accounts that he does not") {
    CHECK_FALSE(allowed(Account{}));  // the server's own, root's
    CHECK_FALSE(allowed(made_up_account(1'999'999'999)));
    CHECK_FALSE(allowed(made_up_account(2'000'000'010)));
    CHECK_FALSE(allowed(made_up_account(0)));
    CHECK_FALSE(allowed(Account{true, 2'000'000'003, 0, {}, true}));
    CHECK_FALSE(allowed(Account{true, 2'000'000'003, 2'000'000'003, {0}, true}));
    CHECK_FALSE(allowed(Account{true, 0, 0, {}, false}));
    CHECK_FALSE(allowed(SomeLogins::account(1002, 1002, {})));  // bob is not listed
    CHECK_FALSE(allowed(SomeLogins::account(1001, 0, {})));
    CHECK_FALSE(allowed(SomeLogins::account(1001, 1001, {1001, 27})));
    CHECK_FALSE(allowed(SomeLogins::account(2'000'000'003, 2'000'000'003, {})));  // no user's login
    OwnerRules rules = strict();
    rules.first = 1000;
    rules.last = 2000;
    CHECK(permits(rules, made_up_account(1002), logins).text == about("anonymous uid 1002 become login bob another"));
    CHECK(permits(rules, made_up_account(1003), logins));
    OwnerRules self;
    CHECK_FALSE(permits(self, made_up_account(2'000'000'003), logins));
}

TEST_CASE("limits, confinement and directories beyond the owner's") {
    REQUIRE(allowed(good()));
    for (std::int64_t files::Limits::*which :
         {&files::Limits::memory_mb, &files::Limits::processes, &files::Limits::disk_mb, &files::Limits::file_mb})
        for (const std::int64_t wrong : {std::int64_t{0}, std::int64_t{-1}, strict().limits.*which + 1}) {
            LaunchRecord record = good();
            record.limits.*which = wrong;
            CHECK_FALSE(allowed(record));
        }
    LaunchRecord record = good();
    record.limits.cpu_s = 0;  // he has set none
    CHECK(allowed(record));
    record.rungs = rung_filter | rung_files;
    CHECK_FALSE(allowed(record));
    for (const char *path : {"/", "/scratch/", "/var/lib/dcs/h1/home", "/var/lib/dcs/h1/home/",
                             "/var/lib/dcs/h1/home/..", "/var/lib/dcs/h1/home/a/b", "/var/lib/dcs/h1/homes", ""}) {
        record = good();
        record.writable.push_back(path);
        INFO(path);
        CHECK_FALSE(allowed(record));
    }
}

TEST_CASE("requests to the warden have one form") {
    using warden::Ask;
    using warden::Request;
    Request program;
    program.ask = Ask::program;
    program.text = "/bin/true";
    Request user = program;
    user.change = user.made_up = true;
    user.uid = user.gid = 5;
    Request name;
    name.ask = Ask::name_of_uid;
    name.uid = 7;
    Request login;
    login.ask = Ask::login;
    login.text = "ann";
    for (const Request &request : {Request{}, program, user, name, login}) {
        const std::string packet = to_packet(request);
        REQUIRE(warden::read_packet(packet));
        CHECK(*warden::read_packet(packet) == request);
        CHECK_FALSE(warden::read_packet(packet + "x"));
        CHECK_FALSE(warden::read_packet(packet.substr(1)));
    }
    const auto wrong = [](Request request, auto change) {
        change(request);
        return !warden::read_packet(to_packet(request));
    };
    CHECK(wrong(program, [](Request &r) { r.text = "bin/true"; }));
    CHECK(wrong(program, [](Request &r) { r.text.clear(); }));
    CHECK(wrong(program, [](Request &r) { r.text = std::string("/bin\0x", 6); }));
    CHECK(wrong(program, [](Request &r) { r.text = "/" + std::string(5000, 'a'); }));
    CHECK(wrong(program, [](Request &r) { r.uid = 1; }));
    CHECK(wrong(login, [](Request &r) { r.text.clear(); }));
    CHECK(wrong(login, [](Request &r) { r.uid = 1; }));
    CHECK(wrong(name, [](Request &r) { r.text = "x"; }));
    CHECK(wrong({}, [](Request &r) { r.change = true; }));
    CHECK(wrong({}, [](Request &r) { r.ask = static_cast<Ask>(0); }));
    CHECK(wrong({}, [](Request &r) { r.ask = static_cast<Ask>(5); }));
}

TEST_CASE("the warden opens programs for accounts that are allowed, and nothing else") {
    bench::ScratchDir d;
    OwnerRules rules = strict();
    rules.users = ::geteuid() == 0;
    const Account account = rules.users ? made_up_account(2'000'000'003) : Account{};
    warden::Warden warden(rules, {"/nowhere/dcs_launcher", d.path, "h1", "", false}, logins);
    const auto open = [&](const std::string &path, const Account &who) {
        warden::Request request;
        request.ask = warden::Ask::program;
        request.text = path;
        request.change = who.change;
        request.made_up = who.made_up;
        request.uid = who.uid;
        request.gid = who.gid;
        int fd = -1;
        const Code code = warden.answer(to_packet(request), &fd).status.code;
        CHECK((fd >= 0) == (code == Code::ok));
        if (fd >= 0) ::close(fd);
        return code;
    };
    ::chmod(d.path.c_str(), 0711);
    bench::put_file(d.path + "/program", "#!/bin/sh\n");
    bench::put_file(d.path + "/secret", "#!/bin/sh\n");
    bench::put_file(d.path + "/text", "x");
    ::chmod((d.path + "/program").c_str(), 0755);
    ::chmod((d.path + "/secret").c_str(), 0700);
    ::chmod((d.path + "/text").c_str(), 0644);
    CHECK(open(d.path + "/program", account) == Code::ok);
    CHECK(open(d.path + "/text", account) == Code::refused);
    CHECK(open(d.path + "/nothing", account) == Code::not_found);
    CHECK(open(d.path, account) == Code::io_error);
    CHECK(open("/dev/null", account) == Code::io_error);
    CHECK(open(d.path + "/program", rules.users ? Account{} : made_up_account(2'000'000'003)) == Code::refused);
    if (rules.users) {
        CHECK(open(d.path + "/secret", account) == Code::io_error);
        CHECK(open(d.path + "/program", made_up_account(0)) == Code::refused);
    }
    int fd = -1;
    CHECK(warden.answer("", &fd).status.text == about("warden not request"));
    CHECK(warden.answer(to_packet(warden::Request{}), &fd).status.code == Code::not_found);  // no such launcher
}

TEST_CASE("the launcher starts nothing beyond the rules, whatever the record says") {
    bench::Place p;
    const std::string grain = p.shell("exit 0");
    OwnerRules rules = bench::Place::rules_for({});
    rules.rungs = rung_no_network;
    bench::put_file(p.dir.path + "/rules", pack(rules), 0600);
    auto answer = p.start(grain);
    CHECK(answer.verb == files::Verb::failed);
    CHECK(answer.number == static_cast<int>(Code::io_error));
    CHECK(answer.text == about("asks less confinement " + to_words(rung_no_network)));
    CHECK(p.ask({files::Verb::prove, grain}).verb == files::Verb::failed);
    ::unlink((p.dir.path + "/rules").c_str());
    answer = p.start(grain);
    CHECK(answer.verb == files::Verb::failed);
    CHECK(answer.text == about("rules host's cannot"));
    bench::put_file(p.dir.path + "/rules", "rubbish", 0600);
    CHECK(p.start(grain).verb == files::Verb::failed);
    rules.rungs = 0;
    rules.users = ::geteuid() == 0;
    if (rules.users) {
        bench::put_file(p.dir.path + "/rules", pack(rules), 0600);
        CHECK(p.start(grain).text == about("account server itself"));
    }
    rules.users = false;
    bench::put_file(p.dir.path + "/rules", pack(rules), 0600);
    CHECK(p.start(grain).verb == files::Verb::started);
    CHECK(p.exit_of(grain).status == 0);
}
