// dcs session import.
#include <cstdio>

#include "commands/dcs/query/scheduler.h"
#include "base/limits.h"
#include "commands/dcs/frame/call.h"
#include "client/call.h"
#include "client/local_files.h"
#include "export_reader.h"
#include "export_writer.h"
#include "commands/dcs/frame/table.h"
#include "commands/dcs/frame/pool_directory.h"

namespace dcs::commands {
namespace {

// An upload is bound to its connection; it is begun again after each one that breaks.
constexpr int most_uploads = 5;

constexpr int patience_s = 60;

Status upload(PackedSession &session) {
    std::rewind(session.stream.get());
    wire::ImportPiece piece{.total = session.length};
    std::string buffer(limits::fetch_chunk_bytes, '\0');
    while (piece.offset < session.length) {
        const std::size_t n = std::fread(buffer.data(), 1, buffer.size(), session.stream.get());
        if (n == 0) return fail(Code::io_error, "the packed session cannot be read back");
        piece.bytes = buffer.substr(0, n);
        auto done = ask_any<wire::Done>(piece);
        if (!done) return done.status();
        piece.offset += n;
    }
    return Status::ok();
}

Status send(PackedSession &session, std::int32_t number, bool replace) {
    Status s;
    for (int attempt = 0; attempt < most_uploads; ++attempt) {
        s = upload(session);
        if (s) s = ask_any<wire::Done>(wire::ImportSession{number, replace, session.length, session.crc}).status();
        if (s.code != Code::not_found) return s;
    }
    return s;
}

// Brings what the library does not have, from files/ of the export.
Status bring_contents(const PackedSession &session, const std::string &directory) {
    std::vector<std::string> missing;
    for (auto it = session.contents.begin(); it != session.contents.end();) {
        wire::AskContents some;
        for (; it != session.contents.end() && some.digests.size() < limits::grain_files; ++it)
            some.digests.push_back(it->first);
        auto reply = ask_any<wire::MissingContents>(some);
        if (!reply) return reply.status();
        missing.insert(missing.end(), reply->digests.begin(), reply->digests.end());
    }
    for (const std::string &digest : missing) {
        const auto found = session.contents.find(digest);
        if (found == session.contents.end())
            return fail(Code::protocol, "the scheduler requests a content that was not offered");
        const std::string name = "files/" + content_file(digest);
        const auto file = open_exported(directory, content_file(digest));
        if (file.status().code == Code::not_found)
            return fail(Code::invalid, "the scheduler does not have " + to_text(found->second) + ", and there is no " +
                                           name + ": add that file, or submit a grain with it first");
        if (!file) return file.status();
        const Status s = client::upload_content(this_pool(), found->second, file->get(), name, client::With::any);
        if (!s) return s;
    }
    return Status::ok();
}

int tell(const Call &call, std::int32_t number, const wire::ExportedSession &head) {
    const JsonObject row = JsonObject().add("session", number).add("grains", head.grains).add("ident", head.ident);
    const std::string name = std::to_string(number);
    return print_as_asked(call, JsonObject("dcs.session.import/1").add_raw("imported", row.text()), name,
                          "session " + name + " imported, " + counted(head.grains, "grain") + "; its control program " +
                              head.ident + " can reopen it");
}

// What is wrong with the directory is no wrong use of the command.
Failure failure_with(const std::string &what, const Status &status) {
    Failure failure = failure_of(what, status);
    if (status.code == Code::invalid) failure.exit = exits::error;
    return failure;
}

int import(const Call &call) {
    const std::string &directory = call.arguments.words[0];
    auto session = read_export(directory);
    if (!session) {
        Failure failure = failure_with(directory, session.status());
        failure.hint = "nothing was sent; docs/SESSION_EXPORT.md describes the format";
        return call.fail(failure);
    }
    // A million grains are decided, written and synced before the answer comes.
    set_patience(patience_s);
    const auto number = static_cast<std::int32_t>(call.arguments.number("number").value_or(session->head.session));
    if (Status s = bring_contents(*session, directory); !s)
        return call.fail(failure_with(directory + " was not imported", s));
    if (Status s = send(*session, number, call.arguments.has("replace")); !s)
        return call.fail(failure_of(directory + " was not imported", s));
    return tell(call, number, session->head);
}

}  // namespace

extern const Verb session_import_verb = {
    .noun = "session",
    .name = "import",
    .words = "DIR",
    .summary = "create a session from an exported directory",
    .about = R"(Creates a closed session of yours from a directory that `dcs session export` wrote, in this pool or
another one; the directory may be edited by hand. All files are checked before anything is sent; an error names file
and line. The import takes effect as a whole or not at all. Grains that ran become ready, with their checkpoints.
The session's control program reopens it (d_reopen_ses) and continues.

Examples:
  dcs session import session-ann-7
  dcs session import session-ann-7 --number 8
  dcs session import session-ann-7 --replace       in the place of session 7, which must be closed
)",
    .options = {{"number", 0, "N", whole_number(0, INT32_MAX), "the session's number (default: the recorded one)"},
                {"replace", 0, nullptr, no_value, "replace the session of this number, which must be closed"}},
    .notes = R"(A number in use is refused without --replace.
)",
    .run = import};

}  // namespace dcs::commands
