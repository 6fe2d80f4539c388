// Every error that dcs.h names for a call, provoked; see api_errors.py. Each case is a process of its own.
//   api_errors list                    the cases: a call, and what it is to return
//   api_errors case CALL ERROR SESSION makes one; its session numbers are SESSION .. SESSION+3
//   api_errors plain CALL SESSION      a call without fault, made when a line comes on standard input
//   api_errors without CALL SESSION    the same call by a program that never called d_get_auth
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "dcs.h"

namespace {
constexpr unsigned nowhere = 0x80000000u;  // a class that no host has
constexpr int forever = 0, at_once = 1, fails = 2;
int session;

// What a case needs must succeed; only its last call is judged.
void must(int error) {
    if (error == NO_ERROR) return;
    std::printf("preparing: %s: %s\n", d_errorname(error), d_errortext());
    std::exit(3);
}

std::vector<char *> program(int kind) {
    static char true_[] = "/bin/true", sleep_[] = "/bin/sleep", minutes[] = "1000", false_[] = "/bin/false";
    if (kind == forever) return {sleep_, minutes, nullptr};
    return {kind == fails ? false_ : true_, nullptr};
}

d_grain grain_of(std::vector<char *> &words) {
    d_grain grain;
    d_grain_init(&grain);
    grain.gargv = words.data();
    grain.attempts = 1;
    return grain;
}

enum class Way { plain, structure, many };

int submit(Way way, int s, int g, const d_grain &grain) {
    if (way == Way::structure) return d_gexec_grain(s, g, &grain);
    if (way == Way::many) {
        d_grain_order order;
        d_grain_order_init(&order, g);
        order.grain = grain;
        return d_gexec_many(s, &order, 1, nullptr, nullptr);
    }
    return d_gexec(s, g, grain.gargv, grain.genvv, static_cast<const char *>(grain.input), grain.host_class,
                   grain.thrash, grain.urgent, grain.notice);
}

int submit(Way way, int s, int g, int kind, unsigned host_class = 0) {
    auto words = program(kind);
    d_grain grain = grain_of(words);
    grain.host_class = host_class;
    return submit(way, s, g, grain);
}

enum class Take { one, result, streams, many };

int take(Take how, int s, int block) {
    if (how == Take::streams) {
        FILE *out = stderr, *err = stderr;
        const int error = d_gwait_streams(block, s, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, &out, &err);
        if (error != NO_ERROR) return out || err ? -1 : error;  // both are NULL then
        std::fclose(out), std::fclose(err);
        return error;
    }
    d_result results[4];
    d_result_init(results, 4);
    int count = 0;
    if (how == Take::many) return d_gwait_many(block, s, 4, results, &count);
    if (how == Take::result) return d_gwait_result(block, s, results);
    return d_gwait(block, s, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr);
}

void opened(int s) {
    must(d_get_auth("first"));
    must(d_open_ses(s));
}

void closed(int s) {
    opened(s);
    must(d_close_ses(s));
}

// Of this user, but of another control program; this one then has a token of its own.
void of_another(int s) {
    opened(s);
    must(d_get_auth("second"));
}

void replaying(int s) {
    opened(s);
    must(submit(Way::plain, s, 1, at_once));
    must(take(Take::one, s, 1));
    must(submit(Way::plain, s, 2, forever, nowhere));
    must(d_close_ses(s));
    must(d_resume_ses(s, TRUE));
}

void with_grain(int s, int kind, unsigned host_class = 0) {
    opened(s);
    must(submit(Way::plain, s, 1, kind, host_class));
    if (kind != forever) must(take(Take::one, s, 1));
}

int query(int type, int s, int g) {
    d_info *info = nullptr;
    const int error = d_query(type, nullptr, s, g, &info);
    d_query_free(info);
    return error;
}

int read_stream(int s, int g, const char *stream) {
    FILE *file = nullptr;
    const int error = d_grain_stream(nullptr, s, g, stream, &file);
    if (file) std::fclose(file);
    return error;
}

int read_file(int s, int g, const char *name) {
    FILE *file = nullptr;
    const int error = d_grain_file(nullptr, s, g, name, &file);
    if (file) std::fclose(file);
    return error;
}

void made_a_file(int s) {
    static char sh[] = "/bin/sh", c[] = "-c", text[] = "echo made >made";
    static const char *const outputs[] = {"made", "unmade", nullptr};
    std::vector<char *> words = {sh, c, text, nullptr};
    d_grain grain = grain_of(words);
    grain.outputs = outputs;
    opened(s);
    must(d_gexec_grain(s, 1, &grain));
    must(take(Take::one, s, 1));
}

int set_host(const char *host, int slots, double alert_s = -1) {
    d_host_change change;
    d_host_change_init(&change);
    change.slots = slots;
    change.alert_s = alert_s;
    return d_sethost(host, &change);
}

int host_class(const char *names) {
    unsigned mask = 0;
    return d_host_class(names, &mask);
}

int why(const char *user, int s, int g) {
    d_explanation *explanation = nullptr;
    const int error = d_explain(user, s, g, &explanation);
    d_explanation_free(explanation);
    return error;
}

// clang-format off
struct Case { std::string call; int error; int (*run)(); };
#define IS(...) [] { return __VA_ARGS__; }
#define AFTER(prepare, ...) [] { prepare; return __VA_ARGS__; }
// clang-format on

const std::vector<Case> sessions = {
    {"d_get_auth", NO_ERROR, IS(d_get_auth("first"))},
    {"d_get_auth", D_E_INVALID, IS(d_get_auth("no ident"))},
    {"d_get_auth", D_E_NO_AUTH, AFTER(setenv("DCS_AUTH_FD", "99", 1), d_get_auth("first"))},
    {"d_open_ses", NO_ERROR, AFTER(must(d_get_auth("first")), d_open_ses(session))},
    {"d_open_ses", D_E_SESSION_ACTIVE, AFTER(opened(session), d_open_ses(session))},
    {"d_open_ses", D_E_SESSION_CLOSED, AFTER(closed(session), d_open_ses(session))},
    {"d_open_ses", D_E_INVALID, AFTER(must(d_get_auth("first")), d_open_ses(-1))},
    {"d_open_ses", D_E_LIMIT, AFTER(opened(session), d_open_ses(session + 1))},
    {"d_resume_ses", NO_ERROR, AFTER(opened(session), d_resume_ses(session, TRUE))},
    {"d_resume_ses", D_E_SESSION_CLOSED, AFTER(closed(session), d_resume_ses(session, FALSE))},
    {"d_resume_ses", D_E_SESSION_TAKEN, AFTER(of_another(session), d_resume_ses(session, TRUE))},
    {"d_resume_ses", D_E_INVALID, AFTER(must(d_get_auth("first")), d_resume_ses(-1, TRUE))},
    {"d_resume_ses", D_E_LIMIT, AFTER(opened(session), d_resume_ses(session + 1, TRUE))},
    {"d_reopen_ses", NO_ERROR, AFTER(closed(session), d_reopen_ses(session, TRUE))},
    {"d_reopen_ses", D_E_SESSION_UNKNOWN, AFTER(must(d_get_auth("first")), d_reopen_ses(session, TRUE))},
    {"d_reopen_ses", D_E_SESSION_ACTIVE, AFTER(opened(session), d_reopen_ses(session, TRUE))},
    {"d_reopen_ses", D_E_SESSION_TAKEN,
     AFTER(closed(session); must(d_get_auth("second")), d_reopen_ses(session, TRUE))},
    {"d_reopen_ses", D_E_INVALID, AFTER(must(d_get_auth("first")), d_reopen_ses(-1, TRUE))},
    {"d_reopen_ses", D_E_LIMIT, AFTER(closed(session); must(d_open_ses(session + 1)), d_reopen_ses(session, TRUE))},
    {"d_close_ses", NO_ERROR, AFTER(opened(session), d_close_ses(session))},
    {"d_close_ses", D_E_SESSION_UNKNOWN, AFTER(must(d_get_auth("first")), d_close_ses(session))},
    {"d_close_ses", D_E_SESSION_TAKEN, AFTER(of_another(session), d_close_ses(session))},
    {"d_close_ses", D_E_GRAIN_DIFFERS,
     AFTER(replaying(session); must(submit(Way::plain, session, 2, forever, nowhere));
           must(take(Take::one, session, 1)), d_close_ses(session))},
    {"d_close_ses", D_E_INVALID, AFTER(must(d_get_auth("first")), d_close_ses(-1))},
    {"d_clean_ses", NO_ERROR, AFTER(closed(session), d_clean_ses(session))},
    {"d_clean_ses", D_E_SESSION_UNKNOWN, AFTER(must(d_get_auth("first")), d_clean_ses(session))},
    {"d_clean_ses", D_E_SESSION_ACTIVE, AFTER(opened(session), d_clean_ses(session))},
    {"d_clean_ses", D_E_INVALID, IS(d_clean_ses(-1))},
    {"d_close_ses_of", NO_ERROR, AFTER(of_another(session), d_close_ses_of(getenv("USER"), session))},
    {"d_close_ses_of", D_E_SESSION_UNKNOWN, IS(d_close_ses_of(getenv("USER"), session))},
    {"d_close_ses_of", D_E_INVALID, IS(d_close_ses_of("nobody", -1))},
    {"d_close_ses_of", D_E_REFUSED, IS(d_close_ses_of("root", session))},
};

template <Way way> void add_submissions(std::vector<Case> &to, const std::string &call) {
    // clang-format off
    to.insert(to.end(), {
        {call, NO_ERROR, AFTER(opened(session), submit(way, session, 1, at_once))},
        {call, D_E_GRAIN_EXISTS, AFTER(with_grain(session, at_once), submit(way, session, 1, at_once))},
        {call, D_E_GRAIN_DIFFERS,
         AFTER(with_grain(session, at_once); must(d_resume_ses(session, TRUE)), submit(way, session, 1, fails))},
        {call, D_E_REPLAY_END, AFTER(replaying(session), submit(way, session, 3, at_once))},
        {call, D_E_SESSION_UNKNOWN, AFTER(must(d_get_auth("first")), submit(way, session, 1, at_once))},
        {call, D_E_SESSION_CLOSED, AFTER(closed(session), submit(way, session, 1, at_once))},
        {call, D_E_SESSION_TAKEN, AFTER(of_another(session), submit(way, session, 1, at_once))},
        {call, D_E_INVALID, AFTER(opened(session), submit(way, session, -1, at_once))},
        {call, D_E_LIMIT, [] {
             opened(session);
             const std::string more(17u << 20, 'x');
             auto words = program(at_once);
             d_grain grain = grain_of(words);
             grain.input = more.c_str();
             grain.input_length = more.size();
             return submit(way, session, 1, grain);
         }},
    });
    // clang-format on
    if (way == Way::plain) return;
    to.push_back({call, D_E_NOT_FOUND, [] {
                      opened(session);
                      static const d_file missing{sizeof(d_file), "data", "/nowhere/to/be/found", nullptr, 0, 0};
                      auto words = program(at_once);
                      d_grain grain = grain_of(words);
                      grain.files = &missing;
                      grain.file_count = 1;
                      return submit(way, session, 1, grain);
                  }});
}

template <Take how> void add_waits(std::vector<Case> &to, const std::string &call) {
    to.insert(to.end(),
              {
                  {call, NO_ERROR,
                   AFTER(opened(session); must(submit(Way::plain, session, 1, at_once)), take(how, session, 1))},
                  {call, D_E_NOTHING_YET, AFTER(with_grain(session, forever), take(how, session, 0))},
                  {call, D_E_NOTHING_LEFT, AFTER(opened(session), take(how, session, 1))},
                  {call, D_E_CANNOT_RUN, AFTER(with_grain(session, forever, nowhere), take(how, session, 1))},
                  {call, D_E_REPLAY_END, AFTER(replaying(session); must(take(how, session, 1)), take(how, session, 1))},
                  {call, D_E_SESSION_UNKNOWN, AFTER(must(d_get_auth("first")), take(how, session, 0))},
                  {call, D_E_SESSION_CLOSED, AFTER(closed(session), take(how, session, 0))},
                  {call, D_E_SESSION_TAKEN, AFTER(opened(session); must(d_get_auth("second")), take(how, session, 0))},
                  {call, D_E_INVALID, AFTER(opened(session), take(how, -1, 0))},
              });
}

const std::vector<Case> grains = {
    {"d_gkill", NO_ERROR, AFTER(with_grain(session, forever), d_gkill(session, 1))},
    {"d_gkill", D_E_GRAIN_UNKNOWN, AFTER(opened(session), d_gkill(session, 1))},
    {"d_gkill", D_E_SESSION_UNKNOWN, AFTER(must(d_get_auth("first")), d_gkill(session, 1))},
    {"d_gkill", D_E_SESSION_CLOSED,
     AFTER(with_grain(session, forever); must(d_close_ses(session)), d_gkill(session, 1))},
    {"d_gkill", D_E_SESSION_TAKEN,
     AFTER(with_grain(session, forever); must(d_get_auth("second")), d_gkill(session, 1))},
    {"d_gkill", D_E_REPLAY_END, AFTER(replaying(session), d_gkill(session, 2))},
    {"d_gkill", D_E_INVALID, AFTER(opened(session), d_gkill(session, -1))},
    {"d_gkill_of", NO_ERROR, AFTER(with_grain(session, forever), d_gkill_of(getenv("USER"), session, 1))},
    {"d_gkill_of", D_E_GRAIN_UNKNOWN, AFTER(opened(session), d_gkill_of(getenv("USER"), session, 1))},
    {"d_gkill_of", D_E_SESSION_UNKNOWN, IS(d_gkill_of(getenv("USER"), session, 1))},
    {"d_gkill_of", D_E_SESSION_CLOSED,
     AFTER(with_grain(session, forever); must(d_close_ses(session)), d_gkill_of(getenv("USER"), session, 1))},
    {"d_gkill_of", D_E_INVALID, IS(d_gkill_of(getenv("USER"), session, -1))},
    {"d_gkill_of", D_E_REFUSED, IS(d_gkill_of("root", session, 1))},
    {"d_grestart", NO_ERROR, AFTER(with_grain(session, forever), d_grestart(nullptr, session, 1))},
    {"d_grestart", D_E_REFUSED, AFTER(with_grain(session, at_once), d_grestart(nullptr, session, 1))},
    {"d_grestart", D_E_SESSION_UNKNOWN, IS(d_grestart(nullptr, session, 1))},
    {"d_grestart", D_E_SESSION_CLOSED,
     AFTER(with_grain(session, forever); must(d_close_ses(session)), d_grestart(nullptr, session, 1))},
    {"d_grestart", D_E_GRAIN_UNKNOWN, AFTER(opened(session), d_grestart(nullptr, session, 1))},
    {"d_grestart", D_E_INVALID, IS(d_grestart(nullptr, session, -1))},
    {"d_explain", NO_ERROR, AFTER(with_grain(session, forever), why(nullptr, session, 1))},
    {"d_explain", D_E_REFUSED, IS(why("root", session, 1))},
    {"d_explain", D_E_SESSION_UNKNOWN, IS(why(nullptr, session, 1))},
    {"d_explain", D_E_GRAIN_UNKNOWN, AFTER(opened(session), why(nullptr, session, 1))},
    {"d_explain", D_E_INVALID, IS(why(nullptr, session, -1))},
    {"d_query", NO_ERROR, IS(query(D_Q_SYSTEM, 0, 0))},
    {"d_query", D_E_SESSION_UNKNOWN, IS(query(D_Q_GRAINS, session, 0))},
    {"d_query", D_E_GRAIN_UNKNOWN, AFTER(opened(session), query(D_Q_GRAIN, session, 1))},
    {"d_query", D_E_INVALID, IS(query(99, session, 1))},
    {"d_grain_stream", NO_ERROR, AFTER(with_grain(session, at_once), read_stream(session, 1, "out"))},
    {"d_grain_stream", D_E_SESSION_UNKNOWN, IS(read_stream(session, 1, "out"))},
    {"d_grain_stream", D_E_GRAIN_UNKNOWN, AFTER(opened(session), read_stream(session, 1, "out"))},
    {"d_grain_stream", D_E_INVALID, AFTER(with_grain(session, at_once), read_stream(session, 1, "outputs"))},
    {"d_grain_file", NO_ERROR, AFTER(made_a_file(session), read_file(session, 1, "made"))},
    {"d_grain_file", D_E_NOT_FOUND, AFTER(made_a_file(session), read_file(session, 1, "unmade"))},
    {"d_grain_file", D_E_SESSION_UNKNOWN, IS(read_file(session, 1, "made"))},
    {"d_grain_file", D_E_GRAIN_UNKNOWN, AFTER(opened(session), read_file(session, 1, "made"))},
    {"d_grain_file", D_E_INVALID, IS(read_file(session, 1, ""))},
    {"d_host_class", NO_ERROR, IS(host_class("0x3,4"))},
    {"d_host_class", D_E_NOT_FOUND, IS(host_class("gpu"))},
    {"d_host_class", D_E_INVALID, IS(host_class("0x1,,2"))},
    {"d_sethost", NO_ERROR, IS(set_host("local1", 8))},
    {"d_sethost", D_E_REFUSED, IS(set_host("h1", 8))},
    {"d_sethost", D_E_NOT_FOUND, IS(set_host("nowhere", 8))},
    {"d_sethost", D_E_INVALID, IS(set_host("local1", -1, 1e8))},
    {"d_clear_nogo", NO_ERROR, AFTER(with_grain(session, forever), d_clear_nogo(nullptr, session, 1, "local1"))},
    {"d_clear_nogo", D_E_REFUSED, IS(d_clear_nogo("root", session, 1, "h1"))},
    {"d_clear_nogo", D_E_NOT_FOUND, AFTER(with_grain(session, forever), d_clear_nogo(nullptr, session, 1, "nowhere"))},
    {"d_clear_nogo", D_E_SESSION_UNKNOWN, IS(d_clear_nogo(nullptr, session, 1, "local1"))},
    {"d_clear_nogo", D_E_GRAIN_UNKNOWN, AFTER(opened(session), d_clear_nogo(nullptr, session, 1, "local1"))},
    {"d_clear_nogo", D_E_INVALID, IS(d_clear_nogo(nullptr, session, 1, ""))},
};

// Once for each call: session `session` is open, its grain 1 finished, its grain 2 can run nowhere; the next one is
// closed.
const std::vector<Case> plain = {
    {"d_get_auth", NO_ERROR, IS(d_get_auth("again"))},
    {"d_open_ses", NO_ERROR, IS(d_open_ses(session + 2))},
    {"d_resume_ses", NO_ERROR, IS(d_resume_ses(session, TRUE))},
    {"d_reopen_ses", NO_ERROR, IS(d_reopen_ses(session + 1, TRUE))},
    {"d_close_ses", NO_ERROR, IS(d_close_ses(session))},
    {"d_clean_ses", NO_ERROR, IS(d_clean_ses(session + 1))},
    {"d_close_ses_of", NO_ERROR, IS(d_close_ses_of(getenv("USER"), session + 1))},
    {"d_gexec", NO_ERROR, IS(submit(Way::plain, session, 3, at_once))},
    {"d_gexec_grain", NO_ERROR, IS(submit(Way::structure, session, 3, at_once))},
    {"d_gexec_many", NO_ERROR, IS(submit(Way::many, session, 3, at_once))},
    {"d_gwait", NO_ERROR, IS(take(Take::one, session, 0))},
    {"d_gwait_result", NO_ERROR, IS(take(Take::result, session, 0))},
    {"d_gwait_streams", NO_ERROR, IS(take(Take::streams, session, 0))},
    {"d_gwait_many", NO_ERROR, IS(take(Take::many, session, 0))},
    {"d_gkill", NO_ERROR, IS(d_gkill(session, 2))},
    {"d_gkill_of", NO_ERROR, IS(d_gkill_of(getenv("USER"), session, 2))},
    {"d_grestart", NO_ERROR, IS(d_grestart(nullptr, session, 2))},
    {"d_explain", NO_ERROR, IS(why(nullptr, session, 2))},
    {"d_query", NO_ERROR, IS(query(D_Q_SYSTEM, 0, 0))},
    {"d_grain_stream", NO_ERROR, IS(read_stream(session, 1, "input"))},
    {"d_grain_file", NO_ERROR, IS(read_file(session, 1, "made"))},
    {"d_sethost", NO_ERROR, IS(set_host("local1", 8))},
    {"d_host_class", NO_ERROR, IS(host_class("0x3,4"))},
    {"d_clear_nogo", NO_ERROR, IS(d_clear_nogo(nullptr, session, 2, "local1"))},
};

std::vector<Case> all_cases() {
    std::vector<Case> all = sessions;
    add_submissions<Way::plain>(all, "d_gexec");
    add_submissions<Way::structure>(all, "d_gexec_grain");
    add_submissions<Way::many>(all, "d_gexec_many");
    add_waits<Take::one>(all, "d_gwait");
    add_waits<Take::result>(all, "d_gwait_result");
    add_waits<Take::streams>(all, "d_gwait_streams");
    add_waits<Take::many>(all, "d_gwait_many");
    all.insert(all.end(), grains.begin(), grains.end());
    return all;
}

const Case &named(const std::vector<Case> &in, const std::string &call, const std::string &error) {
    for (const Case &c : in)
        if (c.call == call && (error.empty() || error == d_errorname(c.error))) return c;
    std::printf("there is no case %s %s\n", call.c_str(), error.c_str());
    std::exit(2);
}

int tell(int error, int why) {
    std::printf("%s %d %s\n", d_errorname(error), why, error == NO_ERROR ? "" : d_errortext());
    return 0;
}

int judged(const Case &c) {
    errno = 0;
    const int error = c.run();
    return tell(error, errno);
}

void world_of_plain() {
    made_a_file(session);
    must(submit(Way::plain, session, 2, forever, nowhere));
    must(d_resume_ses(session, TRUE));  // the result is to be had again
    must(d_open_ses(session + 1));
    must(d_close_ses(session + 1));
    std::puts("ready");
    std::fflush(stdout);
    if (std::getchar() == EOF) std::exit(3);
}

}  // namespace

int main(int argc, char **argv) {
    const std::string what = argc > 1 ? argv[1] : "";
    if (what == "list" && argc == 2) {
        for (const Case &c : all_cases()) std::printf("%s %s\n", c.call.c_str(), d_errorname(c.error));
        return 0;
    }
    session = argc > 3 ? std::atoi(argv[argc - 1]) : 0;
    if (what == "case" && argc == 5) return judged(named(all_cases(), argv[2], argv[3]));
    if (what == "without" && argc == 4) return judged(named(plain, argv[2], ""));
    if (what != "plain" || argc != 4) return 2;
    world_of_plain();
    return judged(named(plain, argv[2], ""));
}
