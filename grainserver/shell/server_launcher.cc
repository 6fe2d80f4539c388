// The server's side of its launcher: what it has, what it says of grains, and its end after an upgrade.
#include <algorithm>

#include "base/clock.h"
#include "grainserver/shell/server.h"

namespace dcs::server {
namespace {
constexpr Duration mark_lasts = seconds(1);
}  // namespace

bool Server::look_for_exit(const GrainId &id) {
    std::optional<ExitFacts> exit = files_.exit_of(id);
    if (exit) put(GrainExited{id, std::move(*exit)});
    return exit.has_value();
}

void Server::launcher_is_up() { put(LauncherUp{launcher_.queues(), launcher_.counts()}); }

// A new connection counts from the end of the launcher's list on: from then on every end is reported, and each earlier
// one has its `exit` file. What has none and is not in the list was being started when an earlier server ended, and
// could not be; or a new launcher could not write the file.
void Server::launcher_answers() {
    log_(Level::debug, "connected to the launcher");
    for (const auto &[id, g] : state_.grains) {
        if (g.phase != Phase::running || look_for_exit(id) || listed_.count(id) != 0) continue;
        put(GrainExited{id, {.innocent = true, .reason = "the launcher of this host does not have it"}});
    }
    mark_until_ = Instant{};
    if (!replace_launcher()) launcher_is_up();  // in this order: nothing is queued at one that ends
}

// After an upgrade the launcher of the previous release is asked to end when no grain runs. At most once per server
// process: a program that another one runs, such as an emulator, never matches the file that was started.
bool Server::replace_launcher() {
    if (replacing_ != Replacing::not_yet || state_.derived.processes != 0 || boot_clock() < mark_until_) return false;
    mark_until_ = boot_clock() + mark_lasts;
    if (!launcher_.outdated(options_.launcher_program)) return false;
    replacing_ = Replacing::asked;
    launcher_.send({files::Verb::quit});
    return true;
}

void Server::keep_launcher() {
    if (launcher_.broken()) {
        loop_->unwatch(launcher_.fd());
        launcher_.close();
        if (replacing_ == Replacing::asked)
            log_(Level::info, "the launcher's program file has been replaced; starting the new one");
        else log_(Level::warning, "the launcher has ended; starting another");
        if (replacing_ == Replacing::asked) replacing_ = Replacing::done;
        put(LauncherDown{});
    }
    std::string why;
    if (launcher_.maintain(boot_clock(), why)) {
        loop_->watch(launcher_.fd());
        launcher_.send({files::Verb::list});
        listed_.clear();
    }
    if (!why.empty()) log_(Level::error, why);
}

void Server::read_launcher() {
    bool any_ended = false;
    for (const files::LauncherCall &call : launcher_.read()) {
        if (call.verb == files::Verb::end && replacing_ != Replacing::asked) launcher_answers();
        if (call.verb == files::Verb::busy) {
            replacing_ = Replacing::not_yet;
            launcher_is_up();
        }
        const std::optional<GrainId> id = files_.id_of(call.dir);
        if (!id) continue;
        switch (call.verb) {
        case files::Verb::running: listed_.insert(*id); break;
        case files::Verb::started: put(GrainStarted{*id}); break;
        case files::Verb::proved: put(GrainProved{*id}); break;
        case files::Verb::recalled: put(GrainRecalled{*id}); break;
        case files::Verb::have:
            put(GrainStarted{*id});
            look_for_exit(*id);
            break;
        case files::Verb::failed: put(StartFailed{*id, static_cast<Code>(call.number), call.again, call.text}); break;
        case files::Verb::left: files_.note_alone(*id); [[fallthrough]];
        case files::Verb::exited:
            look_for_exit(*id);
            any_ended = true;
            break;
        default: break;
        }
    }
    handle_pending();
    const auto waits_there = [](const auto &entry) { return entry.second.phase == Phase::starting; };
    if (!any_ended || std::any_of(state_.grains.begin(), state_.grains.end(), waits_there)) return;
    if (!replace_launcher()) return;
    put(LauncherDown{});  // what comes until it has ended is given to the next one
    handle_pending();
}

}  // namespace dcs::server
