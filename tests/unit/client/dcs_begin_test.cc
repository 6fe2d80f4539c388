// The program dcs_begin, which speaks the protocol by hand.
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dcs.h"
#include "fake_scheduler.h"
#include "places.h"
#include "support/catch.h"
#include "support/about.h"

using namespace dcs;
using dcs::test::Act;
using dcs::test::FakeScheduler;
using dcs::test::plausible;

namespace {

struct Outcome {
    int status = -1;
    std::string output;
};  // stdout and stderr together

Outcome run(const std::vector<std::string> &arguments, const std::string &program = DCS_BINARY_DIR "/bin/dcs_begin") {
    std::vector<std::string> words = {program};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char *> argv;
    for (auto &w : words) argv.push_back(w.data());
    argv.push_back(nullptr);
    int pipe[2];
    REQUIRE(::pipe2(pipe, O_CLOEXEC) == 0);
    const pid_t child = ::fork();
    if (child == 0) {
        ::dup2(pipe[1], 1);
        ::dup2(pipe[1], 2);
        ::execv(argv[0], argv.data());
        ::_exit(99);
    }
    ::close(pipe[1]);
    Outcome o;
    char buffer[4096];
    for (ssize_t n; (n = ::read(pipe[0], buffer, sizeof buffer)) > 0;)
        o.output.append(buffer, static_cast<std::size_t>(n));
    ::close(pipe[0]);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    o.status = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    return o;
}

}  // namespace

TEST_CASE("dcs_begin: the program finds the token in its descriptor, and nowhere else") {
    FakeScheduler fake;
    fake.script([](const wire::AnyMessage &m, int) {
        Act a;
        a.reply = plausible(m);
        if (std::holds_alternative<wire::GetAuth>(m)) a.reply = wire::AuthReply{"0123456789abcdefTOKENTOKENTOKEN!"};
        return a;
    });
    const Outcome o = run({"sh", "-c",
                           "test $DCS_AUTH_FD -gt 2 && cat /proc/self/fd/$DCS_AUTH_FD && "
                           "! { tr '\\0' '\\n' </proc/self/environ | grep -q TOKENTOKEN; } && echo \" $1\"; exit 7",
                           "x", "y z"});
    CHECK(o.status == 7);
    CHECK(o.output == "0123456789abcdefTOKENTOKENTOKEN! y z\n");
    CHECK(fake.all<wire::GetAuth>().at(0).second.ident == "sh");
    CHECK(fake.all<wire::Hello>().at(0).second.token.empty());
    const Outcome w = run({"sh", "-c", "echo x >/proc/self/fd/$DCS_AUTH_FD"});
    CHECK(w.status != 0);  // sealed
}

TEST_CASE("dcs_begin: odd names become control idents") {
    FakeScheduler fake;
    const std::string dir = fake.dir() + "/bin";
    std::filesystem::create_directory(dir);
    for (const char *name : {"a b+c", ".hidden", "-dash"}) {
        std::filesystem::create_symlink("/bin/true", dir + "/" + name);
        CHECK(run({dir + "/" + name}).status == 0);
    }
    const std::string long_name(100, 'n');
    std::filesystem::create_symlink("/bin/true", dir + "/" + long_name);
    CHECK(run({"--", dir + "/" + long_name}).status == 0);
    std::filesystem::remove_all(dir);
    const auto asked = fake.all<wire::GetAuth>();
    REQUIRE(asked.size() == 4);
    CHECK(asked[0].second.ident == "a_b_c");
    CHECK(asked[1].second.ident == "_hidden");
    CHECK(asked[2].second.ident == "_dash");
    CHECK(asked[3].second.ident == std::string(64, 'n'));
}

TEST_CASE("dcs_begin: exit statuses tell who failed") {
    FakeScheduler fake;
    CHECK(run({"/nonexistent/program"}).status == 127);
    CHECK(run({"no-such-program-anywhere"}).status == 127);
    CHECK(run({"/etc/passwd"}).status == 126);
    CHECK(run({"/"}).status == 126);
    CHECK(run({}).status == 125);
    CHECK(run({"--what"}).status == 125);
    CHECK(run({"--help"}).status == 0);
    fake.script([](const wire::AnyMessage &m, int) {
        Act a;
        a.reply = plausible(m);
        if (std::holds_alternative<wire::GetAuth>(m)) a.reply = wire::ErrorReply{D_E_REFUSED, "not today"};
        return a;
    });
    const Outcome refused = run({"true"});
    CHECK(refused.status == 125);
    CHECK(refused.output == about("dcs_begin scheduler refuses not today"));
    fake.stop();
    ::setenv("DCS_PATIENCE_S", "0.2", 1);
    const Outcome nobody = run({"true"});
    CHECK(nobody.status == 125);
    CHECK(nobody.output.find("no scheduler answers at " + fake.dir()) != std::string::npos);
    ::setenv("DCS_DIR", "/nonexistent", 1);
    CHECK(run({"true"}).output.find("dcs up") != std::string::npos);
    ::setenv("DCS_DIR", "relative", 1);
    CHECK(run({"true"}).status == 125);
}

TEST_CASE("dcs_begin: garbage and cut connections") {
    FakeScheduler fake;
    ::setenv("DCS_PATIENCE_S", "2", 1);
    std::string damaged = wire::encode(wire::Welcome{}, 1);
    damaged.back() = 'x';
    for (const std::string &raw : {std::string(200, 'x'), damaged, wire::encode(wire::Done{}, 1)}) {
        fake.script([raw](const wire::AnyMessage &m, int) {
            Act a;
            a.reply = plausible(m);
            a.raw = raw;
            return a;
        });
        CHECK(run({"true"}).status == 125);
    }
    std::atomic<int> greetings{0};
    fake.script([&](const wire::AnyMessage &m, int) {
        Act a;
        a.reply = plausible(m);
        if (std::holds_alternative<wire::Hello>(m)) a.cut_inside = greetings++ == 0;
        return a;
    });
    CHECK(run({"true"}).status == 0);
    CHECK(greetings == 2);
}

TEST_CASE("dcs_begin: what it says of answers that no scheduler gives") {
    FakeScheduler fake;
    const auto says = [&](const std::function<void(Act &, const wire::AnyMessage &)> &change) {
        fake.script([change](const wire::AnyMessage &m, int) {
            Act a;
            a.reply = plausible(m);
            change(a, m);
            return a;
        });
        return run({"true"}).output;
    };
    CHECK(says([](Act &a, const wire::AnyMessage &m) {
              if (std::holds_alternative<wire::GetAuth>(m)) a.reply = wire::AuthReply{std::string(31, 'T')};
          }) == about("dcs_begin scheduler sent token wrong length"));
    std::string newer = *wire::encode(wire::Welcome{}, 1, wire::opening_form), longer = newer;
    newer[6] = static_cast<char>(wire::opening_form + 1);  // of the header
    CHECK(says([&](Act &a, const wire::AnyMessage &) { a.raw = newer; }) ==
          about("dcs_begin scheduler speaks protocol version " + std::to_string(wire::opening_form + 1) +
                " program speaks " + std::to_string(wire::opening_form) + " use same release"));
    longer.replace(8, 4, std::string("\x01\x20\0\0", 4));  // the payload's length
    CHECK(says([&](Act &a, const wire::AnyMessage &) { a.raw = longer; }) == about("dcs_begin scheduler's reply long"));
    ::setenv("DCS_PATIENCE_S", "0", 1);
    CHECK(says([](Act &a, const wire::AnyMessage &) { a.park = true; }) == about("dcs_begin scheduler not answer"));
    CHECK(says([](Act &a, const wire::AnyMessage &) { a.cut_before = true; }) ==
          about("dcs_begin scheduler closed connection"));
}

// The same program where calls fail, as begin_refusals.c makes them.
TEST_CASE("dcs_begin: what it says when the machine refuses it something") {
    FakeScheduler fake;
    ::setenv("DCS_PATIENCE_S", "0", 1);
    const auto without = [](const char *call) {
        ::setenv("DCS_PLANTED", call, 1);
        const Outcome o = run({"-n", "true"}, DCS_BINARY_DIR "/tests/dcs_begin_test");
        ::unsetenv("DCS_PLANTED");
        CHECK(o.status == 125);
        return o.output;
    };
    CHECK(without("no_socket") == about("dcs_begin socket many open files"));
    fake.greet(*wire::encode(wire::ErrorReply{3, "three connections are enough"}, 1, wire::opening_form));
    CHECK(without("no_send") == about("dcs_begin scheduler refuses three connections are enough"));
    fake.greet("");  // it said nothing before it went
    CHECK(without("no_send") == about("dcs_begin scheduler closed connection"));
    fake.greet({});
    CHECK(without("no_recv") == about("dcs_begin receiving scheduler Connection reset peer"));
    CHECK(without("no_malloc") == about("dcs_begin no memory"));
    CHECK(without("no_environment") == about("dcs_begin cannot keep credentials Cannot allocate memory"));
    CHECK(without("no_words") == about("dcs_begin cannot prepare lock Cannot allocate memory"));
    CHECK(without("") == "dcs_begin: " DCS_BINARY_DIR
                         "/tests/dcs_lock: No such file or directory; it must be installed beside dcs_begin\n");
    fake.script([](const wire::AnyMessage &, int) {
        Act a;
        a.park = true;  // so that it has to wait
        return a;
    });
    CHECK(without("no_poll") == about("dcs_begin waiting scheduler Cannot allocate memory"));
}
