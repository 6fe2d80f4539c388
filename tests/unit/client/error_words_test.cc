// What the library tells a programmer whose arguments are wrong, or whose scheduler talks nonsense: to the letter.
#include <cerrno>
#include <cmath>
#include <cstring>
#include <functional>

#include <sys/mman.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/version.h"
#include "c_calls.h"
#include "support/about.h"

using namespace dcs;
using namespace dcs::test;

namespace {

char *argv[] = {const_cast<char *>("/bin/true"), nullptr};

d_grain good_grain() {
    d_grain g;
    d_grain_init(&g);
    g.gargv = argv;
    return g;
}

struct Case {
    const char *text;
    int error;
    std::function<int()> call;
};

void check(const std::vector<Case> &cases) {
    for (const Case &c : cases) {
        INFO(c.text);
        CHECK(d_errorname(c.call()) == std::string(d_errorname(c.error)));
        CHECK(std::string(d_errortext()) == about(c.text));
    }
}

// One field of a grain is wrong.
Case field(const char *text, int error, std::function<void(d_grain &)> spoil) {
    return {text, error, [spoil] {
                d_grain g = good_grain();
                spoil(g);
                return d_gexec_grain(1, 1, &g);
            }};
}

Case change(const char *text, std::function<void(d_host_change &)> spoil) {
    return {text, D_E_INVALID, [spoil] {
                d_host_change c;
                d_host_change_init(&c);
                spoil(c);
                return d_sethost("h", &c);
            }};
}

Case ident(const char *text, const char *name) {
    return {text, D_E_INVALID, [name] { return d_get_auth(name); }};
}

// d_gexec_many: which of the orders, and why.
Case orders(const char *text, std::vector<int> numbers) {
    return {text, D_E_INVALID, [numbers] {
                std::vector<d_grain_order> all;
                for (int n : numbers) {
                    d_grain_order_init(&all.emplace_back(), n);
                    all.back().grain = good_grain();
                }
                return d_gexec_many(1, all.data(), all.size(), nullptr, nullptr);
            }};
}

int wait_one(int session) {
    return d_gwait(0, session, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                   nullptr);
}

const std::string long_name(limits::name_bytes + 1, 'x');
std::string long_path(limits::path_bytes + 1, 'x'), long_label(limits::label_bytes + 1, 'x');

std::vector<Case> of_grains() {
    static char *none[] = {nullptr}, *bad_env[] = {const_cast<char *>("NOVALUE"), nullptr};
    static std::string huge(limits::argv_env_bytes + 1, 'x');
    static char *huge_argv[] = {huge.data(), nullptr};
    static std::vector<char *> many(limits::argv_items + 1, const_cast<char *>("x"));
    many.push_back(nullptr);
    static const std::string items = "number strings gargv genvv together " + std::to_string(limits::argv_items + 1) +
                                     ", the limit is " + std::to_string(limits::argv_items),
                             bytes = "length gargv genvv together " + std::to_string(huge.size() + 1) +
                                     ", the limit is " + std::to_string(limits::argv_env_bytes),
                             input = "length input " + std::to_string(limits::input_bytes + 1) + ", the limit is " +
                                     std::to_string(limits::input_bytes),
                             directory = "the length of directory is " + std::to_string(limits::path_bytes + 1) +
                                         ", the limit is " + std::to_string(limits::path_bytes),
                             label = "the length of label is " + std::to_string(limits::label_bytes + 1) +
                                     ", the limit is " + std::to_string(limits::label_bytes);
    return {
        {"description grain NULL", D_E_INVALID, [] { return d_gexec_grain(1, 1, nullptr); }},
        field("gargv[0] missing executable", D_E_INVALID, [](d_grain &g) { g.gargv = none; }),
        field("thrash -1 2147483647", D_E_INVALID, [](d_grain &g) { g.thrash = -1; }),
        field("attempts 256 255", D_E_INVALID, [](d_grain &g) { g.attempts = 256; }),
        field("genvv \"NOVALUE\" NAME=value", D_E_INVALID, [](d_grain &g) { g.genvv = bad_env; }),
        field(items.c_str(), D_E_LIMIT, [](d_grain &g) { g.gargv = many.data(); }),
        field(bytes.c_str(), D_E_LIMIT, [](d_grain &g) { g.gargv = huge_argv; }),
        field(input.c_str(), D_E_LIMIT, [](d_grain &g) { g.input_length = limits::input_bytes + 1; }),
        field("input NULL input_length", D_E_INVALID, [](d_grain &g) { g.input_length = 3; }),
        field(directory.c_str(), D_E_LIMIT, [](d_grain &g) { g.directory = long_path.c_str(); }),
        field("directory \"work\" absolute", D_E_INVALID, [](d_grain &g) { g.directory = "work"; }),
        field(label.c_str(), D_E_LIMIT, [](d_grain &g) { g.label = long_label.c_str(); }),
    };
}

std::vector<Case> of_files() {
    static d_file nowhere = file_of("name", nullptr), nameless = file_of(nullptr, "/etc/passwd"),
                  named = file_of("prog", "/bin/true"), missing = file_of("name", "/no/such/file"),
                  folder = file_of("name", "/tmp"), unreadable = file_of("name", "/proc/self/mem"),
                  above = file_of("../up", "/etc/passwd"), later = file_of("name", "/etc/passwd");
    later.reserved = 1;
    static d_file twice[] = {file_of("a", "/etc/passwd"), file_of("a", "/etc/passwd")},
                  below[] = {file_of("a", "/etc/passwd"), file_of("a/b", "/etc/passwd")},
                  programs[] = {file_of(nullptr, "/bin/true"), file_of(nullptr, "/bin/true")};
    const auto files = [](d_grain &g, const d_file *list, std::size_t count) {
        g.files = list;
        g.file_count = count;
    };
    static const std::string most = "files, the limit is " + std::to_string(limits::grain_files),
                             name = "file name \"../up\" not below working directory give relative without \"..\", " +
                                    std::to_string(limits::file_name_bytes) + " bytes";
    return {
        field("files NULL not", D_E_INVALID, [](d_grain &g) { g.file_count = 1; }),
        field(most.c_str(), D_E_LIMIT, [=](d_grain &g) { files(g, &nowhere, limits::grain_files + 1); }),
        field("file grain no", D_E_INVALID, [=](d_grain &g) { files(g, &nowhere, 1); }),
        field("/etc/passwd no directory", D_E_INVALID, [=](d_grain &g) { files(g, &nameless, 1); }),
        field("/bin/true gargv[0] NULL", D_E_INVALID,
              [](d_grain &g) {
                  g.programs = &named;
                  g.program_count = 1;
              }),
        field("two programs binary", D_E_INVALID,
              [](d_grain &g) {
                  g.programs = programs;
                  g.program_count = 2;
              }),
        field("/no/such/file cannot file", D_E_NOT_FOUND, [=](d_grain &g) { files(g, &missing, 1); }),
        field("/tmp not ordinary", D_E_INVALID, [=](d_grain &g) { files(g, &folder, 1); }),
        field("cannot read /proc/self/mem Input/output error", D_E_IO_ERROR,
              [=](d_grain &g) { files(g, &unreadable, 1); }),
        field(name.c_str(), D_E_INVALID, [=](d_grain &g) { files(g, &above, 1); }),
        field("program set field files library version " DCS_VERSION " not install newer library", D_E_INVALID,
              [=](d_grain &g) { files(g, &later, 1); }),
        field("two files name", D_E_INVALID, [=](d_grain &g) { files(g, twice, 2); }),
        field("file a/b below", D_E_INVALID, [=](d_grain &g) { files(g, below, 2); }),
        field("working directory directory", D_E_INVALID,
              [=](d_grain &g) {
                  files(g, twice, 1);
                  g.directory = "/tmp";
              }),
        field("twice input_path input_fd", D_E_INVALID,
              [](d_grain &g) {
                  g.input_path = "/etc/passwd";
                  g.input_fd = 0;
              }),
        field("input_fd -7 -1 none", D_E_INVALID, [](d_grain &g) { g.input_fd = -7; }),
        field("cannot read input_fd Bad descriptor", D_E_INVALID, [](d_grain &g) { g.input_fd = 12345; }),
        field("cannot read /proc/self/mem Input/output error", D_E_IO_ERROR,
              [](d_grain &g) { g.input_path = "/proc/self/mem"; }),
    };
}

std::vector<Case> of_numbers_and_names() {
    static d_info *info = nullptr;
    static d_explanation *why = nullptr;
    static std::FILE *file = nullptr;
    static d_result results[1];
    static int count = 0;
    d_result_init(results, 1);
    return {
        {"session_num -1 2147483647", D_E_INVALID, [] { return d_open_ses(-1); }},
        {"grain_num -2 2147483647", D_E_INVALID, [] { return d_gkill(1, -2); }},
        {"user longer longest", D_E_INVALID, [] { return d_gkill_of(long_name.c_str(), 1, 1); }},
        {"orders NULL 2", D_E_INVALID, [] { return d_gexec_many(1, nullptr, 2, nullptr, nullptr); }},
        orders("grain 7 occurs twice orders 0 2", {7, 8, 7}),
        orders("grain -1 grain_num -1 grain numbers 0 2147483647", {7, -1}),
        {"max 0 least", D_E_INVALID, [] { return d_gwait_many(0, 1, 0, results, &count); }},
        {"results not NULL", D_E_INVALID, [] { return d_gwait_many(0, 1, 1, nullptr, &count); }},
        {"session 4711 not", D_E_SESSION_UNKNOWN, [] { return wait_one(4711); }},
        {"info is NULL", D_E_INVALID, [] { return d_query(D_Q_SYSTEM, nullptr, -1, -1, nullptr); }},
        {"count 18446744073709551615 array", D_E_INVALID,
         [] {
             static d_grain_order order;
             d_grain_order_init(&order, 1);
             return d_gexec_many(1, &order, SIZE_MAX, nullptr, nullptr);
         }},
        {"session_num -2 2147483647", D_E_INVALID, [] { return d_query(D_Q_GRAINS, nullptr, -2, -1, &info); }},
        {"query_type 99 D_Q_", D_E_INVALID, [] { return d_query(99, nullptr, -1, -1, &info); }},
        {"stream \"both\" checkpoint", D_E_INVALID, [] { return d_grain_stream(nullptr, 1, 1, "both", &file); }},
        {"file is NULL", D_E_INVALID, [] { return d_grain_stream(nullptr, 1, 1, "out", nullptr); }},
        {"file is NULL", D_E_INVALID, [] { return d_grain_file(nullptr, 1, 1, "x", nullptr); }},
        {"name file missing", D_E_INVALID, [] { return d_grain_file(nullptr, 1, 1, "", &file); }},
        {"explanation is NULL", D_E_INVALID, [] { return d_explain(nullptr, 1, 1, nullptr); }},
        {"user longer longest", D_E_INVALID, [] { return d_explain(long_name.c_str(), 1, 1, &why); }},
        {"host missing table", D_E_INVALID, [] { return d_sethost("", nullptr); }},
        {"host longer host's", D_E_INVALID, [] { return d_sethost(long_name.c_str(), nullptr); }},
        {"change is NULL", D_E_INVALID, [] { return d_sethost("h", nullptr); }},
        change("no field change set set d_host_change_init", [](d_host_change &) {}),
        change("limit_s must 1e9 seconds negative keep", [](d_host_change &c) { c.limit_s = NAN; }),
        ident("control_ident empty give control program name", ""),
        ident("control_ident 65 bytes 64 allowed", long_name.c_str()),
        ident("control_ident not begin -", "-x"),
        ident("control_ident consist A-Z a-z 0-9 _ -", "a b"),
    };
}

// A file of memory as dcs_begin leaves one, its number in DCS_AUTH_FD; sealed or not.
int handed_over(const std::string &bytes, bool sealed) {
    const int fd = ::memfd_create("credentials", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    REQUIRE(::write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
    if (sealed) REQUIRE(::fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW) == 0);
    ::setenv("DCS_AUTH_FD", std::to_string(fd).c_str(), 1);
    return fd;
}

std::string begun(const std::string &what) { return what + " start program dcs_begin scheduler's host works without"; }

Case answered(const char *text, int error, std::function<bool(const wire::AnyMessage &)> which, wire::AnyMessage reply,
              std::function<int()> call, FakeScheduler &fake) {
    return {text, error, [=, &fake] {
                fake.script([=](const wire::AnyMessage &m, int) {
                    Act a;
                    a.reply = which(m) ? reply : plausible(m);
                    return a;
                });
                const int result = call();
                fake.script(nullptr);
                return result;
            }};
}

}  // namespace

TEST_CASE("wrong arguments: each error says which one, and what it may be") {
    FakeScheduler fake;
    REQUIRE(d_get_auth("tester") == NO_ERROR);
    REQUIRE(d_open_ses(1) == NO_ERROR);
    check(of_grains());
    check(of_files());
    check(of_numbers_and_names());
    REQUIRE(d_close_ses(1) == NO_ERROR);
    check({{"session 1 closed program", D_E_SESSION_CLOSED, [] { return wait_one(1); }}});
}

TEST_CASE("what dcs_begin should have left, and did not") {
    FakeScheduler fake;
    const auto get = [] { return d_get_auth("tester"); };
    ::setenv("DCS_AUTH_FD", "none", 1);
    check({{begun("DCS_AUTH_FD=none not open descriptor").c_str(), D_E_NO_AUTH, get}});
    int fd = handed_over(std::string(32, 't'), false);
    check({{begun("DCS_AUTH_FD=" + std::to_string(fd) + " does not hold a token").c_str(), D_E_NO_AUTH, get}});
    ::close(fd);
    fd = handed_over("something else, of some length that no token has", true);
    CHECK(d_errorname(get()) == std::string("D_E_NO_AUTH"));
    CHECK(std::string(d_errortext()) == about(begun("DCS_AUTH_FD=" + std::to_string(fd) +
                                                    " not hold token credentials dcs_begin version not library")));
    ::close(fd);
    ::unsetenv("DCS_AUTH_FD");
}

TEST_CASE("a scheduler that talks nonsense is not believed, and what it said is told") {
    FakeScheduler fake;
    REQUIRE(d_get_auth("tester") == NO_ERROR);
    REQUIRE(d_open_ses(2) == NO_ERROR);
    const auto result = [](int sent) {
        wire::GrainResult r;
        r.grain = 1;
        r.sent = sent;
        return r;
    };
    wire::QueryReply sessions, grains;
    sessions.more = grains.more = true;
    d_result results[2];
    d_result_init(results, 2);
    int count = 0;
    d_info *info = nullptr;
    const auto take = [&] { return d_gwait_many(0, 2, 2, results, &count); };
    const auto three = [] { return d_open_ses(3); };
    check({
        answered("scheduler sent unknown error 99 oh", D_E_PROTOCOL, is<wire::OpenSession>, wire::ErrorReply{99, "oh"},
                 three, fake),
        answered("scheduler answered OpenSession AuthReply", D_E_PROTOCOL, is<wire::OpenSession>, wire::AuthReply{},
                 three, fake),
        answered(
            "scheduler sent result -1 expected 0", D_E_PROTOCOL, is<wire::Gwait>, result(0), [] { return wait_one(2); },
            fake),
        answered("scheduler sent 3 results expected 1 2", D_E_PROTOCOL, is<wire::GwaitMany>,
                 wire::GrainResults{{result(1), result(2), result(3)}}, take, fake),
        answered("scheduler sent result 4 expected 5", D_E_PROTOCOL, is<wire::GwaitMany>,
                 wire::GrainResults{{result(5), result(5)}}, take, fake),
        answered(
            "scheduler repeats page sessions", D_E_PROTOCOL, is<wire::Query>, sessions,
            [&] { return d_query(D_Q_SESSIONS, nullptr, -1, -1, &info); }, fake),
        answered(
            "scheduler repeats page grains", D_E_PROTOCOL, is<wire::Query>, grains,
            [&] { return d_query(D_Q_GRAINS, nullptr, 2, -1, &info); }, fake),
    });
    fake.script([](const wire::AnyMessage &m, int) {
        Act a;
        a.reply = plausible(m);
        if (is<wire::Gexec>(m)) a.reply = wire::ErrorReply{D_E_NOT_FOUND, "its files are not here"};
        if (is<wire::AskContents>(m)) a.reply = wire::MissingContents{{std::string(32, 'd')}};
        return a;
    });
    const d_file file = file_of("name", "/etc/passwd");
    d_grain g = good_grain();
    g.files = &file;
    g.file_count = 1;
    CHECK(d_gexec_grain(2, 1, &g) == D_E_PROTOCOL);
    CHECK(d_errortext() == about(std::string("scheduler requests content not offered")));
}
