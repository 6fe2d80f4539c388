// What people write for the daemons: host table, policy, addresses, names, command lines.
#include "base/limits.h"
#include "daemon/log.h"
#include "daemon/options.h"
#include "fuzz.h"
#include "grainserver/files/grain_name.h"
#include "grainserver/shell/identity.h"
#include "net/socket_calls.h"
#include "scheduler/shell/host_table_file.h"
#include "scheduler/shell/policy_file.h"
#include "scheduler/shell/settings_text.h"
#include "scheduler/shell/suspect.h"
#include "wire/json.h"

namespace dcs::fuzz {
namespace {

enum What : std::uint8_t { table, policy, address, session, options, accounts, lease, escape, user_limits, last };

void read_table(std::string_view text) {
    const auto hosts = shell::parse_host_table(text, "hosts");
    if (!hosts) return expect(hosts.status().text.starts_with("hosts:"), "an error names its line");
    for (const core::HostConfig &host : *hosts) {
        expect(is_name(host.name), "hosts have names");
        expect(host.slots >= 0 && host.cores >= 0 && host.memory_mb >= 0 && host.host_class != 0,
               "figures are sensible");
        expect(host.interval.ns > 0 && host.interval <= host.alert && host.alert <= host.limit &&
                   host.limit <= host.extended,
               "times are in their order");
        for (const auto *list : {&host.check, &host.file_server, &host.gateway})
            for (const std::string &a : *list) expect(net::parse_address(a).has_value(), "addresses are ones");
    }
}

void read_options(std::string_view text) {
    bool flag = false;
    int number = 0;
    std::string word;
    Duration time{};
    std::vector<std::string> list, arguments;
    const CommandLine line{"program",
                           "For the test.",
                           {{"flag", &flag, "", "a"},
                            {"number", &number, "N", "b"},
                            {"word", &word, "WORD", "c", true},
                            {"time", &time, "S", "d"},
                            {"list", &list, "X", "e"}}};
    for (Choices input(text); !input.empty() && arguments.size() < 20;) arguments.emplace_back(input.piece());
    const ParsedOptions parsed = parse_options(line, arguments);
    expect(parsed.proceed || !parsed.out.empty() || !parsed.error.empty(), "who does not go on says why");
    expect(number >= 0 && time.ns >= 0, "figures are not negative");
}

void read_accounts(const std::string &text) {
    (void)server::parse_logins("--accounts", text, "none");
    std::uint32_t first = 0, end = 0;
    if (server::parse_uids(text, first, end)) expect(first <= end && first > 0, "a range of uids is one");
}

}  // namespace

void run(std::string_view bytes) {
    Choices input(bytes);
    const What what = static_cast<What>(input.byte() % last);
    const std::string text(input.rest());
    switch (what) {
    case table: return read_table(text);
    case policy:
        if (const auto rules = shell::parse_policy(text, "policy"))
            expect(rules->sessions_per_user >= 0 && rules->running_per_user >= 0 && rules->stored_mb_per_user >= 0 &&
                       rules->stored_share >= 0 && rules->stored_share <= 100,
                   "limits are not negative");
        return;
    case user_limits:
        if (const auto limits = shell::parse_limits(text, "limits"))
            expect(limits->connections > 0 && limits->connections <= limits::connections_per_user &&
                       limits->queued_bytes >= limits::user_frame_bytes,
                   "no user is locked out or without a limit");
        return;
    case address:
        if (const auto at = net::parse_tcp_address(text))
            expect(at->port == 0 || net::parse_address(text).has_value(), "a port may be said");
        return;
    case session:
        if (const auto key = shell::session_of(text))
            expect(shell::session_text(*key) == text, "a session has one name");
        return;
    case options: return read_options(text);
    case accounts: return read_accounts(text);
    case lease:
        if (const auto name = files::parse_directory_name(text))
            expect(files::directory_name(name->host, name->key, name->incarnation) == text, "a lease has one name");
        expect(files::encoded_name(text).find('/') == std::string::npos, "no name leaves its directory");
        return;
    default: {
        const std::string line = escape_text(text);
        expect(valid_utf8(line) && line.find_first_of("\n\r\x1b") == std::string::npos, "one harmless line");
        expect(line.size() <= 8 * 1024 + 16, "and not a long one");
    }
    }
}

std::vector<Seed> seeds() {
    const std::string option_words = piece_of("--flag") + piece_of("--number=3") + piece_of("--word") + piece_of("x") +
                                     piece_of("--time") + piece_of("2.5") + piece_of("--list=a");
    const std::vector<std::pair<What, std::string>> texts = {
        {table,
         "# hosts\nlocal1 class=0x1 binary=x86_64-linux-gnu slots=1 interval=10 alert=30 limit=60 extended=90.5 "
         "users=ann,bob\n"
         "h2 cores=8 memory=16384 accounts=ann check=h1,h1:22 fileserver=nfs1:2049 gateway=[fe80::1]\n"},
        {policy,
         "fair_share on\nsessions_per_user 20\ngrains_per_user 100000 # many\nrunning_per_user 64\nprobation 3\nuser "
         "ann\nstored_mb_per_user 5000\nstored_share 40\n"},
        {user_limits, "connections 200\nqueued_requests 1000 # few\nqueued_bytes 67108864\nbytes_per_turn 1\n"},
        {address, "h1:22"},
        {address, "[fe80::1%eth0]:22"},
        {session, "ann/3"},
        {options, option_words},
        {accounts, "ann,bob"},
        {accounts, "2000000000-2000065535"},
        {lease, "local1,ann,3,17,2"},
        {lease, "a%2Cb,c%20d,0,1,1"},
        {escape, "line\n\x1b[2J \xe2\x80\xae tail\\ \xff"}};
    std::vector<Seed> list;
    for (const auto &[what, text] : texts)
        list.push_back(
            {"what-" + std::to_string(what) + "-" + std::to_string(list.size()), static_cast<char>(what) + text});
    return list;
}

}  // namespace dcs::fuzz
