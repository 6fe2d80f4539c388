// Hosts whose programs need another one to run them: an emulator.
#include "launcher_bench.h"

using namespace bench;

namespace {
std::string make_run_by(Place &p, std::vector<std::string> argv, std::vector<std::string> runner) {
    const std::string g = p.make(std::move(argv));
    Result<files::LaunchRecord> r = files::unpack_launch(get_file(p.path(g) + "/launch"));
    REQUIRE(r);
    r->runner = std::move(runner);
    put_file(p.path(g) + "/launch", files::pack(*r));
    return g;
}
}  // namespace

TEST_CASE("a runner gets its own words, then the program's path and arguments") {
    Place p;
    const std::string runner = p.dir.path + "/runner", program = p.dir.path + "/program";
    put_file(runner, "#!/bin/sh\nfor word in \"$@\"; do echo \"$word\"; done\n", 0755);
    put_file(program, "of another machine", 0755);
    const std::string g = make_run_by(p, {program, "a b", ""}, {runner, "-0", "{name}"});
    REQUIRE(p.ask({files::Verb::prove, g}).verb == files::Verb::proved);
    REQUIRE(p.start(g).verb == files::Verb::started);
    REQUIRE(p.exit_of(g).status == 0);
    REQUIRE(get_file(p.room(g) + "/out.3") == "-0\nprogram\n" + program + "\na b\n\n");
}

TEST_CASE("a runner does not hide that there is no program") {
    Place p;
    const std::string program = p.dir.path + "/program";
    const auto refused = [&](const std::string &words) {
        const std::string g = make_run_by(p, {program}, {"/bin/true"});
        for (const files::Verb verb : {files::Verb::prove, files::Verb::start}) {
            const files::LauncherCall answer = p.ask({verb, g, 8});
            INFO(answer.text);
            REQUIRE(answer.verb == files::Verb::failed);
            REQUIRE(answer.number == static_cast<int>(Code::not_found));
            REQUIRE(answer.text.find(words) != std::string::npos);
        }
    };
    refused("No such file");
    put_file(program, "of another machine", 0644);
    refused("is not executable");
    REQUIRE(::unlink(program.c_str()) == 0);
    REQUIRE(::mkdir(program.c_str(), 0755) == 0);
    refused("is a directory");
}

TEST_CASE("a runner that is not there is the host's trouble, not the grain's") {
    Place p;
    const std::string g = make_run_by(p, {"/bin/true"}, {p.dir.path + "/none"});
    const files::LauncherCall answer = p.start(g);
    REQUIRE(answer.verb == files::Verb::failed);
    REQUIRE(answer.number == static_cast<int>(Code::io_error));
    REQUIRE(answer.text.find("the runner of this host") != std::string::npos);
}
