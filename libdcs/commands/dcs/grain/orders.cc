// dcs grain explain, restart, kill.
#include <algorithm>
#include <cstdio>
#include <unistd.h>

#include "commands/dcs/frame/pool_directory.h"
#include "commands/dcs/frame/call.h"
#include "commands/dcs/query/row_text.h"
#include "commands/dcs/query/grains.h"
#include "commands/dcs/query/session_events.h"
#include "commands/dcs/frame/table.h"
#include "dcs.h"

namespace dcs::commands {
namespace {

int explain_grains(const Call &call) {
    const ChosenGrains chosen = choose_grains(call.arguments.words, false);
    if (chosen.failure) return call.fail(*chosen.failure);
    for (std::size_t i = 0; i < chosen.grains.rows.size(); ++i) {
        const wire::GrainRow &row = chosen.grains.rows[i];
        const auto why = commands::explain(row.user, row.session, row.grain);
        if (!why) return call.fail(call_failure("grain " + chosen.name(i), why.status()));
        if (call.format == Format::name) {
            std::printf("%s\n", chosen.name(i).c_str());
        } else if (call.format == Format::json) {
            JsonObject json;
            json.add("schema", "dcs.grain.explain/1").add("user", row.user).add("session", row.session);
            json.add("grain", row.grain).add_members(wire::to_json(*why));
            json.add_list("failed_starts", failed_starts(row), json_string);
            std::printf("%s\n", json.text().c_str());
        } else {
            std::fputs(explanation_text(chosen.name(i), *why).c_str(), stdout);
            if (is_over(row)) continue;
            for (const std::string &line : failed_starts(row))
                std::printf("  it was not started on %s\n", line.c_str());
        }
    }
    return exits::ok;
}

// What people start again to go on with the session: the ident of a command is a digest.
std::string program_of(const Session &session) {
    return session.command.empty() ? session.ident : "`" + session.command_again() + "`";
}

// The command again begins another session.
bool is_of_run(const Session &session) { return session.ident.starts_with("dcs-run-"); }

// Of a grain that has ended, or is of a closed session: the programs that take the session up again run what failed.
std::string how_to_go_on(const wire::GrainRow &row, const std::string &name) {
    const SessionsAnswer answer = sessions_of({row.user + "/" + std::to_string(row.session)});
    if (answer.failure || answer.sessions.size() != 1) return "";
    const Session &session = answer.sessions[0];
    const std::string program = program_of(session);
    if (is_of_run(session)) return "run " + program + " again, with the same input: it is another session";
    if (!is_over(row)) return "run " + program + " again: it goes on with what did not run";
    const bool repeats = session.ident.rfind("map-", 0) == 0 || session.declared() > 0;
    if (repeats && (row.state == "killed" || is_failed(row))) return "run " + program + " again: it runs what failed";
    return "`dcs grain restart " + name + " --and-after` discards its result and what followed from it; then run " +
           program + " again";
}

struct Order {
    const char *name, *done, *schema;  // "restart", "restarted"
    int (*call)(d_pool *pool, const char *user, int session, int grain);
};

// It may have ended since it was read.
bool is_over_now(const wire::GrainRow &row) {
    const auto now = grain_now(row.user, row.session, row.grain);
    return now && is_over(*now);
}

// Grains that have ended are skipped, unless the command names a single grain.
int carry_out(const Call &call, const Order &order) {
    const ChosenGrains chosen = choose_grains(call.arguments.words, false, "", "", true);
    if (chosen.failure) return call.fail(*chosen.failure);
    Listing done(call, order.schema, order.done);
    for (std::size_t i = 0; i < chosen.grains.rows.size(); ++i) {
        const wire::GrainRow &row = chosen.grains.rows[i];
        const std::string name = chosen.name(i);
        if (!chosen.named_alone[i] && is_over(row)) continue;
        if (order.call == d_pool_gkill_of && row.state == "finished") {  // the call forgives that
            const Status may = Info().ask(wire::QueryType::grain, row.user, row.session, row.grain);
            if (!may) return call.fail(failure_of("grain " + name + " was not killed", may));
            return call.fail({exits::refused, "refused", "grain " + name + " was not killed: it has finished", ""});
        }
        if (const int error = order.call(&this_pool(), row.user.c_str(), row.session, row.grain); error != NO_ERROR) {
            Failure failure = call_failure("grain " + name + " was not " + order.done, error);
            if (error == D_E_SESSION_CLOSED || is_over(row)) failure.hint = how_to_go_on(row, name);
            if (!chosen.named_alone[i] && is_over_now(row)) continue;
            return call.fail(failure);
        }
        done.add(name, "grain " + name + " " + order.done);
    }
    return done.end(done.size() > 0 ? "" : "nothing to do: none of these grains is ready or running");
}

// ---- dcs grain restart --and-after

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

void tell(const std::string &name, const Session &session, const Forgotten &f, bool erases) {
    std::fprintf(stderr, "This discards the result of grain %s, and with it:\n", name.c_str());
    if (f.stand < f.handed_out)
        std::fprintf(stderr, "  the delivery of results from %u on (%u of %u)\n", f.stand, f.handed_out - f.stand,
                     f.handed_out);
    if (!f.gone.empty())
        std::fprintf(stderr, "  %s that followed, with all their data: %s\n",
                     counted(f.gone.size(), "submission").c_str(), list_of(f.gone).c_str());
    if (!f.revived.empty())
        std::fprintf(stderr, "  the kill of %s, which runs again: %s\n", counted(f.revived.size(), "grain").c_str(),
                     list_of(f.revived).c_str());
    if (f.stand == f.handed_out && f.gone.empty() && f.revived.empty()) std::fprintf(stderr, "  nothing else\n");
    const std::string next = is_of_run(session)
                                 ? "`dcs session wait " + std::to_string(session.session) + "` waits for it"
                                 : "Run " + printable(program_of(session)) +
                                       " again: it continues from there, unless the program has changed";
    std::fprintf(stderr, "%s%s%s.\n", session.terminated() ? "The session becomes active again. " : "",
                 erases ? "The grain goes, too, until it is submitted again. " : "", next.c_str());
}

int print_done(const Call &call, const std::string &name, const wire::GrainRow &row, const Forgotten &f) {
    JsonObject json("dcs.grain.restart/1");
    json.add("user", row.user).add("session", row.session).add_raw("restarted", json_array({json_string(name)}));
    const auto number = [](std::int32_t grain) { return std::to_string(grain); };
    json.add_list("forgotten", f.gone, number).add_list("revived", f.revived, number).add("results", f.stand);
    return print_as_asked(call, json, name,
                          "grain " + name + " restarted, " + counted(f.gone.size(), "submission") + " discarded");
}

int forget_after(const Call &call) {
    const ChosenGrains chosen = choose_grains(call.arguments.words, false, "", "", true);
    if (chosen.failure) return call.fail(*chosen.failure);
    if (chosen.grains.rows.size() != 1)
        return call.fail(
            usage_failure("dcs grain restart --and-after takes one grain", "dcs grain restart SES:G --and-after"));
    const wire::GrainRow &row = chosen.grains.rows[0];
    const std::string name = chosen.name(0);
    if (!is_over(row))
        return call.fail({exits::refused, "refused",
                          "grain " + name + " is " + row.state + ": it has no result to discard",
                          "dcs grain restart " + name + " alone restarts it"});
    const SessionsAnswer answer = sessions_of({row.user + "/" + std::to_string(row.session)});
    if (answer.failure) return call.fail(*answer.failure);
    const Session &session = answer.sessions[0];
    const auto history = history_of(session);
    if (!history) return call.fail(failure_of("the event log of session " + session.name(), history.status()));
    const Forgotten f = forgotten_with(*history, row.grain);
    tell(name, session, f, call.arguments.has("when-submitted"));
    if (!call.arguments.has("yes") && ::isatty(STDIN_FILENO) == 1 && !says_yes("Discard it?"))
        return call.fail({exits::error, "cancelled", "nothing was discarded", ""});
    const wire::RestartGrain order{row.user,
                                   row.session,
                                   row.grain,
                                   true,
                                   static_cast<std::int32_t>(f.gone.size()),
                                   call.arguments.has("when-submitted")};
    const Status s = ask_any<wire::Done>(order).status();
    if (!s) return call.fail(failure_of("grain " + name + " was not restarted", s));
    return print_done(call, name, row, f);
}

int restart(const Call &call) {
    if (call.arguments.has("and-after")) return forget_after(call);
    if (call.arguments.has("when-submitted"))
        return call.fail(usage_failure("dcs grain restart: --when-submitted needs --and-after"));
    return carry_out(call, {"restart", "restarted", "dcs.grain.restart/1", d_pool_grestart});
}

int kill(const Call &call) { return carry_out(call, {"kill", "killed", "dcs.grain.kill/1", d_pool_gkill_of}); }

}  // namespace

extern const Verb grain_explain_verb = {
    .noun = "grain",
    .name = "explain",
    .words = "SEL...",
    .summary = "say why a grain is where it is",
    .about = R"(Says why grains are where they are, and above all why they wait. Prints a sentence, then a line
for each reason with the hosts that it holds for, and what to do about it.

Examples:
  dcs grain explain 7:12
  dcs grain explain last:all -o json | jq 'select(.can_run | not)'
)",
    .notes =
        R"(SEL is SES:G, SES:1-20, SES:1,5-7 or SES:all, or SES alone if it has one grain; SES is NUM, USER/NUM or last
(your session that was opened last). With -o json one document per grain. For grains of other users: root,
scheduler_master or the pool's owner.
)",
    .run = explain_grains};

extern const Verb grain_restart_verb = {
    .noun = "grain",
    .name = "restart",
    .words = "SEL...",
    .summary = "restart a grain from its last checkpoint",
    .about = R"(Restarts ready and running grains from their last checkpoints. Clears their failures, the hosts
that they avoid and their pauses.

Examples:
  dcs grain restart last:all
  dcs grain restart 7:12 --and-after       its result was wrong: discard it and what followed from it
)",
    .options = {{"and-after", 0, nullptr, no_value, "discard its result, and every decision that followed from it"},
                {"when-submitted", 0, nullptr, no_value,
                 "with --and-after: it runs when its control program submits it again, and as it does that then"},
                {"yes", 'y', nullptr, no_value, "with --and-after: do not ask"}},
    .notes = R"(SEL is SES:G, SES:1-20, SES:1,5-7 or SES:all; SES is NUM, USER/NUM or last (your session that was
opened last; refused where a later one was removed). Of several grains, finished and killed ones are skipped. A
single grain that has finished or was killed is refused, because that is final.

--and-after takes one finished or killed grain, and discards its result, its checkpoint and everything that its
control program received, submitted or killed after it; the grain runs again, at once as it was submitted or, with
--when-submitted, as its program submits it again, with other arguments or more memory. The command first lists what
it discards, and asks for confirmation on a terminal. A closed session becomes active again. Then run the control
program again: it continues from the point before that result. One that was edited is refused, and keeps its session.
)",
    .run = restart};

extern const Verb grain_kill_verb = {
    .noun = "grain",
    .name = "kill",
    .words = "SEL...",
    .summary = "kill a grain permanently",
    .about = R"(Kills grains: they do not run again and have no result. Input, checkpoint and outputs
stay until the session is removed.

Examples:
  dcs grain kill 7:12
  dcs grain kill 7:100-199
)",
    .notes = R"(SEL is SES:G, SES:1-20, SES:1,5-7 or SES:all; SES is NUM, USER/NUM or last (your session that was
opened last; refused where a later one was removed). Of several grains, finished ones keep their results. A single
grain that has finished loses its result, unless the control program has received it.
)",
    .run = kill};

}  // namespace dcs::commands
