// dcs_grainserver fetches, places, keeps and puts contents, whenever it is killed; the scheduler and its library
// are played by the test.
#include <map>

#include "pki/digest.h"
#include "server_bench.h"

using namespace bench;
using wire::FileRole;
using wire::Verdict;

namespace {
const char *job_program =
    "#!/bin/sh\n"
    "cat > big\n"
    "cat in/data > sub/small\n"
    ": > empty\n"
    "ln -s /etc/passwd link\n"
    "./tool\n";

// The scheduler's side of one grain with files, over any number of lives of the server.
struct Desk {
    Pool &p;
    std::map<std::string, std::string> library;
    std::map<std::string, std::string> coming;
    int wants = 0, puts = 0;
    int kill_at_want = 0, kill_at_put = 0;  // the server, when so many have come; 0: never
    wire::GrainReport report;
    bool ended = false, started = false;

    wire::GrainFile file(FileRole role, const std::string &name, const std::string &bytes) {
        const std::string digest = pki::sha256_text(bytes);
        library[digest] = bytes;
        return {role, name, digest, bytes.size(), ""};
    }
    void answer(const wire::WantContent &m) {
        const auto found = library.find(m.digest);
        if (found == library.end())
            return p.scheduler.send(wire::ContentPiece{m.digest, 0, 0, "", static_cast<int>(Code::not_found), "none"});
        REQUIRE(m.offset <= found->second.size());
        p.scheduler.send(
            wire::ContentPiece{m.digest, found->second.size(), m.offset, found->second.substr(m.offset, m.max), 0, ""});
    }
    void answer(const wire::PutContent &m) {
        std::string &bytes = coming[m.digest];
        if (m.offset == 0) bytes.clear();
        REQUIRE(m.offset == bytes.size());
        bytes += m.bytes;
        if (bytes.size() == m.total) {
            REQUIRE(pki::sha256_text(bytes) == m.digest);
            library[m.digest] = bytes;
        }
        p.scheduler.send(wire::ContentTaken{m.digest, bytes.size(), 0, ""});
    }
    void kill_server() {
        p.stop(SIGKILL);
        coming.clear();
        p.start();
        const wire::FirstCall call = p.greet();
        REQUIRE(call.held.size() == 1);  // it continues with the grain
    }
    void take(const wire::AnyMessage &m) {
        if (const auto *want = std::get_if<wire::WantContent>(&m)) {
            if (++wants == kill_at_want) return kill_server();
            answer(*want);
        } else if (const auto *put = std::get_if<wire::PutContent>(&m)) {
            if (++puts == kill_at_put) return kill_server();
            answer(*put);
        } else if (const auto *result = std::get_if<wire::LaunchResult>(&m)) {
            INFO(result->text);
            REQUIRE(result->ok);
            started = true;
        } else if (const auto *r = std::get_if<wire::GrainReport>(&m)) {
            if (!r->ended) return;
            report = *r;
            ended = true;
            p.scheduler.send(wire::ReportAck{r->key, r->incarnation, r->last_seq, true, Verdict::taken});
        }
    }
    void serve() {
        const Instant deadline = boot_clock() + seconds(120);
        while (!ended && boot_clock() < deadline)
            if (const std::optional<wire::AnyMessage> m = p.scheduler.next(100)) take(*m);
        REQUIRE(ended);
    }
};
}  // namespace

TEST_CASE("a grain whose program, files and input are contents, and its outputs, whenever the server is killed") {
    Pool p;
    p.greet();
    Desk desk{p};
    const int moment = GENERATE(range(0, 6));
    if (moment == 1) desk.kill_at_want = 1;
    if (moment == 2) desk.kill_at_want = 5;
    if (moment == 3) desk.kill_at_put = 1;
    if (moment == 4) desk.kill_at_put = 3;
    if (moment == 5) desk.kill_at_want = 8, desk.kill_at_put = 6;
    std::string input;
    for (int i = 0; input.size() < 1'300'000; ++i) input += "line " + std::to_string(i) + "\n";
    wire::Launch m;
    m.key = {"ann", 3, 1};
    m.incarnation = 1;
    m.argv = {"job"};
    m.env = {"PATH=/usr/bin:/bin"};
    m.input = "state\n";
    m.checkpoint_length = m.input.size();
    m.input_base = 7;
    m.files = {desk.file(FileRole::program, "", job_program), desk.file(FileRole::input, "", input),
               desk.file(FileRole::data, "in/data", "staged"),
               desk.file(FileRole::executable, "tool", "#!/bin/sh\necho tool ran\n")};
    for (const char *name : {"big", "sub/small", "empty", "link", "none"})
        m.files.push_back({FileRole::output, name, "", 0, ""});
    p.scheduler.send(m);
    desk.serve();
    INFO(desk.report.reason + desk.report.err);
    REQUIRE(desk.report.exit_code == 0);
    REQUIRE(desk.report.out == "tool ran\n");
    REQUIRE(desk.report.files.size() == 5);
    const std::vector<std::string> expected = {"state\n" + input.substr(7), "staged", ""};
    for (std::size_t i = 0; i < expected.size(); ++i) {
        const wire::GrainFile &file = desk.report.files[i];
        REQUIRE(file.digest == pki::sha256_text(expected[i]));
        REQUIRE(file.size == expected[i].size());
        REQUIRE(desk.library[file.digest] == expected[i]);
    }
    REQUIRE(desk.report.files[3].digest.empty());
    REQUIRE(desk.report.files[4].digest.empty());
    REQUIRE(desk.report.reason.find("output link") != std::string::npos);
    if (desk.kill_at_want != 0) REQUIRE(desk.wants > desk.kill_at_want);
    if (desk.kill_at_put != 0) REQUIRE(desk.puts > desk.kill_at_put);
    if (moment != 0) return;
    desk.ended = false;  // a second grain of the same program fetches nothing
    desk.wants = 0;
    m.key.grain = 2;
    p.scheduler.send(m);
    desk.serve();
    REQUIRE(desk.wants == 0);
    REQUIRE(desk.report.out == "tool ran\n");
}

TEST_CASE("a content that the scheduler does not have keeps the grain from starting, in words") {
    Pool p;
    p.greet();
    wire::Launch m;
    m.key = {"ann", 3, 1};
    m.incarnation = 1;
    m.argv = {"/bin/true"};
    m.files = {{FileRole::data, "x", pki::sha256_text("x"), 1, ""}};
    p.scheduler.send(m);
    const auto want = p.scheduler.wait_for<wire::WantContent>();
    p.scheduler.send(wire::ContentPiece{want.digest, 0, 0, "", static_cast<int>(Code::not_found), "swept long ago"});
    const auto result = p.scheduler.wait_for<wire::LaunchResult>();
    REQUIRE_FALSE(result.ok);
    REQUIRE(result.code == static_cast<int>(Code::io_error));
    REQUIRE(result.text.find("swept long ago") != std::string::npos);
}
