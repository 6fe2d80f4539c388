#include "say.h"

#include <csignal>

#include "base/json.h"
#include "base/text.h"
#include "quantity.h"

namespace dcs::lock_command {
namespace {

// If the reader is gone, SIGPIPE must not end dcs_lock before it has released its locks.
void write_without_signal(int fd, const std::string &text) {
    struct sigaction ignore = {}, before = {};
    ignore.sa_handler = SIG_IGN;
    ::sigaction(SIGPIPE, &ignore, &before);
    write_all(fd, text);
    ::sigaction(SIGPIPE, &before, nullptr);
}

int exit_of(const Options &options, locks::Denied denied) {
    switch (denied) {
    case locks::Denied::no: return exits::ok;
    case locks::Denied::too_soon: return exits::too_soon;
    case locks::Denied::not_permitted: return exits::not_permitted;
    case locks::Denied::failed: return exits::failed;
    default: return options.busy_is_ok ? exits::ok : options.busy_code;
    }
}

}  // namespace

void complain(const std::string &line) { write_without_signal(2, "dcs_lock: " + printable(line) + "\n"); }

std::string as_json(const locks::Owner &owner) {
    JsonObject o;
    o.add("pid", owner.process.pid).add("uid", owner.uid).add("host", owner.host).add("command", owner.command);
    if (owner.supervisor.pid > 0) o.add("supervisor", owner.supervisor.pid);
    return o.text();
}

std::string as_json(const Outcome &outcome) {
    JsonObject o("dcs_lock.result/1");
    o.add("name", outcome.name).add("result", outcome.result).add("ran", outcome.ran);
    o.add("exit_code", outcome.exit).add("message", outcome.message);
    if (outcome.holder.process.pid > 0) o.add_raw("holder", as_json(outcome.holder));
    if (outcome.token != 0) o.add("token", outcome.token);
    if (outcome.waited >= 0) o.add_raw("waited_s", json_seconds(outcome.waited));
    if (outcome.runtime >= 0) o.add_raw("runtime_s", json_seconds(outcome.runtime));
    if (outcome.cpu >= 0) o.add_raw("cpu_s", json_seconds(outcome.cpu));
    if (outcome.age >= 0) o.add_raw("age_s", json_seconds(outcome.age));
    if (outcome.elapsed >= 0) o.add_raw("elapsed_s", json_seconds(outcome.elapsed));
    if (outcome.again_in >= 0) o.add_raw("again_in_s", json_seconds(outcome.again_in));
    if (!outcome.slots.empty()) o.add_list("slots", outcome.slots, [](int slot) { return std::to_string(slot); });
    if (outcome.took_over) o.add("took_over", true);
    if (outcome.after_crash) o.add("after_crash", true);
    return o.text();
}

int tell(const Options &options, const Outcome &outcome) {
    if (options.report_fd >= 0) write_without_signal(options.report_fd, as_json(outcome) + "\n");
    if (options.json) {
        const bool to_output =
            options.verb != Verb::run && options.verb != Verb::descriptor && outcome.exit != exits::failed;
        write_without_signal(to_output ? 1 : 2, as_json(outcome) + "\n");
    } else if (!outcome.message.empty() && (options.verbose || !outcome.quiet)) {
        complain(outcome.message);
    }
    return outcome.exit;
}

Outcome failed(const std::string &name, const std::string &message) {
    return {.name = name, .result = "error", .exit = exits::failed, .message = message};
}

Outcome failed(const std::string &name, const Status &status) {
    std::string message = status.text;
    if (!name.empty() && message.find(name) == std::string::npos) message = name + ": " + message;
    Outcome outcome = failed(name, message);
    outcome.wrong_use = status.code == Code::invalid;
    return outcome;
}

Outcome denied(const Options &options, const std::string &name, const locks::Answer &answer) {
    if (answer.denied == locks::Denied::failed)
        return failed(name, answer.status.text.empty() ? fail(Code::io_error, answer.text) : answer.status);
    Outcome outcome;
    outcome.name = name;
    outcome.result = locks::denied_word(answer.denied);
    outcome.exit = exit_of(options, answer.denied);
    outcome.quiet = options.busy_is_ok && outcome.exit == exits::ok;
    outcome.message = answer.text.empty() ? name + ": " + outcome.result : answer.text;
    outcome.holder = answer.holder;
    const bool too_soon = answer.denied == locks::Denied::too_soon;
    outcome.age = too_soon ? -1 : answer.ruling.age;
    outcome.elapsed = too_soon ? answer.ruling.elapsed : -1;
    outcome.again_in = answer.ruling.again_in;
    return outcome;
}

std::string with_name(std::string text, const locks::Place &place) {
    if (!place.named) return text;
    const std::string name = shown_name(place.atom);
    for (std::size_t at = 0; (at = text.find(place.path, at)) != std::string::npos; at += name.size())
        text.replace(at, place.path.size(), name);
    return text;
}

std::string shown_name(const locks::Atom &atom) {
    return atom.operand.empty() ? atom.operation : atom.operation + ":" + atom.operand;
}

std::string shown_name(const Options &options) {
    if (options.atom) return shown_name(*options.atom);
    if (!options.name.empty()) return options.name;
    if (options.descriptor >= 0) return "descriptor " + std::to_string(options.descriptor);
    std::string names;
    for (const Limit &limit : options.limits) names += (names.empty() ? "" : ",") + limit.name;
    return names;
}

}  // namespace dcs::lock_command
