// dcs trace: pictures of what became of a session, from its event log.
#include <cstdio>

#include "commands/dcs/frame/call.h"
#include "commands/dcs/query/session_events.h"
#include "flow.h"

namespace dcs::commands {
namespace {

// More grains that nothing tells apart become one box.
constexpr std::size_t together = 6;

std::string title_of(const Session &session, const char *what) {
    const std::string name = session.user + "/" + std::to_string(session.session);
    return std::string(what) + " of session " + name + ", " + session.ident;
}

int trace(const Call &call) {
    const Arguments &arguments = call.arguments;
    const auto svg = arguments.value("svg"), graph = arguments.value("graph"), dot = arguments.value("dot");
    if (!svg && !graph && !dot)
        return call.fail(usage_failure("dcs trace: no output is named",
                                       "--svg FILE (time line), --graph FILE (dataflow, SVG) "
                                       "or --dot FILE (dataflow, for graphviz)"));
    const SessionsAnswer answer = sessions_of(arguments.words);
    if (answer.failure) return call.fail(*answer.failure);
    if (answer.sessions.size() != 1)
        return call.fail(usage_failure("dcs trace: " + arguments.words[0] + " is not one session"));
    const Session &session = answer.sessions[0];
    const auto history = history_of(session);
    if (!history) return call.fail(failure_of("the event log of session " + session.name(), history.status()));
    if (!history->whole)
        std::fprintf(stderr,
                     "dcs trace: the log of session %s does not begin with its opening: what came before is missing\n",
                     session.name().c_str());
    std::vector<std::string> files;
    const auto draw = [&](const std::optional<std::string> &path, auto make) {
        if (!path) return Status::ok();
        files.push_back(json_string(*path));
        return write_document(*path, make());
    };
    Status s = draw(svg, [&] { return time_svg(*history, title_of(session, "Time line")); });
    const Flow flow = graph || dot ? flow_of(*history, together) : Flow();
    const std::string title = title_of(session, "Dataflow");
    if (s) s = draw(graph, [&] { return flow_svg(flow, title); });
    if (s) s = draw(dot, [&] { return flow_dot(flow, title); });
    if (!s) return call.fail(failure_of("dcs trace", s));
    if (call.format == Format::json) print_document("dcs.trace/1", "files", json_array(files));
    return exits::ok;
}

}  // namespace

extern const Verb trace_verb = {
    .noun = "",
    .name = "trace",
    .words = "SEL",
    .summary = "draw the time line and dataflow of a session",
    .about = R"(Draws charts of a session from its event log: the time line of its hosts, with checkpoints and
moves of grains; and the dataflow graph of its computation, in which each decision of the control program
follows from the results that it received before.

Examples:
  dcs trace last --svg time.svg
  dcs trace 7 --graph flow.svg
  dcs trace 7 --dot - | dot -Tpdf >flow.pdf
)",
    .options = {{"svg", 0, "FILE", any_text, "the time line, as SVG"},
                {"graph", 0, "FILE", any_text, "the dataflow graph, as SVG"},
                {"dot", 0, "FILE", any_text, "the dataflow graph in the language of graphviz"}},
    .notes = R"(SEL is NUM, USER/NUM or last (your session that was opened last). At least one FILE; - is
standard output. More than six grains that one decision submitted, whose results one decision took, and that ended
alike are one box. The session may be active or closed.
)",
    .run = trace};

}  // namespace dcs::commands
