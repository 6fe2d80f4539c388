// What an imported session must hold: one thing wrong at a time, in fields and in text, is refused by its name.
#include "wire/checks.h"

#include <functional>

#include "base/limits.h"
#include "samples.h"
#include "support/catch.h"
#include "wire/json.h"
#include "wire/session_text.h"

using namespace dcs;
using namespace dcs::wire;

namespace {

ExportedGrain finished() {
    ExportedGrain g;
    g.grain = 3, g.state = "finished", g.result_index = 0, g.host = "h1", g.nogo = {"h2", "H_3"};
    g.spec.argv = {"/bin/x"}, g.spec.env = {"A=1"};
    for (ExportedStream *s : {&g.input, &g.out, &g.err, &g.checkpoint, &g.message}) s->whole = true;
    return g;
}
ExportedGrain ready() {
    ExportedGrain g = finished();
    g.state = "ready", g.result_index = -1, g.queued = true, g.queue = 5;
    return g;
}
void fill(ExportedStream &s, std::size_t length) { s = {length, true, std::string(length, 'x')}; }
GrainFile content(FileRole role, const std::string &name) { return {role, name, std::string(32, 'd'), 7, ""}; }

using Change = std::function<void(ExportedGrain &)>;
std::string why_no_session(ExportedGrain g, const Change &change) {
    change(g);
    SessionCheck check;
    const auto wrong = check.add(g);
    return wrong ? wrong->why : "";
}
using G = ExportedGrain;

struct Wrongly {
    const char *expected;
    Change change;
};
const std::vector<Wrongly> of_finished = {
    {"\"argv\" has no first entry", [](G &g) { g.spec.argv.clear(); }},
    {"\"argv\" has no first entry", [](G &g) { g.spec.argv = {""}; }},
    {"\"argv\" and \"env\" have more than 4096 entries", [](G &g) { g.spec.argv.resize(limits::argv_items); }},
    {"\"argv\" has a NUL byte", [](G &g) { g.spec.argv.emplace_back(1, '\0'); }},
    {"\"env\" has a NUL byte", [](G &g) { g.spec.env[0] += '\0'; }},
    {"\"argv\" and \"env\" have more than 1048576 bytes",
     [](G &g) { g.spec.env[0].resize(limits::argv_env_bytes, 'x'); }},
    {"it must be NAME=value", [](G &g) { g.spec.env[0] = "A"; }},
    {"it must be NAME=value", [](G &g) { g.spec.env[0] = "=1"; }},
    {"\"directory\" is not a path", [](G &g) { g.spec.directory.resize(limits::path_bytes + 1, 'x'); }},
    {"\"directory\" is not a path", [](G &g) { g.spec.directory = std::string(1, '\0'); }},
    {"\"label\" has more than", [](G &g) { g.spec.label.resize(limits::label_bytes + 1, 'x'); }},
    {"\"usage\" has an impossible figure", [](G &g) { g.usage.user_us = -1; }},
    {"\"usage\" has an impossible figure", [](G &g) { g.usage.out_blocks = INT64_MAX; }},
    {"attempts is ", [](G &g) { g.spec.demands.attempts = 0; }},
    {"attempts is ", [](G &g) { g.spec.demands.attempts = 256; }},
    {"thrash is -1: it must be 0 to 2147483647", [](G &g) { g.spec.demands.thrash = -1; }},
    {"notice is -1", [](G &g) { g.spec.demands.notice = -1; }},
    {"cores is -1: it must be 0 to 65536", [](G &g) { g.spec.demands.cores = -1; }},
    {"memory_mb is -1", [](G &g) { g.spec.demands.memory_mb = -1; }},
    {"wall_s is -1", [](G &g) { g.spec.demands.wall_s = -1; }},
    {"\"failures\" is more", [](G &g) { g.failures = -1; }},
    {"\"failures\" is more", [](G &g) { g.failures = g.spec.demands.attempts + 1; }},
    {"\"sequence\" is impossible", [](G &g) { g.sequence = INT32_MAX; }},
    {"\"result\" is missing", [](G &g) { g.result_index = -1; }},
    {"\"queue\" must be null", [](G &g) { g.queued = true; }},
    {"\"out\" is incomplete", [](G &g) { g.out.whole = false; }},
    {"\"out\" is incomplete", [](G &g) { g.out.length = 1; }},
    {"\"input\" occurs twice", [](G &g) { g.spec.input = "x"; }},
    {"\"input\" has", [](G &g) { fill(g.input, limits::input_bytes + 1); }},
    {"\"message\" has", [](G &g) { fill(g.message, limits::message_bytes + 1); }},
    {"the input occurs twice", [](G &g) { fill(g.input, 1), g.spec.files = {content(FileRole::input, "")}; }},
    {"\"input_position\" is beyond", [](G &g) { g.input_position = 1; }},
    {"\"input_position\" is beyond", [](G &g) { g.input_position = 8, g.spec.files = {content(FileRole::input, "")}; }},
    {"\"checkpoint\" and unread input", [](G &g) { fill(g.checkpoint, limits::restart_bytes + 1); }},
    {"\"checkpoint\" and unread input",
     [](G &g) { fill(g.checkpoint, limits::restart_bytes + 1), g.spec.files = {content(FileRole::input, "")}; }},
    {"does not name a content", [](G &g) { g.spec.files = {{FileRole::output, "o", "short", 7, ""}}; }},
    {"does not name a content",
     [](G &g) { g.spec.files = {content(FileRole::output, "o")}, g.spec.files[0].size = limits::content_bytes + 1; }},
    {"\"files\": ", [](G &g) { g.spec.files = {content(FileRole::data, "../x")}; }},
    {"\"grain\" must not be negative", [](G &g) { g.grain = -1; }},
    {"\"state\" must be", [](G &g) { g.state = "gone"; }},
    {"\"host\" is not", [](G &g) { g.host = ".h"; }},
    {"\"host\" is not", [](G &g) { g.host = "-h"; }},
    {"\"host\" is not", [](G &g) { g.host = "a b"; }},
    {"\"host\" is not", [](G &g) { g.host = std::string(65, 'h'); }},
    {"\"nogo\" has an entry", [](G &g) { g.nogo[0].clear(); }},
    {"\"nogo\" names a host twice", [](G &g) { g.nogo[1] = g.nogo[0]; }},
    {"", [](G &g) { g.host = "a.b_c-D9", g.spec.files = {content(FileRole::output, "o")}; }},
    {"", [](G &g) { g.input_position = 7, g.spec.files = {content(FileRole::input, "")}; }}};
const std::vector<Wrongly> of_ready = {
    {"\"failures\" leaves no attempt", [](G &g) { g.failures = g.spec.demands.attempts; }},
    {"\"result\" must be null", [](G &g) { g.result_index = 0; }},
    {"has a digest, but the grain is ready", [](G &g) { g.spec.files = {content(FileRole::output, "o")}; }},
    {"", [](G &g) { g.state = "running", g.queued = false, g.host.clear(); }},
    {"", [](G &g) { g.state = "killed", g.queued = false, g.failures = g.spec.demands.attempts; }}};

std::string refusal(const std::string &line) {
    const auto read = grain_of_line(line);
    return read ? "" : read.status().text;
}
std::string changed(std::string text, const std::string &from, const std::string &to) {
    const std::size_t at = text.find(from);
    INFO(from << " in " << text);
    REQUIRE(at != std::string::npos);
    return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("one thing wrong with a grain") {
    for (const auto &[list, base] : {std::pair{&of_finished, finished()}, std::pair{&of_ready, ready()}})
        for (const Wrongly &w : *list) {
            const std::string said = why_no_session(base, w.change);
            INFO(w.expected << " / " << said);
            CHECK(said.empty() == (*w.expected == '\0'));
            CHECK(said.find(w.expected) != std::string::npos);
        }
}

TEST_CASE("one thing wrong between the grains of a session") {
    const ExportedSession good{"ann", 3, "prog", "terminated", 1, 0, 1, 2};
    const auto said = [&](const std::function<void(ExportedSession &, G &, G &)> &change) -> std::string {
        ExportedSession head = good;
        G one = finished(), two = ready();
        two.grain = 5;
        change(head, one, two);
        SessionCheck check;
        for (const G *g : {&one, &two})
            if (const auto wrong = check.add(*g)) return wrong->why;
        const auto wrong = check.finish(head);
        return wrong ? wrong->why : "";
    };
    using S = ExportedSession;
    CHECK(said([](S &, G &, G &) {}).empty());
    CHECK(said([](S &, G &, G &two) { two.grain = 3; }).find("occurs twice") != std::string::npos);
    CHECK(said([](S &, G &, G &two) { two.grain = 2; }).find("ascending order") != std::string::npos);
    CHECK(said([](S &head, G &, G &) { head.ident = ""; }).find("\"ident\"") == 0);
    CHECK(said([](S &head, G &, G &) { head.grains = 3; }).find("\"grains\" says 3") == 0);
    CHECK(said([](S &head, G &, G &) { head.acknowledged = -1; }).find("in ascending order") != std::string::npos);
    CHECK(said([](S &head, G &, G &) { head.acknowledged = 2; }).find("in ascending order") != std::string::npos);
    CHECK(said([](S &head, G &, G &) { head.handed_out = 2; }).find("in ascending order") != std::string::npos);
    CHECK(said([](S &head, G &, G &) { head.results = 65569; }).find("\"results\" exceeds 65568") != std::string::npos);
    CHECK(said([](S &, G &one, G &) { one.result_index = 1; }).find("has only 1 results") != std::string::npos);
    CHECK(said([](S &, G &, G &two) { two = finished(), two.grain = 5; }).find("like that of grain 3") !=
          std::string::npos);
    CHECK(said([](S &head, G &one, G &) {
              one = ready(), head.results = head.handed_out = 0;
          }).find("\"queue\" is 5") == 0);
}

TEST_CASE("one thing wrong in a line") {
    GrainLine line;
    line.grain = ready();
    line.grain.spec.files = {content(FileRole::data, "f")};
    line.out.in_file = true, line.out.file = "files/3.out", line.out.offset = 1, line.out.length = 2,
    line.out.crc = 0xabcdef01;
    const std::string good = to_line(line);
    REQUIRE(refusal(good).empty());
    CHECK(to_line(*grain_of_line(good)) == good);
    const std::vector<std::array<std::string, 3>> wrong = {
        {"\"urgent\":false", "\"urgent\":1", "true or false"},
        {"\"urgent\":false", "\"urgent\":null", "is null"},
        {"\"thrash\":0", "\"thrash\":true", "a boolean"},
        {"\"thrash\":0", "\"thrash\":1.5", "a whole number"},
        {"\"thrash\":0", "\"thrash\":99999999999", "must be -2147483648 to"},
        {"\"thrash\":0", "\"thrash\":-1", "thrash is -1: it must be 0 to 2147483647"},
        {"\"label\":\"\"", "\"label\":{\"hex\":1}", "hex"},
        {"\"label\":\"\"", "\"label\":{\"hex\":\"0\"}", "pairs of hex digits"},
        {"\"label\":\"\"", "\"label\":[]", "is a list"},
        {"\"label\":\"\"", "\"label\":{\"hex\":\"0g\"}", "pairs of hex digits"},
        {"\"argv\":[\"/bin/x\"]", "\"argv\":\"x\"", "a list of strings"},
        {"\"label\"", "\"table\"", "is missing"},
        {"{\"grain\"", "{\"new\":1,\"grain\"", "unknown key \"new\""},
        {"\"usage\":{", "\"usage\":7,\"gone\":{", "an object"},
        {"\"offset\":1,\"length\":2", "\"offset\":1", "is missing beside"},
        {"abcdef01", "abcdef", "8 hex digits"},
        {"\"abcdef01\"", "1", "8 hex digits"},
        {"\"err\":\"\"", "\"err\":1", "a string or"},
        {"\"files\":[{", "\"files\":[1,{", "a list of objects"},
        {"\"files\":[", "\"files\":{},\"none\":[", "a list of at most"},
        {"\"role\":\"data\"", "\"role\":\"date\"", "\"role\" must be"},
        {"6464", "64", "64 hex digits"},
        {"6464", "64xy", "64 hex digits"},
        {"\"offset\":1", "\"offset\":-1", "must be 0 to"},
        {"\"queue\":5", "\"queue\":\"5\"", "a number"}};
    for (const auto &[from, to, expected] : wrong) {
        const std::string said = refusal(changed(good, from, to));
        INFO(to << ": " << said);
        CHECK(said.find(expected) != std::string::npos);
    }
    std::string items = "\"x\"", objects = "{}";
    for (std::size_t i = 0; i < limits::argv_items; ++i) items += ",\"x\"";
    for (std::size_t i = 0; i < limits::grain_files; ++i) objects += ",{}";
    CHECK(refusal(changed(good, "[\"/bin/x\"]", "[" + items + "]")).find("the limit is 4096") != std::string::npos);
    CHECK(refusal(changed(good, "\"files\":[", "\"files\":[" + objects + ",")).find("a list of at most") !=
          std::string::npos);
    CHECK(refusal("[]").find("the line is a list") == 0);
    CHECK(refusal(good + "{}").find("bad JSON") == 0);
    CHECK(refusal("{\"grain\":1").find("bad JSON") == 0);
}

TEST_CASE("one thing wrong in the head of an export") {
    const ExportedSession session{"ann", 3, "prog", "terminated", 9, 7, 8, 12};
    const std::string good = to_text(session);
    REQUIRE(session_of_text(good));
    const std::vector<std::array<std::string, 3>> wrong = {
        {"export 1", "export 2", "1: it does not begin"},
        {"user: ", "user:", "2: it is not"},
        {"user", "owner", "2: unknown"},
        {"state: ", "user: ", "occurs twice"},
        {"grains: 12\n", "", "\"grains\" is missing"},
        {"number: 3", "number: -3", "0 to 2147483647"},
        {"number: 3", "number: x", "0 to 2147483647"},
        {"number: 3", "number: 3x", "0 to 2147483647"},
        {"results: 9", "results: 9999999999", "\"results\" must be"},
        {"acknowledged: 7", "acknowledged: ", "\"acknowledged\" must be"},
        {"handed out: 8", "handed out: a", "\"handed out\" must be"},
        {"grains: 12", "grains: -1", "\"grains\" must be"},
        {"grains: 12", "grains: 2147483648", "\"grains\" must be"},
        {"terminated", "gone", "active or terminated"},
        {"results: 9", "results: 6", "handed out than exist"},
        {"acknowledged: 7", "acknowledged: 9", "acknowledged than were handed out"}};
    for (const auto &[from, to, expected] : wrong) {
        const auto read = session_of_text(changed(good, from, to));
        INFO(to);
        REQUIRE_FALSE(read);
        CHECK(read.status().text.find(expected) != std::string::npos);
    }
    CHECK(session_of_text(changed(good, "terminated\n", "active\n\n")));
    CHECK(session_of_text(good.substr(0, good.size() - 1)));
}

TEST_CASE("plain text and UTF-8, at their edges") {
    CHECK(plain_text("a\n\tb"));
    for (const char *bad : {"\x01", "\x7f", "\r", "\xff"}) CHECK_FALSE(plain_text(bad));
    for (const char *good : {"\xc2\x80", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"})
        CHECK(valid_utf8(good));
    for (const char *bad :
         {"\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xc1\x80", "\xf5\x80", "\xc2"})
        CHECK_FALSE(valid_utf8(bad));
}

TEST_CASE("the files of a submission that are left") {
    GrainSpec spec;
    spec.argv = {"/bin/x"};
    const auto said = [&](std::vector<GrainFile> files) {
        spec.files = std::move(files);
        return check_files(spec).text;
    };
    GrainFile program = content(FileRole::program, "");
    CHECK(said({program}).empty());
    program.binary_class = std::string(limits::name_bytes + 1, 'x');
    CHECK(said({program}).find("binary class") != std::string::npos);
    program.binary_class.clear();
    CHECK(said({program, program}).find("every binary class") != std::string::npos);
    CHECK_FALSE(said({{FileRole::output, "o", "", 7, ""}}).empty());
    std::vector<GrainFile> many;
    for (int i = 0; i < 100; ++i) many.push_back(content(FileRole::data, std::to_string(i) + std::string(1000, 'n')));
    CHECK_FALSE(said(many).empty());
    spec.argv = {""};
    CHECK_FALSE(said({program}).empty());
    spec.argv.clear();
    CHECK_FALSE(said({program}).empty());
    spec.files = {content(FileRole::input, "")};
    CHECK(input_length(spec) == 7);
}
