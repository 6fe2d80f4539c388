// dcs.hpp on a pool of two hosts: `cxx_api all` goes through what goes well and what goes wrong, `cxx_api scope HOW`
// ends the scope of a session in three ways: closed, left, thrown; `cxx_api forked` in the child of a fork, and
// `cxx_api at-exit` when the process ends.
#include <cstring>
#include <functional>
#include <iostream>
#include <ranges>

#include <sys/wait.h>

#include "dcs.hpp"

static_assert(std::input_iterator<dcs::result_range::iterator> && std::ranges::input_range<dcs::result_range>);
template <class Session>
concept gives_results = requires(Session &&session) {
    std::forward<Session>(session).results();
};
static_assert(gives_results<dcs::session &> && !gives_results<dcs::session>);  // of one that ends at once
static_assert(!std::is_copy_constructible_v<dcs::session> && std::is_nothrow_move_constructible_v<dcs::session>);

namespace {

void need(bool holds, const std::string &what) {
    if (holds) return;
    std::cerr << "cxx_api: " << what << ": not so\n";
    std::exit(1);
}

void raises(int code, const std::string &word, const std::function<void()> &call) {
    try {
        call();
    } catch (const dcs::error &error) {
        need(error.code() == code,
             std::string(error.name()) + " where " + d_errorname(code) + " was due: " + error.what());
        need(error.text().find(word) != std::string::npos, '"' + word + "\" is in " + error.text());
        need(std::strlen(error.hint()) > 0, "a hint");
        return;
    }
    need(false, std::string(d_errorname(code)) + " is thrown");
}

void submissions() {
    dcs::session session = dcs::session::open("cxx", 1);
    std::vector<dcs::order> orders;
    for (int i = 0; i < 30; ++i)
        orders.push_back({i,
                          {.argv = {"/bin/sh", "-c", "cat; echo $X >&2"},
                           .input = std::string(3, static_cast<char>(i)),
                           .env = {"X=" + std::to_string(i)}}});
    session.submit(orders);
    session.submit(30, {.argv = {"/bin/sh", "-c", "head -c 100000 /dev/zero; cp text made"},
                        .files = {{.name = "text", .path = "/etc/hostname"}},
                        .outputs = {"made"}});
    dcs::session moved = std::move(session);
    int index = 0;
    for (const dcs::result &result : moved.results(7)) {
        need(result.index == index++ && result.ok(), "results come in their order");
        if (result.grain == 30) {
            need(result.whole_output() == std::string(100000, '\0') && result.output.size() == 20480, "a long output");
            const dcs::stream sent(std::fopen("/etc/hostname", "r")), came = result.open_file("made");
            need(dcs::read_all(came.get()) == dcs::read_all(sent.get()), "a file comes back");
        } else {
            need(result.output == std::string(3, static_cast<char>(result.grain)), "bytes are bytes");
            need(result.whole_error() == std::to_string(result.grain) + "\n", "standard error");
        }
    }
    need(index == 31, "all results came");
    const dcs::answer hosts = dcs::query(D_Q_HOSTS);
    need(hosts.hosts().size() == 2 && hosts.hosts()[0].slots == 2, "two hosts of two slots");
    moved.close();
    raises(D_E_SESSION_CLOSED, "", [&] { moved.submit(31, {.argv = {"/bin/true"}}); });
}

void errors() {
    dcs::session replay = dcs::session::resume("cxx");
    need(replay.number() == 1 && std::ranges::distance(replay.results()) == 31, "the replay of a closed session");
    raises(D_E_SESSION_CLOSED, "", [] { dcs::session::resume("cxx", 1, false); });
    dcs::session session = dcs::session::open("cxx", 2);
    raises(D_E_SESSION_ACTIVE, "", [] { dcs::session::open("cxx", 2); });
    raises(D_E_INVALID, "this program calls itself \"cxx\" already", [] { dcs::session::resume("other", 9); });
    raises(D_E_INVALID, "notice is -1", [&] { session.submit(1, {.argv = {"/bin/true"}, .notice = -1}); });
    const std::string cut("a\0b", 3);
    raises(D_E_INVALID, "NUL byte, after \"a\"", [&] { dcs::session::open(cut, 3); });
    for (const dcs::grain &what :
         {dcs::grain{.argv = {"/bin/true", cut}}, dcs::grain{.argv = {"/bin/true"}, .env = {cut}},
          dcs::grain{.argv = {"/bin/true"}, .resources = cut}, dcs::grain{.argv = {"/bin/true"}, .label = cut},
          dcs::grain{.argv = {"/bin/true"}, .files = {{.name = "f", .path = cut}}},
          dcs::grain{.argv = {"/bin/true"}, .outputs = {cut}}})
        raises(D_E_INVALID, "NUL byte", [&] { session.submit(1, what); });
    raises(D_E_INVALID, "gargv[0]", [&] { session.submit(1, {}); });
    dcs::result result;
    need(!session.wait(result) && !session.poll(result), "nothing is left in an empty session");
    session.submit(1, {.argv = {"/bin/sleep", "1000"}});
    need(!session.poll(result), "nothing yet");
    session.submit(2, {.argv = {"/bin/sh", "-c", "echo bad >&2; exit 4"}, .attempts = 1});
    need(session.wait(result) && result.grain == 2 && result.code == 4 && !result.ok(), "a failure is a result");
    need(result.error == "bad\n", "what it said");
    std::vector<dcs::order> orders{{3, {.argv = {"/bin/true"}}}, {3, {.argv = {"/bin/true"}}}};
    try {
        session.submit(orders);
        need(false, "the same number twice is refused");
    } catch (const dcs::error &error) {
        need(error.code() == D_E_INVALID && error.taken() == 0 && error.refused() == 1, "which one was refused");
    }
    session.kill(1);
    need(!session.wait(result), "nothing is left");
    session.submit(3, {.argv = {"/bin/true"}, .host_class = 1u << 31});
    raises(D_E_CANNOT_RUN, "", [&] { session.wait(result); });
    session.close();
    dcs::session early = dcs::session::resume("cxx", 2);
    need(early.wait(result) && result.grain == 2, "the recorded result");
    raises(D_E_REPLAY_END, "", [&] { early.wait(result); });
}

void scope(const std::string &how) {
    dcs::session session = dcs::session::resume("cxx-" + how);
    session.submit(1, {.argv = {"/bin/sleep", "600"}});
    if (how == "left") session.leave();
    if (how == "thrown") throw std::runtime_error("out of the scope");
}

// What its scope would close is of the parent; what the child opens is its own.
void in_child(dcs::session parents) {
    dcs::session own = dcs::session::resume("cxx-forked", 71);
    own.submit(1, {.argv = {"/bin/true"}});
    need(std::ranges::distance(own.results()) == 1 && parents.number() == 70, "the child has its own session");
}

std::string state_of(int number) {
    const dcs::answer known = dcs::query(D_Q_SESSIONS);
    for (const d_session_row &row : known.sessions())
        if (row.session == number) return row.state;
    return "none";
}

void forked() {
    dcs::session session = dcs::session::resume("cxx-forked", 70);
    session.submit(1, {.argv = {"/bin/sleep", "600"}});
    const pid_t child = ::fork();
    if (child == 0) {
        in_child(std::move(session));
        std::exit(0);
    }
    int status = -1;
    need(child > 0 && ::waitpid(child, &status, 0) == child && status == 0, "the child ends well");
    need(state_of(70) == "active" && state_of(71) == "terminated", "each process ends its sessions");
    session.close();
}

// Two of one program are two, and each run finds both in this order.
void two_of_one_ident() {
    const auto output = [](dcs::session &of) {
        std::string text;
        for (const dcs::result &result : of.results()) text += result.output;
        return text;
    };
    for (const char *run : {"first", "second"}) {
        dcs::session first = dcs::session::resume("cxx"), second = dcs::session::resume("cxx");
        need(first.number() != second.number(), std::string("two sessions in the ") + run + " run");
        first.submit(1, {.argv = {"/bin/echo", "of the first"}});
        second.submit(1, {.argv = {"/bin/echo", "of the second"}});
        need(output(first) == "of the first\n" && output(second) == "of the second\n", "its own results");
        first.leave();
        second.leave();
    }
}

// A static session is closed at exit(), before a handler that was there first, which calls the library, too.
int at_exit() {
    std::atexit([] {
        dcs::session session = dcs::session::open("cxx", 40);
        session.submit(1, {.argv = {"/bin/cat"}, .input = "of a handler\n"});
        for (const dcs::result &result : session.results()) std::cout << result.output;
        need(d_close_ses(41) == D_E_SESSION_UNKNOWN && std::strlen(d_errortext()) > 0, "an error of the handler");
    });
    static dcs::session of_program = dcs::session::open("cxx", 39);
    of_program.submit(1, {.argv = {"/bin/echo", "of the program"}});
    for (const dcs::result &result : of_program.results()) std::cout << result.output;
    return 0;
}

}  // namespace

int main(int argc, char **argv) {
    if (argc == 3) {
        try {
            scope(argv[2]);
        } catch (const std::runtime_error &) { return 7; }
        return 0;
    }
    if (argc == 2 && std::string_view(argv[1]) == "forked") {
        forked();
        return 0;
    }
    if (argc == 2 && std::string_view(argv[1]) == "at-exit") return at_exit();
    if (argc == 2 && std::string_view(argv[1]) == "two") return two_of_one_ident(), 0;
    submissions();
    errors();
    std::cout << "every call did what it says\n";
}
