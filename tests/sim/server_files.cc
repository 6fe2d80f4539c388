// Between the directories of a host and what the grain server's core says and hears: what
// grainserver/shell/grain_files.cc and build_report.cc do with real files.
#include "base/limits.h"
#include "grainserver/core/checkpoint_file.h"
#include "pki/digest.h"
#include "sim/program.h"
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
    r.files = plan.files;
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

// ---- contents: what grainserver/shell/contents.cc does with real files ---------------------

void ServerNode::place(const server::GrainId &id) {
    const auto found = host_.directories.find(id);
    if (found == host_.directories.end()) return;
    Directory &dir = found->second;
    server::FilesMissing missing{id, {}};
    for (const wire::GrainFile &file : dir.launch.files)
        if (file.role != wire::FileRole::output && host_.library.count(file.digest) == 0) missing.files.push_back(file);
    if (!missing.files.empty()) return put(std::move(missing));
    if (host_.disk_full()) return put(server::FilesUnplaced{id, Code::no_space, "the disk of this host is full"});
    for (const wire::GrainFile &file : dir.launch.files)
        if (file.role == wire::FileRole::input) {
            dir.input.resize(dir.launch.checkpoint_length);
            dir.input += host_.library.at(file.digest).substr(dir.launch.input_base);
        }
    dir.placed = true;
    put(server::FilesPlaced{id});
}

void ServerNode::keep(const server::KeepPiece &piece) {
    if (host_.disk_full()) {
        coming_.erase(piece.digest);
        return put(server::PieceUnkept{piece.digest, Code::no_space, "the disk of this host is full"});
    }
    std::string &bytes = coming_[piece.digest];
    if (piece.offset == 0) bytes.clear();
    const bool follows = bytes.size() == piece.offset;
    bytes += piece.bytes;
    const std::uint64_t next = bytes.size();
    if (!follows || (next == piece.total && pki::sha256_text(bytes) != piece.digest)) {
        coming_.erase(piece.digest);
        return put(server::PieceUnkept{piece.digest, Code::io_error, "content does not match its SHA-256"});
    }
    if (next == piece.total) {
        host_.library[piece.digest] = std::move(bytes);
        coming_.erase(piece.digest);
    }
    put(server::PieceKept{piece.digest, next});
}

void ServerNode::keep_outputs(const server::GrainId &id) {
    const auto found = host_.directories.find(id);
    if (found == host_.directories.end()) return;
    if (host_.disk_full()) return put(server::OutputsUnkept{id, Code::no_space, "the disk of this host is full"});
    std::vector<wire::GrainFile> outputs;
    for (wire::GrainFile file : found->second.launch.files) {
        if (file.role != wire::FileRole::output) continue;
        const std::string bytes = output_of(id.key, file.name);
        file.digest = pki::sha256_text(bytes);
        file.size = bytes.size();
        host_.library[file.digest] = bytes;
        outputs.push_back(std::move(file));
    }
    found->second.outputs = outputs;
    put(server::OutputsKept{id, std::move(outputs), {}});
}

void ServerNode::put_piece(const server::SendPiece &piece) {
    const auto found = host_.library.find(piece.digest);
    if (found == host_.library.end()) return put(server::PieceUnreadable{piece.digest, "it is gone"});
    send(wire::PutContent{piece.digest, piece.total, piece.offset,
                          found->second.substr(piece.offset, limits::content_piece_bytes)});
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
        a.large = server::is_large(dir.launch.demands);
        a.notice = dir.launch.demands.notice;
        a.next_seq = dir.launch.next_seq;
        a.acked = std::max(dir.acked, a.next_seq - 1);
        a.started = dir.has_pid;
        a.since = dir.started;
        a.wall_s = dir.launch.demands.wall_s;
        a.tentative = dir.launch.tentative;
        a.limit_signal = dir.limit_signal;
        a.given_back = dir.given_back;
        a.ending = dir.ending;
        a.reason = dir.reason;
        a.exit = dir.exit;
        a.files = dir.launch.files;
        a.to_place = !dir.placed;
        a.outputs = dir.outputs;
        put(std::move(a));
        ++it;
    }
}

}  // namespace dcs::sim
