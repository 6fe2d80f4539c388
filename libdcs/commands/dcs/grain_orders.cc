// dcs grain explain, restart, kill.
#include <cstdio>
#include <cstring>
#include <optional>

#include "call.h"
#include "facts.h"
#include "grain_forget.h"
#include "grains.h"
#include "json.h"

namespace dcs::commands {
namespace {

class Why {
public:
    Why() = default;
    Why(const Why &) = delete;
    Why &operator=(const Why &) = delete;
    ~Why() { d_explanation_free(why_); }
    int ask(const d_grain_row &row) { return d_explain(row.user, row.session, row.grain, &why_); }
    const d_explanation &operator*() const { return *why_; }

private:
    d_explanation *why_ = nullptr;
};

Failure which_grain(const std::string &verb) {
    return usage_failure("dcs grain " + verb + ": which grain?",
                         "dcs grain " + verb + " SES:G, for example dcs grain " + verb + " last:1");
}

bool is_over(const d_grain_row &row) {
    return std::strcmp(row.state, "finished") == 0 || std::strcmp(row.state, "killed") == 0;
}

int explain(const Call &call) {
    if (call.arguments.words.empty()) return call.fail(which_grain("explain"));
    const ChosenGrains chosen = choose_grains(call.arguments.words, false);
    if (chosen.failure) return call.fail(*chosen.failure);
    for (std::size_t i = 0; i < chosen.grains.count(); ++i) {
        const d_grain_row &row = *chosen.grains.rows[i];
        Why why;
        if (const int error = why.ask(row); error != NO_ERROR)
            return call.fail(call_failure("grain " + chosen.name(i), error));
        if (call.format == Format::name) {
            std::printf("%s\n", chosen.name(i).c_str());
        } else if (call.format == Format::json) {
            JsonObject json;
            json.add("schema", "dcs.grain.explain/1").add("user", row.user).add("session", row.session);
            std::vector<std::string> words;
            for (const std::string &line : failed_starts(row)) words.push_back(json_string(line));
            json.add("grain", row.grain).add_members(json_of(*why)).add_raw("failed_starts", json_array(words));
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

struct Order {
    const char *name, *done, *schema;  // "restart", "restarted"
    int (*call)(const char *user, int session, int grain);
};

// It may have ended since it was looked at.
bool is_over_now(const d_grain_row &row) {
    Info info;
    return info.ask(D_Q_GRAIN, row.user, row.session, row.grain) == NO_ERROR && info->grain_count == 1 &&
           is_over(info->grains[0]);
}

// What has ended already is passed over, unless somebody named that very grain.
int carry_out(const Call &call, const Order &order) {
    if (call.arguments.words.empty()) return call.fail(which_grain(order.name));
    const ChosenGrains chosen = choose_grains(call.arguments.words, false);
    if (chosen.failure) return call.fail(*chosen.failure);
    std::vector<std::string> done;
    for (std::size_t i = 0; i < chosen.grains.count(); ++i) {
        const d_grain_row &row = *chosen.grains.rows[i];
        const std::string name = chosen.name(i);
        if (!chosen.named_alone[i] && is_over(row)) continue;
        if (const int error = order.call(row.user, row.session, row.grain); error != NO_ERROR) {
            const Failure failure = call_failure("grain " + name + " was not " + order.done, error);
            if (!chosen.named_alone[i] && is_over_now(row)) continue;
            return call.fail(failure);
        }
        done.push_back(json_string(name));
        if (call.format == Format::name) std::printf("%s\n", name.c_str());
        else if (call.format == Format::table) std::printf("grain %s %s\n", name.c_str(), order.done);
    }
    if (call.format == Format::json) print_document(order.schema, order.done, json_array(done));
    else if (done.empty() && call.format == Format::table)
        std::printf("nothing to do: none of these grains is ready or running\n");
    return exits::ok;
}

int restart(const Call &call) {
    if (call.arguments.has("--and-after")) return forget_after(call);
    return carry_out(call, {"restart", "restarted", "dcs.grain.restart/1", d_grestart});
}

int kill(const Call &call) { return carry_out(call, {"kill", "killed", "dcs.grain.kill/1", d_gkill_of}); }

}  // namespace

const Verb grain_explain_verb = {
    "grain",
    "explain",
    "say why a grain is where it is",
    R"(Says why grains are where they are: above all, what a grain waits for. First a sentence, then a line
for each reason with the hosts that it holds for, and what can be done about it.

Examples:
  dcs grain explain 7:12
  dcs grain explain last:all -o json | jq 'select(.can_run | not)'

Usage: dcs grain explain [-o table|json|name] SEL...

SEL is SES:G, SES:1-20, SES:1,5-7 or SES:all; SES is NUM, USER/NUM or last (your session with the highest number).
With -o json one document per grain. Grains of other users need root, scheduler_master or the pool's owner.
)",
    {},
    false,
    0,
    explain};

const Verb grain_restart_verb = {
    "grain",
    "restart",
    "begin a grain anew from its last checkpoint",
    R"(Makes ready and running grains begin anew from their last checkpoints, wherever they may run. Their
failures, the hosts that they avoid and what holds them back are forgotten.

Examples:
  dcs grain restart last:all
  dcs grain restart 7:12 --and-after       its result was wrong: forget it and what was decided on it

Usage: dcs grain restart [--and-after] [--yes] [-o table|json|name] SEL...

SEL is SES:G, SES:1-20, SES:1,5-7 or SES:all; SES is NUM, USER/NUM or last (your session with the highest number).
Several grains: those that have finished or were killed are passed over. One that is named by itself
and has finished or was killed is refused: that is final.

--and-after takes one that has finished or was killed, and forgets its result and all that its control program was
given, submitted or killed after it; the grain runs anew. What goes is listed first, and asked for on a terminal (--yes:
not). A closed session becomes active again. Run the control program again: it goes on from before that result.
)",
    {{"--and-after", 0, false}, {"--yes", 'y', false}},
    false,
    0,
    restart};

const Verb grain_kill_verb = {
    "grain",
    "kill",
    "kill a grain for good",
    R"(Kills grains: they do not run again, and no result of them is handed out. Input, checkpoint and outputs
stay until the session is removed.

Examples:
  dcs grain kill 7:12
  dcs grain kill 7:100-199

Usage: dcs grain kill [-o table|json|name] SEL...

SEL is SES:G, SES:1-20, SES:1,5-7 or SES:all; SES is NUM, USER/NUM or last (your session with the highest number).
Several grains: those that have finished keep their results. One that is named by itself and has
finished loses its result, if the control program did not get it yet.
)",
    {},
    false,
    0,
    kill};

}  // namespace dcs::commands
