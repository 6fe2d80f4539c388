#include "scheduler/turn/effects.h"

#include <algorithm>

#include "base/failpoint.h"
#include "base/planted.h"
#include "scheduler/core/decisions.h"
#include "scheduler/turn/export_page.h"
#include "wire/checks.h"

namespace dcs::turn {

void Effects::perform(const core::Effect &effect) {
    std::visit([this](const auto &e) { act(e); }, effect);
}

void Effects::reply_error(ConnId conn, core::RequestId request, const GrainKey &key, const Status &why) {
    outside_.log(Level::error, "grain " + to_text(key) + ": " + why.text);
    outside_.send(conn, wire::error_reply(fail(why.code, "grain " + to_text(key) + ": " + why.text)), request);
}

const core::Grain *Effects::grain_for(ConnId conn, core::RequestId request, const GrainKey &key) {
    const core::Grain *grain = state_.grain(key);
    if (!grain) reply_error(conn, request, key, fail(Code::grain_unknown, "it was removed"));
    return grain;
}

Result<wire::GrainSpec> Effects::read_spec(const GrainKey &key, const core::Grain &grain) {
    auto packed = record::read_params(store_, key, grain);
    if (!packed) return packed.status();
    auto spec = wire::unpack_spec(*packed);
    if (!spec) return fail(Code::io_error, "its recorded parameters cannot be decoded");
    return spec;
}

// What the scrub has found damaged is read through again each time: it may have been restored.
record::Verified *Effects::verified(const GrainKey &key) {
    return scrub_.found().count(key) == 0 ? &verified_ : nullptr;
}

void Effects::act(const core::Reply &e) {
    const auto *reply = std::get_if<wire::QueryReply>(&e.message);
    if (!reply) {
        failpoint("turn.reply.before_send");
        outside_.send(e.conn, e.message, e.request);
        failpoint("turn.reply.after_send");
        return;
    }
    wire::QueryReply completed = *reply;
    completed.system.pid = about_.pid;
    completed.system.version = about_.version;
    completed.system.turn = store_.turn();
    completed.system.up_s = static_cast<std::int64_t>((outside_.now() - about_.started).seconds());
    if (completed.system.epoch != 0) complete(completed.system);  // it was asked for
    outside_.send(e.conn, std::move(completed), e.request);
}

void Effects::complete(wire::SystemRow &row) {
    figures_.tell(state_, outside_.now(), row);
    row.clock_s = outside_.wall_ms() / 1000;
    if (ages_.judge(outside_.now(), outside_.wall_ms()) == AgeClock::Verdict::jumped)
        row.ahead_s = ages_.jump_ms() / 1000;
    const wire::MirrorStatus copy = outside_.copy_of_store();
    if (copy.mode.empty() || copy.mode == "off") return;
    if (row.backups.empty()) row.backups.emplace_back();
    row.backups[0].mode = copy.mode;
    row.backups[0].copy = copy.detached ? "detached" : copy.state;
    row.backups[0].lag_s = copy.lag_s;
}

Result<wire::GrainResult> Effects::complete_result(const GrainKey &key, const core::Grain &grain,
                                                   wire::GrainResult head) {
    auto out = record::read_piece(store_, key, grain, wire::Stream::out, 0, limits::gwait_text_bytes, verified(key));
    if (!out) return out.status();
    auto err = record::read_piece(store_, key, grain, wire::Stream::err, 0, limits::gwait_text_bytes, verified(key));
    if (!err) return err.status();
    head.out = std::move(*out);
    head.err = std::move(*err);
    return head;
}

void Effects::act(const core::ReplyResult &e) {
    const core::Grain *grain = grain_for(e.conn, e.request, e.key);
    if (!grain) return;
    auto result = complete_result(e.key, *grain, e.head);
    if (!result) return reply_error(e.conn, e.request, e.key, result.status());
    failpoint("turn.result.before_send");
    outside_.send(e.conn, std::move(*result), e.request);
    failpoint("turn.result.after_send");
}

void Effects::act(const core::ReplyResults &e) {
    wire::GrainResults reply;
    for (const wire::GrainResult &head : e.heads) {
        const GrainKey key{e.session, head.grain};
        const core::Grain *grain = state_.grain(key);
        auto result = grain ? complete_result(key, *grain, head)
                            : Result<wire::GrainResult>(fail(Code::grain_unknown, "it was removed"));
        if (result) {
            reply.results.push_back(std::move(*result));
            continue;
        }
        // What is before it is handed out; the next call meets it first.
        if (reply.results.empty()) return reply_error(e.conn, e.request, key, result.status());
        break;
    }
    failpoint("turn.result.before_send");
    outside_.send(e.conn, std::move(reply), e.request);
    failpoint("turn.result.after_send");
}

Result<wire::Piece> Effects::read_piece(const GrainKey &key, const wire::Fetch &fetch) {
    const core::Grain &grain = *state_.grain(key);
    const std::uint64_t max = std::min<std::uint64_t>(fetch.max, limits::fetch_chunk_bytes);
    wire::Piece piece;
    if (fetch.stream == wire::Stream::input) {
        auto spec = read_spec(key, grain);
        if (!spec) return spec.status();
        piece.total = spec->input.size();
        if (fetch.offset < piece.total) piece.bytes = spec->input.substr(fetch.offset, max);
        return piece;
    }
    piece.total = record::length_of(grain, fetch.stream);
    auto bytes = record::read_piece(store_, key, grain, fetch.stream, fetch.offset, max, verified(key));
    if (!bytes) return bytes.status();
    piece.bytes = std::move(*bytes);
    return piece;
}

Result<bool> Effects::library_answers(const core::ReplyPiece &e, const core::Grain &grain) {
    const Peer peer{e.conn, e.request, false, e.key.session.user};
    if (e.fetch.stream == wire::Stream::file) {
        for (const wire::GrainFile &file : grain.files->outputs)
            if (file.name == e.fetch.file) contents_.send(peer, file.digest, e.fetch.offset, e.fetch.max);
        return true;
    }
    if (e.fetch.stream != wire::Stream::input || grain.files->digests.empty()) return false;
    auto spec = read_spec(e.key, grain);
    if (!spec) return spec.status();
    const wire::GrainFile *input = wire::input_of(*spec);
    if (input) contents_.send(peer, input->digest, e.fetch.offset, e.fetch.max);
    return input != nullptr;
}

// Readers go on where they stopped; what a turn adds is there as a whole.
void Effects::send_log(const core::ReplyPiece &e) {
    const core::Session *session = state_.session(e.key.session);
    if (!session)
        return outside_.send(
            e.conn,
            wire::error_reply(fail(Code::session_unknown, "session " + to_text(e.key.session) + " was removed")),
            e.request);
    wire::Piece piece{.total = session->info.events_length};
    auto bytes = record::read_events(store_, e.key.session, session->info, e.fetch.offset, e.fetch.max);
    if (!bytes) return outside_.send(e.conn, wire::error_reply(bytes.status()), e.request);
    piece.bytes = std::move(*bytes);
    outside_.send(e.conn, std::move(piece), e.request);
}

void Effects::act(const core::ReplyPiece &e) {
    if (e.fetch.stream == wire::Stream::log) return send_log(e);
    const core::Grain *grain = grain_for(e.conn, e.request, e.key);
    if (!grain) return;
    const auto answered = library_answers(e, *grain);
    if (!answered) return reply_error(e.conn, e.request, e.key, answered.status());
    if (*answered) return;
    auto piece = read_piece(e.key, e.fetch);
    if (!piece) return reply_error(e.conn, e.request, e.key, piece.status());
    if (e.fetch.live) {
        piece->recorded = piece->total;
        piece->incarnation = grain->lease;
    }
    outside_.send(e.conn, std::move(*piece), e.request);
}

void Effects::act(const core::ReplyDifference &e) {
    const core::Grain *grain = grain_for(e.conn, e.request, e.key);
    if (!grain) return;
    auto recorded = read_spec(e.key, *grain);
    if (!recorded) return reply_error(e.conn, e.request, e.key, recorded.status());
    auto now = wire::unpack_spec(e.now.bytes ? *e.now.bytes : std::string());
    DCS_REQUIRE(now, "the turn packed a spec that does not unpack");
    outside_.send(e.conn,
                  wire::error_reply(
                      fail(Code::grain_differs, "grain " + to_text(e.key) + " was submitted with other parameters:\n" +
                                                    wire::difference(*recorded, *now)),
                      e.key.grain),
                  e.request);
}

Status Effects::complete_row(const GrainKey &key, wire::GrainRow &row) {
    const core::Grain *grain = state_.grain(key);
    if (!grain) return fail(Code::grain_unknown, "it was removed");
    auto spec = read_spec(key, *grain);
    if (!spec) return spec.status();
    row.argv = std::move(spec->argv);
    row.label = std::move(spec->label);
    row.directory = std::move(spec->directory);
    row.env = std::move(spec->env);
    auto message = record::read_message(store_, key, *grain);
    if (message) row.message = std::move(*message);
    return message.status();
}

void Effects::act(const core::ReplyGrainDetail &e) {
    wire::QueryReply reply;
    for (wire::GrainRow row : e.rows) {
        const Status s = complete_row({e.key.session, row.grain}, row);
        if (s) reply.grains.push_back(std::move(row));
        else if (row.grain == e.key.grain) return reply_error(e.conn, e.request, e.key, s);
    }
    act(core::Reply{e.conn, e.request, std::move(reply)});
}

void Effects::act(const core::ReplyExport &e) {
    auto page = export_page(state_, store_, e.key, e.after, e.most);
    if (page) return outside_.send(e.conn, std::move(*page), e.request);
    const Status &why = page.status();
    outside_.log(Level::error, "export: " + why.text);
    outside_.send(e.conn, wire::error_reply(why), e.request);
}

void Effects::act(const core::ReplyDoctor &e) {
    wire::DoctorReply reply{e.problems};
    reply.problems.insert(reply.problems.end(), about_.problems.begin(), about_.problems.end());
    if (const Duration wait = ages_.trusted_from() - outside_.now(); wait.ns > 0)
        if (auto row = core::held_back(state_, ages_.held_ms(), wait)) reply.problems.push_back(std::move(*row));
    for (wire::ProblemRow &row : outside_.more_problems()) reply.problems.push_back(std::move(row));
    scrub_.look_again(store_, state_);
    for (const auto &[key, damages] : scrub_.found())
        for (const auto &[part, damage] : damages) {
            wire::ProblemRow row{"grain " + to_text(key), damage.place.path,
                                 damage.why.substr(std::min(damage.why.size(), damage.why.find(": ") + 2)),
                                 "reading it fails; if the grain needs it to start, the start is retried",
                                 "restore the file, or kill the grain and submit it under another number"};
            if (key.grain < 0) {
                row.entity = "event log of session " + to_text(key.session);
                row.affects = "the session itself keeps running; its history is incomplete";
                row.advice = "restore the file while the scheduler is stopped";
            }
            reply.problems.push_back(std::move(row));
        }
    for (const auto &[digest, what] : contents_.damaged())
        if (state_.contents.count(digest) != 0)
            reply.problems.push_back({"library", library::path_of(digest), what,
                                      "grains that name it cannot start or be read",
                                      "submit a grain with the same file to upload it again"});
    const auto room = store_.space();
    const std::string path = outside_.store_path(), whose = path.empty() ? "" : ", that of " + path + ",";
    if (room && room->free_bytes < limits::library_leaves_bytes)
        reply.problems.push_back(
            {"backing store", "",
             "its disk" + whose +
                 (room->free_bytes == 0 ? " is full"
                                        : " has only " + std::to_string(room->free_bytes >> 20) + " MiB free"),
             room->free_bytes == 0
                 ? "calls that need room, such as submissions, are refused, and results of grains wait"
                 : "new programs, files and images of grains are refused below " +
                       std::to_string(limits::library_leaves_bytes >> 20) + " MiB" +
                       (room->free_bytes < limits::disk_low_bytes
                            ? ", and every call soon: those that need more room than there is"
                            : ""),
             "remove closed sessions (dcs session clean), or free other space on this disk"});
    if (room && room->free_files < limits::disk_low_files)
        reply.problems.push_back(
            {"backing store", "inodes",
             "its disk" + whose + " can hold only " + std::to_string(room->free_files) + " more files (free inodes)",
             "calls that need new files, such as submissions, are refused soon",
             "remove closed sessions (dcs session clean), or other files on this disk"});
    if (room && !room->reserve)
        reply.problems.push_back({"backing store", "reserve", "its reserve for a full disk is used up",
                                  "every call that needs more room is refused",
                                  "free disk space; the next call recreates the reserve"});
    // As many as a list has rows: a longer list would not help the reader.
    if (reply.problems.size() > limits::query_rows) reply.problems.resize(limits::query_rows);
    outside_.send(e.conn, std::move(reply), e.request);
}

void Effects::act(const core::SendServer &e) {
    const bool ack = std::holds_alternative<wire::ReportAck>(e.message);
    const bool withdraw = std::holds_alternative<wire::Withdraw>(e.message);
    if (ack) failpoint("turn.ack.before_send");
    if (withdraw) failpoint("turn.withdraw.before_send");
    outside_.send(e.conn, e.message, core::no_request);
    if (ack) failpoint("turn.ack.after_send");
    if (withdraw) failpoint("turn.withdraw.after_send");
}

Status Effects::complete_launch(const GrainKey &key, const core::Grain &grain, wire::Launch &launch) {
    auto spec = read_spec(key, grain);
    if (!spec) return spec.status();
    auto checkpoint = record::read_checkpoint(store_, key, grain);
    if (!checkpoint) return checkpoint.status();
    if (grain.course->input_position > wire::input_length(*spec))
        return fail(Code::io_error, "its recorded input is shorter than the part that it has read");
    launch.argv = std::move(spec->argv);
    launch.env = std::move(spec->env);
    launch.directory = std::move(spec->directory);
    launch.checkpoint_length = checkpoint->size();
    launch.input_base = grain.course->input_position;
    launch.input = std::move(*checkpoint);
    const bool input_is_content = wire::input_of(*spec) != nullptr;
    const core::Host *host = state_.host(grain.runs_on());
    for (wire::GrainFile &file : spec->files)
        if (file.binary_class.empty() || (host && file.binary_class == core::binary_class_of(*host)))
            launch.files.push_back(std::move(file));
    if (input_is_content) return Status::ok();  // the server appends it
    const std::uint64_t rest = planted("turn.input_from_the_start") ? 0 : grain.course->input_position;
    launch.input.append(spec->input, rest, std::string::npos);
    return Status::ok();
}

void Effects::act(const core::SendLaunch &e) {
    const core::Grain *grain = state_.grain(e.key);
    // A later input of the same turn took the lease back: no host may start it now.
    if (!grain || grain->status() != core::GrainStatus::running || grain->lease != e.head.incarnation) return;
    wire::Launch launch = e.head;
    if (Status s = complete_launch(e.key, *grain, launch); !s) {
        outside_.log(Level::error, "grain " + to_text(e.key) + " cannot be launched: " + s.text +
                                       "; the scheduler tries again; kill the grain if the file is lost");
        wire::LaunchResult result;
        result.key = wire::wire_of(e.key);
        result.incarnation = e.head.incarnation;
        result.code = static_cast<std::int32_t>(Code::io_error);
        result.text = s.text;
        failed_.push_back(core::ServerLaunchResult{e.conn, grain->runs_on(), std::move(result)});
        return;
    }
    failpoint("turn.launch.before_send");
    outside_.send(e.conn, std::move(launch), core::no_request);
    failpoint("turn.launch.after_send");
}

void Effects::act(const core::Reread &e) {
    const Status s = outside_.reread_settings(e.move_grains);
    outside_.log(Level::info, "audit: " + e.user + " asked to have the settings read again: " +
                                  (s ? "done" : std::string(code_name(s.code)) + ", " + s.text));
    if (s) return outside_.send(e.conn, wire::Done{}, e.request);
    outside_.send(e.conn, wire::error_reply(fail(s.code, "the old settings remain in effect: " + s.text)), e.request);
}

void Effects::act(const core::SendCertificate &e) {
    auto issued = outside_.issue_certificate(e.host, e.public_key, e.role);
    if (issued) return outside_.send(e.conn, std::move(*issued), e.request);
    outside_.log(Level::error, "host " + e.host + " gets no certificate: " + issued.status().text);
    outside_.send(e.conn, wire::error_reply(issued.status()), e.request);
}

void Effects::act(const core::SendProgram &e) {
    auto issued = outside_.issue_program(e);
    if (!issued) {
        outside_.log(Level::error, "a control program of " + e.user + " on host " + e.host +
                                       " gets no certificate: " + issued.status().text);
        return outside_.send(e.conn, wire::error_reply(issued.status()), e.request);
    }
    if (e.token.empty()) return outside_.send(e.conn, wire::Renewed{std::move(issued->certificate)}, e.request);
    issued->token = e.token;
    outside_.send(e.conn, std::move(*issued), e.request);
}

void Effects::act(const core::RemoveHostLine &e) {
    const Status s = outside_.remove_host_line(e.host);
    if (s) return outside_.send(e.conn, wire::Done{}, e.request);
    const std::string text = "host " + e.host +
                             " is removed from the pool and its certificate is revoked, but its "
                             "line is still in the host table: remove it by hand: " +
                             s.text;
    outside_.send(e.conn, wire::error_reply(fail(s.code, text)), e.request);
}

void Effects::act(const core::CloseConnection &e) { closed_.push_back(e.conn); }

}  // namespace dcs::turn
