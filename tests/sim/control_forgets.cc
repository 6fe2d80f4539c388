// The user finds a result wrong: `dcs grain restart SES:G --and-after`, then the program is run again. As the command
// does it, from the session's event log (libdcs/commands/dcs/grain/orders.cc).
#include "base/limits.h"
#include "sim/control_node.h"
#include "wire/history.h"

namespace dcs::sim {
namespace {

constexpr Duration pause_after_order = seconds(20);

Forgotten forgotten_with(const wire::History &history, GrainNumber grain) {
    Forgotten f;
    f.grain = grain;
    const wire::GrainHistory &chosen = history.grains.at(grain);
    const bool killed = chosen.state == wire::GrainState::killed;
    const auto end = killed ? chosen.killed_after : static_cast<std::uint32_t>(chosen.result);
    const std::uint32_t stand = std::min(history.handed_out, end);
    f.stand = static_cast<std::int32_t>(stand);
    for (const auto &[number, g] : history.grains) {
        if (number == grain) continue;
        if (g.known > stand) f.gone.insert(number);
        else if (g.state == wire::GrainState::killed && g.killed_after > stand) f.revived.insert(number);
    }
    return f;
}

}  // namespace

// A program with a memory of its own would have to forget as well, and nothing is in doubt.
bool ControlNode::begins_to_forget() {
    if (!wish_ || in_doubt_) return false;
    wish_ = false;
    if (job().keeps_notes) return false;
    self_.log.clear();
    self_.stage = Stage::look;
    think();
    return true;
}

void ControlNode::look() {
    say(wire::Fetch{{},
                    job().session,
                    0,
                    wire::Stream::log,
                    self_.log.size(),
                    static_cast<std::uint32_t>(limits::fetch_chunk_bytes)},
        false);
}

void ControlNode::looked(const wire::AnyMessage &reply) {
    const auto *piece = std::get_if<wire::Piece>(&reply);
    if (!piece) return go_back();  // another process has the session now
    self_.log += piece->bytes;
    if (!piece->bytes.empty() && self_.log.size() < piece->total) return think();
    std::vector<wire::Event> events;
    std::string_view rest = self_.log;
    if (const Status s = wire::take_events(rest, events); !s) return wrong("its event log: " + s.text);
    wire::History history;
    for (const wire::Event &event : events)
        if (const std::string what = history.take(event); !what.empty()) return wrong("its event log: " + what);
    std::vector<GrainNumber> ended;
    for (const auto &[number, g] : history.grains)
        if ((g.state == wire::GrainState::finished && g.result >= 0) || g.state == wire::GrainState::killed)
            ended.push_back(number);
    if (ended.empty()) return go_back();
    self_.forgotten = forgotten_with(history, ended[random_.below(ended.size())]);
    self_.stage = Stage::forget;
    think();
}

void ControlNode::forget() {
    const Forgotten &f = self_.forgotten;
    watch_.forgets(key(), f);
    say(wire::RestartGrain{{}, job().session, f.grain, true, static_cast<std::int32_t>(f.gone.size())}, false);
}

void ControlNode::forgot(const wire::AnyMessage &reply, bool was_in_doubt) {
    if (std::holds_alternative<wire::Done>(reply)) {
        close_asked_ = false;
        return run_anew();
    }
    const auto *error = std::get_if<wire::ErrorReply>(&reply);
    if (!error) return wrong("forgetting a result was answered with " + std::string(wire::kind_name(reply)));
    const auto code = static_cast<Code>(error->code);
    if (code != Code::refused && code != Code::grain_unknown && code != Code::no_auth && code != Code::session_taken)
        return wrong("a result was not forgotten: " + error->text);
    // It went on meanwhile. Or it is forgotten already, by the call that got no answer.
    if (was_in_doubt || code != Code::refused) return run_anew();
    go_back();
}

void ControlNode::go_back() {
    if (!self_.course) return closed();
    self_.stage = Stage::course;
    think();
}

// As a new process would: what this one knows does not count any more.
void ControlNode::run_anew() {
    resume_ = true;
    self_.stage = Stage::auth;
    self_.token.clear();
    if (self_.conn != no_connection) links_.close_client(self_.conn);
    self_.conn = no_connection;
    self_.link_up = false;
    self_.fetched.clear();
    self_.results.clear();
    rest(pause_after_order);
}

}  // namespace dcs::sim
