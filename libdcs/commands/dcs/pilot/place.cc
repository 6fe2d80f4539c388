#include "place.h"

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <sys/stat.h>

#include "base/files.h"
#include "base/text.h"
#include "base/option_table.h"
#include "client/pool_path.h"
#include "commands/dcs/frame/pool_directory.h"
#include "commands/dcs/frame/start_hint.h"
#include "commands/dcs/pool/start_daemon.h"
#include "commands/dcs/query/scheduler.h"

namespace dcs::commands {
namespace {

constexpr double code_lasts_s = 300;
constexpr std::time_t joins_again_s = 60 * 24 * 3600;  // certificates are valid for 90 days
constexpr std::string_view stem = "pilot";
constexpr int most_pilots = 100'000;

std::string state_directory(const Call &call) {
    const Pool pool(call.directory);
    if (pool.maker() == Pool::Maker::dcs_up) return pool.path("pilots");
    const auto own = client::own_pool_directory();
    return own ? own->substr(0, own->rfind('/')) + "/dcs-pilots" : call.directory + "/pilots";
}

std::int64_t number_in(std::string_view host) {
    return host.starts_with(stem) ? number_of(host.substr(stem.size()), 1, most_pilots).value_or(0) : 0;
}

bool has_certificate(const std::string &directory) {
    struct stat st = {};
    return ::stat((directory + "/pki/certificate.pem").c_str(), &st) == 0 &&
           std::time(nullptr) - st.st_mtime < joins_again_s;
}

}  // namespace

PilotPlace::PilotPlace(const Call &call) : directory_(state_directory(call)) {}

Status PilotPlace::make() const { return make_directories(directory_); }

const EngineKind *PilotPlace::engine() const {
    const auto text = read_file(path("engine"), 100);
    return text ? engine_kind(std::string_view(*text).substr(0, text->find('\n'))) : nullptr;
}

Status PilotPlace::set_engine(const EngineKind &kind) const {
    return write_file(path("engine"), kind.name + std::string("\n"));
}

// FNV-1a, 64 bits: names of jobs are short.
std::string PilotPlace::prefix() const {
    std::uint64_t hash = 14695981039346656037u;
    for (const char c : directory_) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
    std::string bytes;
    for (int i = 0; i < 4; ++i) bytes += static_cast<char>(hash >> (i * 8) & 0xff);
    return "dcs-" + hex_of(bytes) + "-";
}

bool is_pilot_name(std::string_view name) { return number_in(name) > 0; }

bool job_is_asked_to_end(const std::string &pki) {
    const char *id = std::getenv("PBS_JOBID");
    if (id == nullptr) return false;
    const auto text = read_file(pki + "/../end", 1000);
    // "17.server": a host may call the server otherwise.
    return text && text->substr(0, text->find('.')) == std::string(id).substr(0, std::string(id).find('.'));
}

PilotHosts pilot_hosts() {
    PilotHosts found;
    Info info, system;
    Status asked = info.ask(wire::QueryType::hosts);
    if (asked) asked = system.ask(wire::QueryType::system);
    if (!asked) {
        found.failure = call_failure("the pool's hosts", asked);
        return found;
    }
    found.ready = system.system.ready;
    for (wire::HostRow &row : info.hosts)
        if (is_pilot_name(row.name)) found.rows.push_back(std::move(row));
    std::sort(found.rows.begin(), found.rows.end(),
              [](const auto &a, const auto &b) { return number_in(a.name) < number_in(b.name); });
    if (found.rows.empty())
        found.failure = not_found_failure(
            "the pool has no hosts for pilots",
            "your own pool: dcs up --pilots 20 --pilot-slots 8 --listen 0.0.0.0:7001; another: add lines such as "
            "`pilot1 pilot=yes slots=8` to its host table and run dcs reload");
    return found;
}

Result<std::string> join_pilot(const PilotPlace &place, const std::string &host) {
    const std::string directory = place.path(host);
    if (Status made = make_directories(directory); !made) return made;
    if (has_certificate(directory))
        if (std::string known = scheduler_in(directory + "/service"); !known.empty()) return known;
    const auto code = ask_any<wire::TokenCreated>(wire::CreateToken{host, static_cast<std::int64_t>(code_lasts_s), 0});
    if (!code) return fail(code.status().code, "a code for " + host + ": " + code.status().text);
    const auto ran = run_program(own_folder() + "/dcs",
                                 {"host", "join", code->address, "--token", "-", "--ca-hash", hex_of(code->authority),
                                  "--host", host, "--new-key", "--dir", directory},
                                 hex_of(code->token) + "\n");
    if (!ran) return ran.status();
    if (ran->exit_code != 0) return fail(Code::refused, host + " has not joined: " + ran->errors);
    return code->address;
}

}  // namespace dcs::commands
