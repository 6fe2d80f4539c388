// Hosts out of an Ansible inventory or a list of ssh logins, and the host table with them.
#include "commands/dcs/host/inventory.h"

#include "support/about.h"
#include "support/catch.h"

using namespace dcs;
using namespace dcs::commands;

namespace {

// "name key=value ... | name ..." or the error.
std::string text_of(const Result<std::vector<ListedHost>> &hosts) {
    if (!hosts) return hosts.status().text;
    std::string text;
    for (const ListedHost &host : *hosts) {
        text += (text.empty() ? "" : " | ") + host.name;
        for (const auto &[key, value] : host.settings) text += " " + key + "=" + value;
    }
    return text;
}

std::string ansible(const std::string &text, const std::string &group = "") {
    return text_of(hosts_of_inventory(text, "inv", group));
}
std::string logins(const std::string &text) { return text_of(hosts_of_logins(text, "logins", "here")); }

std::string merged(const std::string &table, const std::vector<ListedHost> &hosts) {
    std::vector<TableChange> changes;
    return merged_table(table, hosts, changes);
}

}  // namespace

TEST_CASE("an inventory in INI") {
    const char *text = R"(# all of them
mail ansible_host=10.0.0.1   ; a comment

[compute]
web[01:03] dcs_slots=8
"db-a" 
[compute:vars]
dcs_class = 0x4
ansible_user=root
[rack:children]
compute
[rack:vars]
dcs_class=0x1
dcs_memory=1024
[all:vars]
dcs_slots=1
)";
    CHECK(ansible(text) ==
          "mail slots=1 | web01 class=0x4 memory=1024 slots=8 | web02 class=0x4 memory=1024 slots=8 | "
          "web03 class=0x4 memory=1024 slots=8 | db-a class=0x4 memory=1024 slots=1");
    CHECK(ansible("a\nb dcs_users=\"ann,bob\"\n[g]\nb\n", "g") == "b users=ann,bob");
    CHECK(ansible("a[b:d]\n") == "ab | ac | ad");
    CHECK(ansible("a[0:4:2]-[1:2]\n") == "a0-1 | a0-2 | a2-1 | a2-2 | a4-1 | a4-2");
    CHECK(ansible("a[:2]\n") == "a0 | a1 | a2");
    CHECK(ansible("") == "");
    CHECK(ansible("a dcs_slots=1\n[x]\na dcs_slots=2\n") == "a slots=2");
}

TEST_CASE("what is wrong with an inventory is named with its line") {
    CHECK(ansible("a\n[g\n") == about("inv:2 heading `]`"));
    CHECK(ansible("[]\n") == about("inv:1 heading no"));
    CHECK(ansible("[g:hosts]\n") == "inv:1: [GROUP:hosts] is unknown");
    CHECK(ansible("a x\n") == about("inv:1 `x` name=value"));
    CHECK(ansible("a 'x\n") == "inv:1: a quote is not closed");
    CHECK(ansible("[g:children]\na b\n") == about("inv:2 group line"));
    for (const std::string range : {"a[1:", "a[1]", "a[3:1]", "a[x:2]", "a[1:2:0]", "a[0x1:0x3]"})
        CHECK(ansible(range + "\n") == "inv:1: `" + range + "` is not a range of hosts such as web[01:10]");
    CHECK(ansible("a[1:1000000]\n") == about("inv:1 `a[1:1000000]` web[01:10]"));
    CHECK(ansible("a[1:60000]\nb[1:60000]\n") == about("inv:2 100000 hosts"));
    CHECK(ansible("[a:children]\nb\n[b:children]\na\n") == about("inv group children"));
    CHECK(ansible("a\n", "g") == about("inv no group g"));
    CHECK(ansible("---\nall:\n") == about("YAML `ansible-inventory --list`"));
}

TEST_CASE("an inventory in JSON") {
    CHECK(ansible(R"({"_meta": {"hostvars": {"a": {"dcs_slots": 4, "x": [1]}, "b": {"dcs_class": "gpu"}}},
                      "all": {"children": ["g", "ungrouped"], "vars": {"dcs_memory": 5}},
                      "g": {"hosts": ["a"], "vars": {"dcs_slots": 2, "dcs_cores": 8}},
                      "ungrouped": {"hosts": ["b"]}})") == "a cores=8 memory=5 slots=4 | b class=gpu memory=5");
    CHECK(ansible("{\"a\":").rfind("inv: it begins like JSON, but is not valid: ", 0) == 0);
    CHECK(ansible("{}") == "");
    CHECK(ansible("{\"g\": 3, \"_meta\": 1}") == "");
}

TEST_CASE("no name or value of an inventory brings another setting or line") {
    const auto json = [](const std::string &name, const std::string &value) {
        return ansible(R"({"_meta": {"hostvars": {")" + name + R"(": {"dcs_slots": ")" + value +
                       R"("}}}, "all": {"hosts": [")" + name + R"("]}})");
    };
    CHECK(json("h1", "4") == "h1 slots=4");
    CHECK(json("h1", "4 accounts=ann") == about("dcs_slots `4 accounts=ann`"));
    for (const char *value : {"4\\nh2", "4#", "4\\t", "4\\u007f"})
        CHECK(json("h1", value).find("dcs_slots is not one word") != std::string::npos);
    for (const char *name : {"h1 accounts=ann", "h1\\nh2", "h1#", "slots=4", "-h1", ""})
        CHECK(json(name, "4").find("is not a host name") != std::string::npos);
    const std::string keyed = R"({"_meta": {"hostvars": {"h1": {"dcs_accounts=ann,slots": 4}}}})";
    CHECK(ansible(keyed) == about("h1 dcs_accounts=ann,slots not setting"));
    CHECK(ansible("slots=4 dcs_slots=4\n") == "inv:1: `slots=4` is not a host name");
    CHECK(ansible("h1 dcs_slots=\"4 accounts=ann\"\n").find("dcs_slots is not one word") != std::string::npos);
}

TEST_CASE("groups with many ways from one to another are looked at once each") {
    constexpr int levels = 64, long_way = 100'000;
    std::string text;
    for (int i = 0; i < levels; ++i) {
        const std::string a = "a" + std::to_string(i), b = "b" + std::to_string(i);
        const std::string below = i + 1 < levels ? "a" + std::to_string(i + 1) + "\nb" + std::to_string(i + 1) : "last";
        text += "[" + a + ":children]\n" + below + "\n[" + b + ":children]\n" + below + "\n";
        text += "[" + a + ":vars]\ndcs_slots=" + std::to_string(i + 1) + "\n";
    }
    CHECK(ansible(text + "[last]\nh\n") == "h slots=64");
    CHECK(ansible(text + "[last]\nh\n[last:children]\na5\n") == about("inv group own children"));
    std::string chain;
    for (int i = 0; i < long_way; ++i)
        chain += "[g" + std::to_string(i) + ":children]\ng" + std::to_string((i + 1) % long_way) + "\n";
    CHECK(ansible(chain) == about("inv group own children"));
}

TEST_CASE("a list of ssh logins") {
    CHECK(logins("# mine\n8/ann@h1\nh2\n:\n16/:,1/h3 # big ones\n") == "logins:5: host here occurs twice");
    CHECK(logins("8/ann@h1\n\n h2 \n4/:\n@gpu+big/2/ssh -p 22 root@h3.example\nh4:2222,3/h5\n1//usr/bin/ssh h6\n") ==
          "h1 slots=8 | h2 | here slots=4 | h3.example slots=2 | h4 | h5 slots=3 | h6 slots=1");
    CHECK(logins("@gpu\n") == about("logins:1 `@gpu` `/`"));
    CHECK(logins("0/h1\n") == about("logins:1 `0/h1` 65536"));
    CHECK(logins("99999999999999999999/h1\n") == about("logins:1 `99999999999999999999/h1` 65536"));
    for (const char *login : {"..", "ann@", "2/", "[::1]", "8/slots=4"})
        CHECK(logins(std::string("\n") + login + "\n") ==
              "logins:2: `" + std::string(login) + "` is not a valid host name of the host table");
}

TEST_CASE("hosts come into the table, and no other line is touched") {
    const std::string others = "\nh2\tslots=2 users=ann\nh1 role=client users=eve\nh3";
    const std::string table = "# ours\nh1 class=0x1 slots=4   # big\n" + others;
    std::vector<TableChange> changes;
    CHECK(
        merged_table(
            table,
            {{"h1", {{"slots", "8"}, {"memory", "5"}}, ""}, {"h2", {{"slots", "2"}}, ""}, {"h9", {{"slots", "1"}}, ""}},
            changes) == "# ours\nh1 class=0x1 slots=8 memory=5   # big\n" + others + "\nh9 slots=1\n");
    REQUIRE(changes.size() == 3);
    CHECK(changes[0].what == TableChange::What::changed);
    CHECK(changes[0].before == "h1 class=0x1 slots=4   # big");
    CHECK(changes[1].what == TableChange::What::same);
    CHECK(changes[2].what == TableChange::What::fresh);
    CHECK(changes[2].after == "h9 slots=1");
    CHECK(merged("h1 role=client users=ann\n", {{"h1", {}, ""}}) == "h1 role=client users=ann\nh1\n");
    CHECK(merged("h1 xslots=3\n", {{"h1", {{"slots", "1"}}, ""}}) == "h1 xslots=3 slots=1\n");
    CHECK(merged("", {}) == "");
}
