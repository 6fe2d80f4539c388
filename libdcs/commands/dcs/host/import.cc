// dcs host import: the host table from what people have of their hosts already.
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>

#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/json.h"
#include "commands/dcs/frame/call.h"
#include "commands/dcs/frame/pool_directory.h"
#include "commands/dcs/frame/table.h"
#include "commands/dcs/pool/start_daemon.h"
#include "inventory.h"

namespace dcs::commands {
namespace {

constexpr std::size_t most_bytes = 64u << 20;

Result<std::string> text_of(const std::string &file) {
    if (file != "-") return read_document(file, most_bytes);
    std::string text;
    if (!read_to_end(STDIN_FILENO, most_bytes, text)) return fail_errno(Code::io_error, "standard input", errno);
    return text;
}

// The table of --table, of the running scheduler, or at a scheduler's default path.
std::string table_of(const Call &call) {
    if (const auto named = call.arguments.value("table")) return absolute_path(*named);
    const std::string directory = Pool(call.directory).scheduler().directory;
    if (const auto record = daemon_record(directory))
        for (const Setting &s : record->settings)
            if (s.name == "hosts" && !s.value.empty()) return s.value;
    return directory + "/hosts";
}

Result<std::vector<ListedHost>> listed_hosts(const Call &call) {
    const auto ansible = call.arguments.value("ansible"), logins = call.arguments.value("sshlogin");
    const std::string file = ansible ? *ansible : *logins;
    const auto text = text_of(file);
    if (!text) return text.status();
    const std::string name = file == "-" ? "standard input" : file;
    if (ansible) return hosts_of_inventory(*text, name, call.arguments.value("group").value_or(""));
    char own[HOST_NAME_MAX + 1] = "";
    ::gethostname(own, sizeof own - 1);
    return hosts_of_logins(*text, name, own);
}

// What the scheduler's program says of the table; its errors name the line.
Status check_table(const std::string &path, const std::string &text) {
    const std::string trial = path + ".import." + std::to_string(::getpid());
    if (Status s = write_file(trial, text); !s) return s;
    const std::string folder = path.substr(0, path.rfind('/') + 1);
    const auto ran = run_to_end("dcs_scheduler", {"--dir", folder, "--hosts", trial, "--check-config"});
    ::unlink(trial.c_str());
    if (!ran) return ran.status();
    const std::size_t at = ran->exit_code == 0 ? ran->output.npos : ran->output.find(trial + ":");
    if (at == ran->output.npos) return Status::ok();
    const std::string rest = ran->output.substr(at + trial.size() + 1);
    return fail(Code::invalid, "line " + rest.substr(0, rest.find('\n')));
}

// As it was, but for what it says.
Status replace_table(const std::string &path, const std::string &text) {
    struct stat st = {};
    const bool was = ::stat(path.c_str(), &st) == 0;
    if (Status s = write_file(path, text); !s || !was) return s;
    const bool kept = ::chmod(path.c_str(), st.st_mode & 07777) == 0 &&
                      (::chown(path.c_str(), st.st_uid, st.st_gid) == 0 || ::geteuid() != 0);
    return kept ? Status::ok() : fail_errno(Code::io_error, "the mode of " + path, errno);
}

const char *word_of(TableChange::What what) {
    return what == TableChange::What::same ? "same" : what == TableChange::What::fresh ? "new" : "changed";
}

void print(const Call &call, const std::string &path, const std::vector<TableChange> &changes, bool written) {
    std::vector<std::string> rows;
    std::int64_t fresh = 0, changed = 0;
    for (const TableChange &c : changes) {
        rows.push_back(JsonObject()
                           .add("host", c.name)
                           .add("change", word_of(c.what))
                           .add("before", c.before)
                           .add("after", c.after)
                           .text());
        fresh += c.what == TableChange::What::fresh;
        changed += c.what == TableChange::What::changed;
        if (c.what == TableChange::What::same || call.format == Format::json) continue;
        if (call.format == Format::name) std::printf("%s\n", printable(c.name).c_str());
        if (call.format != Format::table) continue;
        if (!c.before.empty()) std::printf("- %s\n", printable(c.before).c_str());
        std::printf("+ %s\n", printable(c.after).c_str());
    }
    if (call.format == Format::json)
        std::printf("%s\n", JsonObject("dcs.host.import/1")
                                .add("table", path)
                                .add("written", written)
                                .add_raw("hosts", json_array(rows))
                                .text()
                                .c_str());
    if (call.format != Format::table) return;
    std::printf("%s: %s new, %s changed, %lld as they are%s\n", printable(path).c_str(), counted(fresh, "host").c_str(),
                std::to_string(changed).c_str(), static_cast<long long>(changes.size()) - fresh - changed,
                written ? "; run `dcs reload` to apply it" : "; nothing was written");
}

int import_hosts(const Call &call) {
    const bool ansible = call.arguments.has("ansible");
    if (ansible == call.arguments.has("sshlogin"))
        return call.fail(usage_failure("dcs host import: no source is given", "--ansible FILE, or --sshlogin FILE"));
    if (!ansible && call.arguments.has("group"))
        return call.fail(usage_failure("dcs host import: --group needs --ansible"));
    const Pool pool(call.directory);
    if (!call.arguments.has("table") && pool.maker() == Pool::Maker::dcs_up)
        return call.fail({exits::refused, "refused",
                          pool.directory() + " holds a pool of `dcs up`, which writes its host table",
                          "--table FILE names another host table"});
    const auto hosts = listed_hosts(call);
    if (!hosts) return call.fail(failure_of("no hosts were read", hosts.status()));
    const std::string named = table_of(call);
    char *real = ::realpath(named.c_str(), nullptr);  // the file itself, not a link to it
    const std::string path = real != nullptr ? real : named;
    std::free(real);
    const auto table = read_file(path, most_bytes);
    if (!table && table.status().code != Code::not_found)
        return call.fail(failure_of("the host table", table.status()));
    std::vector<TableChange> changes;
    const std::string merged = merged_table(table ? *table : "", *hosts, changes);
    const bool differs = !table || merged != *table;
    if (Status s = check_table(path, merged); !s)
        return call.fail(failure_of("the new host table has errors, so " + path + " was not changed", s));
    const bool write = differs && !call.arguments.has("dry-run");
    if (write)
        if (Status s = replace_table(path, merged); !s) return call.fail(failure_of("the host table", s));
    print(call, path, changes, write);
    return exits::ok;
}

}  // namespace

extern const Verb host_import_verb = {
    .noun = "host",
    .name = "import",
    .summary = "add hosts of an inventory to the host table",
    .about = R"(Adds hosts to the host table from an Ansible inventory or a GNU parallel list of ssh logins. Shows
each line that is new or changes. A host of the table keeps settings that the inventory does not contain; other hosts
do not change.

Examples:
  dcs host import --ansible /etc/ansible/hosts --group compute --dry-run
  ansible-inventory --list | dcs host import --ansible -
  dcs host import --sshlogin ~/.parallel/sshloginfile
)",
    .options = {{"ansible", 0, "FILE", some_text,
                 "an inventory: INI, or the JSON of `ansible-inventory --list`; - is standard input"},
                {"sshlogin", 0, "FILE", some_text, "lines such as 8/user@host; - is standard input"},
                {"group", 0, "NAME", some_text, "only hosts of this group of the inventory"},
                {"table", 0, "FILE", some_text, "the host table (default: that of the pool's scheduler)"},
                {"dry-run", 0, nullptr, no_value, "show what would change, and write nothing"}},
    .notes = R"(In an inventory, variables dcs_KEY of hosts and groups are settings of the host table: dcs_slots=8,
dcs_class=0x4. The name of a host is its name in the inventory, and what its grain server is called (--name). Of a login
the number before the slash becomes the slots; `:` is this host. The table is checked before it is written.
)",
    .run = import_hosts};

}  // namespace dcs::commands
