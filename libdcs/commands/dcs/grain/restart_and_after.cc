#include "restart_and_after.h"

#include <algorithm>
#include <cstdio>
#include <unistd.h>

#include "client/call.h"
#include "commands/dcs/query/session_events.h"
#include "commands/dcs/query/grains.h"
#include "commands/dcs/frame/json.h"
#include "commands/dcs/frame/table.h"
#include "commands/dcs/frame/this_pool.h"

namespace dcs::commands {
namespace {

// What goes with the result of a grain, by the session's event log.
struct Forgotten {
    std::uint32_t stand = 0;            // results that still count as handed out
    std::uint32_t handed_out = 0;       // of so many
    std::vector<std::int32_t> gone;     // submissions
    std::vector<std::int32_t> revived;  // killed since; the grain itself not among them
};

Forgotten forgotten_with(const wire::History &history, std::int32_t grain) {
    Forgotten f;
    const auto found = history.grains.find(grain);
    const bool killed = found != history.grains.end() && found->second.state == wire::GrainState::killed;
    f.handed_out = f.stand = history.handed_out;
    if (killed) f.stand = std::min(f.stand, found->second.killed_after);
    else if (found != history.grains.end() && found->second.result >= 0)
        f.stand = std::min(f.stand, static_cast<std::uint32_t>(found->second.result));
    for (const auto &[number, g] : history.grains) {
        if (number == grain) continue;
        if (g.known > f.stand) f.gone.push_back(number);
        else if (g.state == wire::GrainState::killed && g.killed_after > f.stand) f.revived.push_back(number);
    }
    return f;
}

std::string list_of(const std::vector<std::int32_t> &grains) {
    constexpr std::size_t most = 12;
    std::string r;
    for (std::size_t i = 0; i < grains.size() && i < most; ++i) r += (i > 0 ? ", " : "") + std::to_string(grains[i]);
    return r + (grains.size() > most ? ", ..." : "");
}

void tell(const std::string &name, const Session &session, const Forgotten &f) {
    std::fprintf(stderr, "This discards the result of grain %s, and with it:\n", name.c_str());
    if (f.stand < f.handed_out)
        std::fprintf(stderr, "  the delivery of results from %u on (%u of %u)\n", f.stand, f.handed_out - f.stand,
                     f.handed_out);
    if (!f.gone.empty())
        std::fprintf(stderr, "  %s that followed, with all their data: %s\n",
                     counted(static_cast<std::int64_t>(f.gone.size()), "submission").c_str(), list_of(f.gone).c_str());
    if (!f.revived.empty())
        std::fprintf(stderr, "  the kill of %s, which runs again: %s\n",
                     counted(static_cast<std::int64_t>(f.revived.size()), "grain").c_str(), list_of(f.revived).c_str());
    if (f.stand == f.handed_out && f.gone.empty() && f.revived.empty()) std::fprintf(stderr, "  nothing else\n");
    std::fprintf(stderr, "%sRun %s again: it continues from there.\n",
                 session.terminated() ? "The session becomes active again. " : "", session.ident.c_str());
}

bool confirmed() {
    std::fprintf(stderr, "Discard it? [y/N] ");
    char answer[16] = "";
    return std::fgets(answer, sizeof answer, stdin) != nullptr && (answer[0] == 'y' || answer[0] == 'Y');
}

std::string json_list(const std::vector<std::int32_t> &grains) {
    std::vector<std::string> items;
    for (const std::int32_t grain : grains) items.push_back(std::to_string(grain));
    return json_array(items);
}

void print_done(const Call &call, const std::string &name, const wire::GrainRow &row, const Forgotten &f) {
    if (call.format == Format::json) {
        JsonObject json;
        json.add("schema", "dcs.grain.restart/1").add("user", row.user).add("session", row.session);
        json.add_raw("restarted", json_array({json_string(name)})).add_raw("forgotten", json_list(f.gone));
        json.add_raw("revived", json_list(f.revived)).add("results", static_cast<std::int64_t>(f.stand));
        std::printf("%s\n", json.text().c_str());
    } else if (call.format == Format::name) {
        std::printf("%s\n", name.c_str());
    } else {
        std::printf("grain %s restarted, %s discarded\n", name.c_str(),
                    counted(static_cast<std::int64_t>(f.gone.size()), "submission").c_str());
    }
}

}  // namespace

int forget_after(const Call &call) {
    const ChosenGrains chosen = choose_grains(call.arguments.words, false);
    if (chosen.failure) return call.fail(*chosen.failure);
    if (chosen.grains.rows.size() != 1)
        return call.fail(
            usage_failure("dcs grain restart --and-after takes one grain", "dcs grain restart SES:G --and-after"));
    const wire::GrainRow &row = chosen.grains.rows[0];
    const std::string name = chosen.name(0), state = row.state;
    if (state != "finished" && state != "killed")
        return call.fail({exits::refused, "refused", "grain " + name + " is " + state + ": it has no result to discard",
                          "dcs grain restart " + name + " alone restarts it"});
    const SessionsAnswer answer = sessions_of({row.user + "/" + std::to_string(row.session)});
    if (answer.failed) return call.fail(answer.failure);
    const Session &session = answer.sessions[0];
    const auto history = history_of(session);
    if (!history) return call.fail(failure_of("the event log of session " + session.name(), history.status()));
    const Forgotten f = forgotten_with(*history, row.grain);
    tell(name, session, f);
    if (!call.arguments.has("yes") && ::isatty(STDIN_FILENO) == 1 && !confirmed())
        return call.fail({exits::error, "cancelled", "nothing was discarded", ""});
    const wire::RestartGrain order{row.user, row.session, row.grain, true, static_cast<std::int32_t>(f.gone.size())};
    const Status s = client::ask<wire::Done>(this_pool(), order, client::How{client::With::any}).status();
    if (!s) return call.fail(failure_of("grain " + name + " was not restarted", s));
    print_done(call, name, row, f);
    return exits::ok;
}

}  // namespace dcs::commands
