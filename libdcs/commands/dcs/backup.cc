// dcs backup: what the passive backup has. Asked itself, because it matters most while the scheduler is away.
#include <cstdio>
#include <unistd.h>

#include "base/clock.h"
#include "call.h"
#include "json.h"
#include "net/loop.h"
#include "pool.h"
#include "table.h"

namespace dcs::commands {
namespace {

constexpr int answer_patience_s = 10;

Result<wire::BackupStatus> ask(const std::string &socket) {
    const auto loop = net::Loop::create();
    if (!loop) return fail(Code::limit, "no descriptors left: raise ulimit -n");
    net::Limits limits;
    limits.max_payload = limits::hello_frame_bytes;
    limits.hello = seconds(answer_patience_s);
    const ConnId conn = loop->connect_unix(socket, limits);
    const Instant deadline = boot_clock() + seconds(answer_patience_s);
    while (boot_clock() < deadline)
        for (const net::Arrival &arrival : loop->wait(deadline, 1)) {
            if (arrival.what == net::What::opened) loop->send(conn, wire::encode(wire::AskBackup{}, 1));
            if (arrival.what == net::What::closed) return fail(Code::unreachable, arrival.why);
            if (arrival.what != net::What::frame) continue;
            auto message = wire::decode_payload(arrival.header, arrival.payload);
            if (!message) return message.status();
            if (const auto *status = std::get_if<wire::BackupStatus>(&*message)) return *status;
            return fail(Code::protocol, "it answered what was not asked");
        }
    return fail(Code::unreachable, "it does not answer");
}

void print_table(const Daemon &daemon, const wire::BackupStatus &s) {
    const auto number = [](std::uint64_t n) { return std::to_string(n); };
    std::printf("backup     pid %d, up %s\n", daemon.pid, seconds_text(s.up_s).c_str());
    std::printf("scheduler  %s\n", s.scheduler ? "connected" : "not connected");
    std::printf("servers    %d connected\n", s.servers);
    std::printf("holds      %s of %s, %s of %s\n", counted(static_cast<std::int64_t>(s.reports), "report").c_str(),
                counted(s.hosts, "host").c_str(), bytes_text(s.bytes).c_str(), bytes_text(s.most_bytes).c_str());
    std::printf("since then %s taken, %s handed over, %s refused\n", number(s.taken).c_str(),
                number(s.handed_over).c_str(), number(s.refused).c_str());
}

int status(const Call &call) {
    if (!call.arguments.words.empty())
        return call.fail(usage_failure("dcs backup status takes no words, but got `" + call.arguments.words[0] + "`"));
    const Pool pool(call.directory);
    const Daemon daemon = pool.backup();
    const auto answer = ask(daemon.directory + "/backup.sock");
    if (!answer) {
        const bool none = ::access(daemon.directory.c_str(), F_OK) != 0;
        Failure failure = failure_of("the backup of " + pool.directory(), answer.status());
        failure.exit = exits::unreachable;
        failure.hint = none ? "there is none; `dcs up` starts one" : "`dcs up` starts it again";
        return call.fail(failure);
    }
    if (call.format == Format::table) {
        print_table(daemon, *answer);
    } else if (call.format == Format::name) {
        std::printf("backup\n");
    } else {
        JsonObject json;
        json.add("schema", "dcs.backup.status/1").add("dir", pool.directory()).add("pid", daemon.pid);
        json.add("up_s", answer->up_s).add("scheduler", answer->scheduler).add("servers", answer->servers);
        json.add("hosts", answer->hosts).add("reports", answer->reports).add("bytes", answer->bytes);
        json.add("most_bytes", answer->most_bytes).add("taken", answer->taken);
        json.add("handed_over", answer->handed_over).add("refused", answer->refused);
        std::printf("%s\n", json.text().c_str());
    }
    return exits::ok;
}

}  // namespace

const Verb backup_status_verb = {
    "backup",
    "status",
    "what the passive backup holds for the scheduler",
    R"(Shows whether the passive backup lives, whether the scheduler and grain servers are connected to it, how many
reports it holds, and what it has done since it was started. It is asked itself, so this works while the
scheduler is away.

Examples:
  dcs backup status
  dcs backup status -o json | jq .reports

Usage: dcs backup status [-o table|json|name] [--dir DIR]

Reports that are held go to the scheduler as soon as it is back. Exit code 5: the backup does not answer.
)",
    {},
    false,
    0,
    status};

}  // namespace dcs::commands
