// Between the directories of a host and what the grain server's core says and hears: what
// grainserver/shell/grain_files.cc and build_report.cc do with real files.
#include "base/limits.h"
#include "grainserver/core/checkpoint_file.h"
#include "sim/server_node.h"

namespace dcs::sim {

server::DirFacts ServerNode::look(const server::GrainId &id) {
    server::DirFacts facts;
    const auto found = host_.directories.find(id);
    if (found == host_.directories.end()) return facts;
    host_.bring_up(id);
    const Directory &dir = found->second;
    facts.announced = dir.announced;
    for (const auto &[number, w] : dir.increments) facts.increments[number] = w.out.size() + w.err.size();
    for (const auto &[number, bytes] : dir.checkpoints) facts.checkpoints[number] = bytes.size();
    facts.usage = host_.usage(id);
    return facts;
}

std::variant<wire::GrainReport, server::ReportUnsendable> ServerNode::build(const server::SendReport &plan) {
    using Why = server::ReportUnsendable::Why;
    const auto trouble = [&](Why why, const std::string &text) {
        return server::ReportUnsendable{plan.id, why, plan.checkpoint, text};
    };
    wire::GrainReport r;
    r.key = wire::wire_of(plan.id.key);
    r.incarnation = plan.id.incarnation;
    r.first_seq = plan.first;
    r.last_seq = plan.last;
    r.usage = plan.usage;
    r.ended = plan.ended;
    r.exit_code = plan.exit_code;
    r.signal = plan.signal;
    r.innocent = plan.innocent;
    r.limit = plan.limit;
    r.reason = plan.reason;
    r.given_back = plan.given_back;
    if (plan.first > plan.last) return r;
    const auto found = host_.directories.find(plan.id);
    if (found == host_.directories.end()) return trouble(Why::unreadable, "its directory is gone");
    const Directory &dir = found->second;
    if (plan.checkpoint != 0) {
        const auto bytes = dir.checkpoints.find(plan.checkpoint);
        if (bytes == dir.checkpoints.end()) return trouble(Why::bad_checkpoint, "the checkpoint is gone");
        const auto mark = server::parse_checkpoint(bytes->second, dir.input.size());
        if (!mark) return trouble(Why::bad_checkpoint, mark.status().text);
        r.has_checkpoint = true;
        r.checkpoint = mark->state;
        r.message = mark->message;
        if (r.usage.user_us == 0) r.usage.user_us = mark->user_us;
        const auto n = server::normalise(mark->input_offset, dir.launch.checkpoint_length, dir.launch.input_base);
        r.input_position = n.input_position;
        if (n.carry_from < dir.launch.checkpoint_length)
            r.checkpoint += dir.input.substr(n.carry_from, dir.launch.checkpoint_length - n.carry_from);
    }
    for (std::uint32_t k = plan.first; k <= plan.last; ++k) {
        const auto w = dir.increments.find(k);
        if (w == dir.increments.end()) return trouble(Why::unreadable, "an increment is gone");
        r.out += w->second.out;
        r.err += w->second.err;
    }
    if (r.out.size() + r.err.size() > limits::report_bytes) return trouble(Why::too_big, "a report too large");
    return r;
}

// What an earlier server left; directories of another boot are removed.
void ServerNode::adopt() {
    for (auto it = host_.directories.begin(); it != host_.directories.end();) {
        Directory &dir = it->second;
        if (dir.boot != host_.boot()) {
            it = host_.directories.erase(it);
            continue;
        }
        server::Adopted a;
        a.id = it->first;
        a.notice = dir.launch.notice;
        a.next_seq = dir.launch.next_seq;
        a.acked = std::max(dir.acked, a.next_seq - 1);
        a.started = dir.has_pid;
        a.since = dir.started;
        a.wall_s = dir.launch.wall_s;
        a.tentative = dir.launch.tentative;
        a.limit_signal = dir.limit_signal;
        a.given_back = dir.given_back;
        a.ending = dir.ending;
        a.reason = dir.reason;
        a.exit = dir.exit;
        put(std::move(a));
        ++it;
    }
}

}  // namespace dcs::sim
