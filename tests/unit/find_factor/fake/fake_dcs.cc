// The calls of dcs.h, played in one process for tests of control programs: sessions and results lie in one
// file of $FAKE_DCS_DIR, grains are run one at a time. It can kill its process at a chosen call
// ($FAKE_DCS_DIE: number of the call, "12" before and "12+" after it took effect), and grains go on
// finishing while no control program runs, in an order that depends on $FAKE_DCS_SEED.
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "dcs.h"

namespace {

struct Grain {
    std::string spec, path, input, out, err, state = "ready";
    int code = 0, signal = 0, index = -1;
};
struct Session {
    std::string ident;
    int closed = 0, shown = 0;
    std::map<int, Grain> grains;
    std::vector<int> results;
};

std::mutex mutex;
std::map<int, Session> sessions;
std::map<int, int> next_result;  // of this process
std::string my_ident;
thread_local std::string last_error;
int calls = 0;
bool loaded = false;

std::string path(const char *name) { return std::string(std::getenv("FAKE_DCS_DIR")) + "/" + name; }

std::string read_file(const std::string &name) {
    std::string bytes;
    if (FILE *f = std::fopen(name.c_str(), "re")) {
        char piece[65536];
        for (std::size_t got; (got = std::fread(piece, 1, sizeof piece, f)) > 0;) bytes.append(piece, got);
        std::fclose(f);
    }
    return bytes;
}

void write_file(const std::string &name, const std::string &bytes) {
    FILE *f = std::fopen((name + ".new").c_str(), "we");
    if (!f || std::fwrite(bytes.data(), 1, bytes.size(), f) != bytes.size() || std::fclose(f) != 0 ||
        std::rename((name + ".new").c_str(), name.c_str()) != 0)
        std::abort();
}

void put(std::string &to, const std::string &s) { to += std::to_string(s.size()) + ":" + s; }
void put(std::string &to, long long n) { put(to, std::to_string(n)); }
std::string get(const std::string &from, std::size_t &at) {
    std::size_t colon = from.find(':', at), length = std::stoull(from.substr(at, colon - at));
    at = colon + 1 + length;
    return from.substr(colon + 1, length);
}
int get_int(const std::string &from, std::size_t &at) { return std::stoi(get(from, at)); }

void save() {
    std::string s;
    put(s, sessions.size());
    for (auto &[number, x] : sessions) {
        put(s, number), put(s, x.ident), put(s, x.closed), put(s, x.shown), put(s, x.grains.size());
        for (auto &[n, g] : x.grains) {
            put(s, n);
            for (auto *t : {&g.spec, &g.path, &g.input, &g.out, &g.err, &g.state}) put(s, *t);
            for (int v : {g.code, g.signal, g.index}) put(s, v);
        }
        put(s, x.results.size());
        for (int r : x.results) put(s, r);
    }
    write_file(path("state"), s);
}

void load() {
    if (loaded) return;
    loaded = true;
    std::string s = read_file(path("state"));
    if (s.empty()) return;
    std::size_t at = 0;
    for (int count = get_int(s, at); count > 0; count--) {
        Session &x = sessions[get_int(s, at)];
        x.ident = get(s, at), x.closed = get_int(s, at), x.shown = get_int(s, at);
        for (int grains = get_int(s, at); grains > 0; grains--) {
            Grain &g = x.grains[get_int(s, at)];
            for (auto *t : {&g.spec, &g.path, &g.input, &g.out, &g.err, &g.state}) *t = get(s, at);
            for (int *v : {&g.code, &g.signal, &g.index}) *v = get_int(s, at);
        }
        for (int results = get_int(s, at); results > 0; results--) x.results.push_back(get_int(s, at));
    }
}

std::minstd_rand &chance() {
    static std::minstd_rand random(
        static_cast<unsigned>((std::getenv("FAKE_DCS_SEED") ? std::atoi(std::getenv("FAKE_DCS_SEED")) : 0) + 1));
    return random;
}

void run(Grain &g) {
    std::string in = path("grain.in"), out = path("grain.out"), err = path("grain.err");
    write_file(in, g.input);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, in.c_str(), O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    posix_spawn_file_actions_addopen(&actions, 2, err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    char *argv[] = {g.path.data(), nullptr}, *envp[] = {nullptr};
    pid_t pid = 0;
    int status = 0;
    if (posix_spawn(&pid, g.path.c_str(), &actions, nullptr, argv, envp) != 0) {
        g.code = 127;
    } else {
        waitpid(pid, &status, 0);
        g.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
        g.code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    }
    posix_spawn_file_actions_destroy(&actions);
    g.out = read_file(out);
    g.err = read_file(err);
    g.state = "finished";
}

// Some ready grain of the session, not always the first.
bool finish_one(Session &x) {
    std::vector<int> ready;
    for (auto &[n, g] : x.grains)
        if (g.state == "ready") ready.push_back(n);
    if (ready.empty()) return false;
    int number = ready[chance()() % std::min<std::size_t>(ready.size(), 3)];
    Grain &g = x.grains[number];
    run(g);
    g.index = static_cast<int>(x.results.size());
    x.results.push_back(number);
    return true;
}

int error(int code, const std::string &text) {
    last_error = text;
    return code;
}

// One call: dies before or after, if this is the one.
struct Call {
    std::lock_guard<std::mutex> lock{mutex};
    int die_at = 0;
    bool after = false;
    Call() {
        load();
        calls++;
        if (const char *die = std::getenv("FAKE_DCS_DIE")) {
            char *end = nullptr;
            die_at = static_cast<int>(std::strtol(die, &end, 10));
            after = *end == '+';
        }
        if (calls == die_at && !after) kill(getpid(), SIGKILL);
    }
    ~Call() {
        save();
        if (calls == die_at && after) kill(getpid(), SIGKILL);
        if (const char *count = std::getenv("FAKE_DCS_COUNT")) write_file(count, std::to_string(calls));
    }
};

Session *held(int number) {
    auto found = sessions.find(number);
    return found != sessions.end() && next_result.count(number) ? &found->second : nullptr;
}

}  // namespace

extern "C" {

const char *d_strerror(int) { return "played"; }
const char *d_errortext(void) { return last_error.c_str(); }
const char *d_errorname(int code) {
    static thread_local char name[32];
    std::snprintf(name, sizeof name, "error %d", code);
    return name;
}

int d_get_auth(const char *ident) {
    Call call;
    my_ident = ident;
    // What the pool did between the calls.
    for (auto &[number, x] : sessions)
        for (int i = static_cast<int>(chance()() % 3); i > 0 && !x.closed; i--) finish_one(x);
    return NO_ERROR;
}

int d_resume_ses(int number, int sent_reset) {
    Call call;
    auto [place, fresh] = sessions.try_emplace(number);
    Session &x = place->second;
    if (fresh) x.ident = my_ident;
    if (x.ident != my_ident) return error(D_E_SESSION_TAKEN, "bound to " + x.ident);
    if (x.closed && !sent_reset) return error(D_E_SESSION_CLOSED, "closed");
    next_result[number] = 0;
    return NO_ERROR;
}

void d_grain_init_sized(struct d_grain *grain, size_t struct_size) {
    *grain = {};
    grain->struct_size = struct_size;
}

int d_gexec_grain(int number, int grain, const struct d_grain *what) {
    Call call;
    char *const *const argv = what->gargv;
    const std::string input(static_cast<const char *>(what->input), what->input_length);
    Session *x = held(number);
    if (!x) return error(D_E_SESSION_UNKNOWN, "not opened");
    std::string spec;
    for (char *const *word = argv; *word; word++) put(spec, *word);
    put(spec, input);
    for (long long v :
         {static_cast<long long>(what->host_class), 0LL + what->thrash, 0LL + what->urgent, 0LL + what->notice})
        put(spec, v);
    auto old = x->grains.find(grain);
    if (old != x->grains.end()) return old->second.spec == spec ? NO_ERROR : error(D_E_GRAIN_DIFFERS, "input differs");
    if (x->closed) return error(D_E_REPLAY_END, "a new grain in a closed session");
    Grain &g = x->grains[grain];
    g.spec = spec, g.path = argv[0], g.input = input;
    return NO_ERROR;
}

int d_gwait_result(int block, int number, struct d_result *result) {
    Call call;
    static thread_local std::string out, err;
    Session *x = held(number);
    if (!x) return error(D_E_SESSION_UNKNOWN, "not opened");
    int &next = next_result[number];
    for (;;) {
        while (next < static_cast<int>(x->results.size()) && x->results[next] < 0) next++;
        if (next < static_cast<int>(x->results.size())) break;
        if (x->closed) return error(D_E_REPLAY_END, "past the last result");
        if (!block) return error(D_E_NOTHING_YET, "nothing yet");
        if (!finish_one(*x)) return error(D_E_NOTHING_LEFT, "nothing left");
    }
    int n = x->results[next++];
    Grain &g = x->grains[n];
    if (next > x->shown) x->shown = next;
    out = g.out, err = g.err;
    result->grain_num = n;
    result->completed = static_cast<int>(x->results.size());
    result->sent = next;
    result->termsig = g.signal;
    result->retcode = g.code;
    result->outlen = out.size();
    result->output = out.data();
    result->errlen = err.size();
    result->error = err.data();
    return NO_ERROR;
}

// The 1990 paper's forms, for its Appendix B.
int d_gexec(int number, int grain, char *const argv[], char *const env[], const char *input, unsigned host_class,
            int thrash, int urgent, int notice) {
    struct d_grain what;
    d_grain_init(&what);
    what.gargv = argv, what.genvv = env, what.input = input, what.input_length = std::strlen(input);
    what.host_class = host_class, what.thrash = thrash, what.urgent = urgent, what.notice = notice;
    return d_gexec_grain(number, grain, &what);
}

int d_gwait(int block, int number, int *grain_num, int *completed, int *sent, int *termsig, int *retcode,
            struct rusage *, size_t *outlen, char **output, size_t *errlen, char **errors) {
    struct d_result result;
    d_result_init(&result, 1);
    const int error = d_gwait_result(block, number, &result);
    if (error != NO_ERROR) return error;
    if (grain_num) *grain_num = result.grain_num;
    if (completed) *completed = result.completed;
    if (sent) *sent = result.sent;
    if (termsig) *termsig = result.termsig;
    if (retcode) *retcode = result.retcode;
    if (outlen) *outlen = result.outlen;
    if (output) *output = result.output;
    if (errlen) *errlen = result.errlen;
    if (errors) *errors = result.error;
    return NO_ERROR;
}

int d_gkill(int number, int grain) {
    Call call;
    Session *x = held(number);
    if (!x || !x->grains.count(grain)) return error(D_E_GRAIN_UNKNOWN, "no such grain");
    Grain &g = x->grains[grain];
    if (g.state == "killed" || (g.state == "finished" && (x->closed || g.index < x->shown))) return NO_ERROR;
    if (x->closed) return error(D_E_REPLAY_END, "not killed in the closed session");
    if (g.state == "finished") x->results[g.index] = -1;
    g.state = "killed";
    return NO_ERROR;
}

int d_close_ses(int number) {
    Call call;
    Session *x = held(number);
    if (!x) return error(D_E_SESSION_UNKNOWN, "not opened");
    x->closed = 1;
    return NO_ERROR;
}

int d_pool_query_sized(struct d_pool *, const struct d_row_sizes *, int type, const char *, int, int,
                       struct d_info **info) {
    Call call;
    if (type != D_Q_SESSIONS) return error(D_E_INVALID, "not played");
    const passwd *entry = getpwuid(geteuid());
    static std::string user;
    user = entry ? entry->pw_name : "uid" + std::to_string(geteuid());
    auto *rows = new d_session_row[sessions.size() + 1]();
    *info = new d_info();
    (*info)->sessions = rows;
    for (auto &[number, x] : sessions) {
        d_session_row &row = rows[(*info)->session_count++];
        row.user = user.c_str(), row.ident = x.ident.c_str(), row.session = number;
        row.state = x.closed ? "terminated" : "active";
    }
    return NO_ERROR;
}

void d_query_free(struct d_info *info) {
    delete[] info->sessions;
    delete info;
}
}
