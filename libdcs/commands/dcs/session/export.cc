// dcs session export.
#include <algorithm>
#include <cstdio>

#include "commands/dcs/query/scheduler.h"
#include "commands/dcs/frame/call.h"
#include "client/call.h"
#include "client/streams.h"
#include "commands/dcs/query/session_events.h"
#include "export_writer.h"
#include "report.h"
#include "commands/dcs/frame/table.h"
#include "commands/dcs/frame/pool_directory.h"
#include "wire/session_text.h"

namespace dcs::commands {
namespace {

// A running grain that checkpoints while its streams are fetched is read again.
constexpr int most_looks = 20;

Result<wire::ExportReply> page_of(const Session &session, std::int32_t after, std::int32_t most) {
    return ask_any<wire::ExportReply>(wire::ExportPage{session.user, session.session, after, most});
}

class Exporter {
public:
    Exporter(const Session &session, ExportWriter &writer) : session_(session), writer_(writer) {}

    // The session's head as it is to be written.
    Result<wire::ExportedSession> run(wire::ExportReply page);

private:
    Status add(wire::ExportedGrain grain);
    Result<wire::GrainLine> line_of(const wire::ExportedGrain &grain);
    Status keep(const wire::ExportedGrain &grain, const wire::ExportedStream &stream, wire::Stream which,
                const char *name, wire::StreamPlace &place);

    Status keep_contents(const wire::ExportedGrain &grain);

    const Session &session_;
    ExportWriter &writer_;
    bool active_ = false, unwritten_ = false;  // the latter: what failed is the directory that is written
    std::int32_t results_ = 0;
};

Status Exporter::keep(const wire::ExportedGrain &grain, const wire::ExportedStream &stream, wire::Stream which,
                      const char *name, wire::StreamPlace &place) {
    const std::string file = std::to_string(grain.grain) + "." + name;
    auto kept = Result<wire::StreamPlace>(place);
    if (stream.whole) {
        kept = writer_.keep(file, stream.content);
    } else {
        auto fetched = client::fetch_stream(this_pool(), session_.user, session_.session, grain.grain, which, {},
                                            stream.length, client::With::any);
        if (!fetched) return fetched.status();
        kept = writer_.keep(file, fetched->get());
    }
    unwritten_ = !kept;
    if (!kept) return kept.status();
    place = std::move(*kept);
    return Status::ok();
}

Result<wire::GrainLine> Exporter::line_of(const wire::ExportedGrain &grain) {
    wire::GrainLine line;
    using wire::Stream;
    if (Status s = keep(grain, grain.input, Stream::input, "input", line.input); !s) return s;
    if (Status s = keep(grain, grain.checkpoint, Stream::checkpoint, "checkpoint", line.checkpoint); !s) return s;
    if (Status s = keep(grain, grain.message, Stream::message, "message", line.message); !s) return s;
    if (Status s = keep(grain, grain.out, Stream::out, "out", line.out); !s) return s;
    if (Status s = keep(grain, grain.err, Stream::err, "err", line.err); !s) return s;
    return line;
}

// Returned files, and inputs of grains that have still to run; once, however many grains name a content.
Status Exporter::keep_contents(const wire::ExportedGrain &grain) {
    const auto keep_one = [&](const wire::GrainFile &file, wire::Stream which) {
        if (writer_.has_content(file.digest)) return Status::ok();
        auto fetched = client::fetch_stream(this_pool(), session_.user, session_.session, grain.grain, which, {},
                                            file.size, client::With::any, file.name);
        return fetched ? writer_.keep_content(file.digest, fetched->get()) : fetched.status();
    };
    const bool over = grain.state == "finished" || grain.state == "killed";
    for (const wire::GrainFile &file : grain.spec.files) {
        Status s;
        if (file.role == wire::FileRole::output && !file.digest.empty()) s = keep_one(file, wire::Stream::file);
        if (file.role == wire::FileRole::input && !over) s = keep_one(file, wire::Stream::input);
        if (!s) return s;
    }
    return Status::ok();
}

// Streams that do not come with the page must be of the same moment as their row.
bool same_moment(const wire::ExportedGrain &a, const wire::ExportedGrain &b) {
    return a.state == b.state && a.sequence == b.sequence && a.incarnation == b.incarnation &&
           a.checkpoint.length == b.checkpoint.length && a.message.length == b.message.length &&
           a.out.length == b.out.length && a.err.length == b.err.length;
}

Status Exporter::add(wire::ExportedGrain grain) {
    const bool whole =
        grain.out.whole && grain.err.whole && grain.checkpoint.whole && grain.message.whole && grain.input.whole;
    for (int look = 0; look < most_looks; ++look) {
        auto line = line_of(grain);
        const bool moves = active_ && !whole;
        if (!line && (!moves || unwritten_)) return line.status();
        if (moves) {
            auto again = page_of(session_, grain.grain - 1, 1);
            if (!again) return again.status();
            if (again->grains.empty() || again->grains[0].grain != grain.grain)
                return fail(Code::grain_unknown,
                            "grain " + std::to_string(grain.grain) + " was removed while it was exported");
            if (!line || !same_moment(grain, again->grains[0])) {
                grain = std::move(again->grains[0]);
                continue;
            }
        }
        results_ = std::max(results_, grain.result_index + 1);
        for (wire::ExportedStream *s : {&grain.input, &grain.out, &grain.err, &grain.checkpoint, &grain.message})
            s->content.clear();
        if (Status s = keep_contents(grain); !s) return s;
        line->grain = std::move(grain);
        return writer_.add(*line);
    }
    return fail(Code::io_error, "grain " + std::to_string(grain.grain) + " changes faster than it can be exported");
}

Result<wire::ExportedSession> Exporter::run(wire::ExportReply page) {
    for (;;) {
        active_ = active_ || page.head.state == "active";
        std::int32_t last = -1;
        for (wire::ExportedGrain &grain : page.grains) {
            last = grain.grain;
            if (Status s = add(std::move(grain)); !s) return s;
        }
        if (!page.more) break;
        if (last < 0) return fail(Code::protocol, "the scheduler repeats a page of grains");
        auto next = page_of(session_, last, 0);
        if (!next) return next.status();
        page = std::move(*next);
    }
    wire::ExportedSession head = std::move(page.head);
    head.grains = writer_.lines();
    if (!active_) return head;
    // Pages are of different moments: what finished meanwhile behind our back is not counted.
    head.state = "active";
    head.results = results_;
    head.handed_out = std::min(head.handed_out, head.results);
    head.acknowledged = std::min(head.acknowledged, head.handed_out);
    return head;
}

int tell(const Call &call, const Session &session, const std::string &directory, const wire::ExportedSession &head) {
    JsonObject row;
    row.add("session", session.session).add("user", session.user).add("directory", directory);
    row.add("grains", head.grains).add("state", head.state);
    const char *moments = head.state != "active" ? ""
                                                 : "\nit is active, so each page of grains is of a different moment; "
                                                   "only the export of a closed session is exact";
    return print_as_asked(
        call, JsonObject("dcs.session.export/1").add_raw("exported", row.text()), directory,
        "session " + session.name() + " exported to " + directory + ", " + counted(head.grains, "grain") + moments);
}

int export_it(const Call &call) {
    const auto &words = call.arguments.words;
    const SessionsAnswer answer = sessions_of({words[0]});
    if (answer.failure) return call.fail(*answer.failure);
    if (answer.sessions.size() != 1)
        return call.fail(usage_failure("dcs session export: " + words[0] + " is not one session"));
    const Session &session = answer.sessions[0];
    if (const auto html = call.arguments.value("html")) {
        if (words.size() == 1 && !call.arguments.has("files")) return export_report(session, *html, call);
        return call.fail(usage_failure("dcs session export: --html FILE excludes DIR and --files"));
    }
    const std::string directory =
        words.size() > 1 ? words[1] : "session-" + session.user + "-" + std::to_string(session.session);
    if (directory == "-")
        return call.fail(
            usage_failure("dcs session export: an export is a directory, which - is not",
                          "dcs session export " + words[0] + " DIR && tar -c DIR writes it as one stream"));
    const std::string what = "session " + session.name() + " was not exported";
    auto first = page_of(session, -1, 0);
    if (!first) return call.fail(failure_of(what, first.status()));
    ExportStyle style{.files = call.arguments.has("files"), .pack = first->head.grains > pack_above};
    auto writer = ExportWriter::create(directory, style);
    if (!writer) return call.fail(failure_of(what, writer.status()));
    auto head = Exporter(session, **writer).run(std::move(*first));
    if (!head) return call.fail(failure_of(what, head.status()));
    std::vector<wire::Event> events;
    if (Status s = EventSource(session).read(events); !s) return call.fail(failure_of(what, s));
    if (Status s = (*writer)->add_events(events); !s) return call.fail(failure_of(what, s));
    if (Status s = (*writer)->finish(*head); !s) return call.fail(failure_of(what, s));
    return tell(call, session, directory, *head);
}

}  // namespace

extern const Verb session_export_verb = {
    .noun = "session",
    .name = "export",
    .words = "SEL [DIR]",
    .summary = "write a session into a directory",
    .about = R"(Writes a session into a directory, as text files that you can read and edit:
`session` (user and counts), `grains` (one JSON object per line) and `files/` for long or binary streams.
`dcs session import` makes a session of the directory, in this pool or another one. With --html, a report instead: one
file for a browser or a mail, with figures, the time line, departures and dataflow.

Examples:
  dcs session export 7                   into session-<user>-7
  dcs session export 7 /data/seven --files
  dcs session export 7 --html seven.html
  dcs session export ann/3               another user's session: for root and the pool's owner
)",
    .options = {{"files", 0, nullptr, no_value,
                 "a file of its own for every stream (without it, sessions of more than 1000 grains pack\n"
                 "short ones into files/packed)"},
                {"html", 0, "FILE", some_text, "a report as one HTML file; - is standard output"}},
    .notes = R"(DIR must not exist, or be empty; it appears when the export is complete. The export of a closed session
is exact; an active one is exported page by page, each at a different moment.
)",
    .run = export_it};

}  // namespace dcs::commands
