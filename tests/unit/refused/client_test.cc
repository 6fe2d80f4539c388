// What the library says when the kernel refuses it something, a file changes under its hands, or the scheduler sends
// what was not requested.
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <thread>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "client/remote.h"
#include "client/transport.h"
#include "dcs.h"
#include "pki/authority.h"
#include "support/about.h"
#include "support/catch.h"
#include "support/refuse.h"
#include "unit/client/fake_scheduler.h"

using namespace dcs;
using dcs::test::Act;
using dcs::test::FakeScheduler;
using dcs::test::plausible;
using dcs::test::Refusing;

namespace {

char *argv[] = {const_cast<char *>("/bin/true"), nullptr};

d_grain grain() {
    d_grain g;
    d_grain_init(&g);
    g.gargv = argv;
    return g;
}

// A file of its own that goes away with it.
class Scratch {
public:
    explicit Scratch(const std::string &bytes) {
        fd_ = ::mkstemp(path_);
        REQUIRE(fd_ >= 0);
        REQUIRE(::write(fd_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
    }
    Scratch(const Scratch &) = delete;
    ~Scratch() {
        ::close(fd_);
        ::unlink(path_);
    }
    const char *path() const { return path_; }
    void resize(off_t bytes) const { REQUIRE(::ftruncate(fd_, bytes) == 0); }

private:
    char path_[32] = "/tmp/dcs-refused-XXXXXX";
    int fd_ = -1;
};

// A session of a scheduler that answers what `which` takes with `reply`.
struct Bench {
    FakeScheduler fake;
    Bench() {
        REQUIRE(d_get_auth("tester") == NO_ERROR);
        REQUIRE(d_open_ses(1) == NO_ERROR);
    }
    template <class Request> void answer(const std::function<wire::AnyMessage(const Request &)> &reply) {
        fake.script([reply](const wire::AnyMessage &m, int) {
            Act a;
            a.reply = plausible(m);
            if (const auto *request = std::get_if<Request>(&m)) a.reply = reply(*request);
            return a;
        });
    }
};

int stream(const char *which) {
    std::FILE *file = nullptr;
    const int error = d_grain_stream(nullptr, 1, 1, which, &file);
    if (file != nullptr) std::fclose(file);
    return error;
}

int with_input(const char *path) {
    d_grain g = grain();
    g.input_path = path;
    return d_gexec_grain(1, 1, &g);
}

int with_file(const char *path) {
    d_grain g = grain();
    const d_file file{sizeof(d_file), "name", path, nullptr, 0, 0};
    g.files = &file;
    g.file_count = 1;
    return d_gexec_grain(1, 1, &g);
}

#define SAYS(call, number, text)                      \
    CHECK(std::string(d_errorname(call)) == #number); \
    CHECK(std::string(d_errortext()) == about(text))

}  // namespace

TEST_CASE("a stream that cannot be kept") {
    Bench bench;
    bench.answer<wire::Fetch>([](const wire::Fetch &) { return wire::Piece{3, "abc"}; });
    REQUIRE(stream("out") == NO_ERROR);
    {
        const Refusing room("tmpfile", ENOSPC);
        REQUIRE(stream("out") == NO_ERROR);  // memory will do
        CHECK(dcs_refused() == 1);
    }
    {
        const Refusing neither("tmpfile,memfd_create", EMFILE);
        SAYS(stream("out"), D_E_IO_ERROR, "no temporary many open files");
    }
    {
        const Refusing opened("tmpfile,fdopen", ENOMEM);
        SAYS(stream("out"), D_E_IO_ERROR, "no temporary allocate memory");
    }
    {
        const Refusing write("fwrite", ENOSPC);
        SAYS(stream("out"), D_E_IO_ERROR, "write temporary space left");
    }
    {
        const Refusing flush("fflush", EIO);
        SAYS(stream("out"), D_E_IO_ERROR, "write stream temporary Input/output");
    }
    CHECK(stream("out") == NO_ERROR);
}

TEST_CASE("a scheduler that sends too much of a stream, or another each time") {
    Bench bench;
    bench.answer<wire::Fetch>([](const wire::Fetch &f) { return wire::Piece{f.max + 1, std::string(f.max + 1, 'x')}; });
    const std::string most = std::to_string(limits::fetch_chunk_bytes);
    SAYS(stream("out"), D_E_PROTOCOL,
         "answer not follow DCS protocol Piece field bytes " + std::to_string(limits::fetch_chunk_bytes + 1) +
             " elements, the limit is " + most);
    int nth = 0;
    bench.answer<wire::Fetch>([&nth](const wire::Fetch &) { return wire::Piece{100 + std::uint64_t(++nth), "part"}; });
    SAYS(stream("message"), D_E_IO_ERROR, "replaces stream fetched");
    bench.fake.script(nullptr);
}

TEST_CASE("input and files that cannot be brought") {
    Bench bench;
    const Scratch large(std::string(limits::input_bytes + 10, 'i'));
    {
        const Refusing write("fwrite", ENOSPC);
        SAYS(with_input(large.path()), D_E_IO_ERROR,
             "cannot copy " + std::string(large.path()) + " temporary file No space left device");
    }
    const std::string most = std::to_string(limits::content_bytes);
    const Scratch huge("");
    huge.resize(off_t(limits::content_bytes) + 1);
    SAYS(with_file(huge.path()), D_E_LIMIT,
         huge.path() + (" has more than " + most + " bytes limit file put file server"));
    // The scheduler lacks what the grain needs; `asked` happens when it is asked what that is.
    const auto lacking = [&](const std::function<void()> &asked, const wire::AnyMessage &to_a_piece) {
        bench.fake.script([=](const wire::AnyMessage &m, int) {
            Act a;
            a.reply = plausible(m);
            if (std::holds_alternative<wire::Gexec>(m)) a.reply = wire::ErrorReply{D_E_NOT_FOUND, "bring them"};
            if (std::holds_alternative<wire::PutContent>(m)) a.reply = to_a_piece;
            if (const auto *ask = std::get_if<wire::AskContents>(&m)) {
                asked();
                a.reply = wire::MissingContents{ask->digests};
            }
            return a;
        });
    };
    const Scratch file("some bytes");
    lacking([] {}, wire::ErrorReply{D_E_INVALID, "other bytes"});
    SAYS(with_file(file.path()), D_E_INVALID, file.path() + std::string(" changed read call bytes"));
    lacking([&] { file.resize(3); }, wire::Done{});
    SAYS(with_file(file.path()), D_E_INVALID, file.path() + std::string(" became shorter read"));
    bench.fake.script(nullptr);
}

TEST_CASE("credentials that cannot be read or used") {
    FakeScheduler fake;
    const auto begun = [](int fd, const std::string &what) {
        return "DCS_AUTH_FD=" + std::to_string(fd) + " " + what +
               " start program dcs_begin scheduler's host works without";
    };
    const auto handed = [](const std::string &bytes) {
        const int fd = ::memfd_create("credentials", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        REQUIRE(::write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
        REQUIRE(::fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW) == 0);
        ::setenv("DCS_AUTH_FD", std::to_string(fd).c_str(), 1);
        return fd;
    };
    int fd = handed(std::string(32, 't'));
    {
        const Refusing read("pread", EIO);
        SAYS(d_get_auth("tester"), D_E_NO_AUTH, begun(fd, "cannot be read"));
    }
    ::close(fd);
    const pki::Authority authority = pki::make_authority(wall_clock_s());
    const std::string key = pki::new_key(), another = pki::new_key();
    const std::string own = *pki::issue(authority, *pki::public_key_of(another), pki::Role::program, "ann/desk1/find",
                                        wall_clock_s(), pki::program_life_s);
    const auto text = [&](const std::string &certificate) {
        return "DCS-CREDENTIALS 1\nscheduler pool.example:7001\ntoken " + std::string(64, 'a') + "\n" +
               pki::key_to_pem(key) + certificate + pki::certificate_to_pem(authority.certificate.der);
    };
    fd = handed(text(pki::certificate_to_pem(own)));
    SAYS(d_get_auth("tester"), D_E_NO_AUTH,
         begun(fd, "holds invalid credentials key certificate not belong together cannot used"));
    ::close(fd);
    // A certificate, but none of a pool.
    static const char strange[] =
        "-----BEGIN CERTIFICATE-----\n"
        "MIIBfjCCASOgAwIBAgIUPz0tjWX4rURPf6L2LXpNKH0ciP4wCgYIKoZIzj0EAwIw\n"
        "EzERMA8GA1UEAwwIc29tZWJvZHkwIBcNMjYxMTIyMjEwNTAzWhgPMjEyNjEwMjky\n"
        "MTA1MDNaMBMxETAPBgNVBAMMCHNvbWVib2R5MFkwEwYHKoZIzj0CAQYIKoZIzj0D\n"
        "AQcDQgAE9bS7U78DbvRDUlktG7eAhvbUiLKkP91Xb+JfbxKfuKPBxbKTrE6YlifT\n"
        "NsHgIPvp8POpefCC6c2uzRMpK5t9saNTMFEwHQYDVR0OBBYEFEHsOiASHHx+WOs+\n"
        "Os8mQ1v3I4x0MB8GA1UdIwQYMBaAFEHsOiASHHx+WOs+Os8mQ1v3I4x0MA8GA1Ud\n"
        "EwEB/wQFMAMBAf8wCgYIKoZIzj0EAwIDSQAwRgIhAKdkJDXI/cVem6+hUXbstzr4\n"
        "eFZSwC0s99T294VbRC09AiEAjMa1K2NLLIX1rRqyHCsWcNPGeo0kkpd9+xoDbiMX\n"
        "XAw=\n"
        "-----END CERTIFICATE-----\n";
    const auto read = client::read_remote_credentials(text(strange));
    REQUIRE_FALSE(read);
    CHECK(read.status().text == about("certificate not role"));
    ::unsetenv("DCS_AUTH_FD");
    fake.script([](const wire::AnyMessage &m, int) {
        Act a;
        a.reply = plausible(m);
        if (std::holds_alternative<wire::GetAuth>(m)) a.reply = wire::AuthReply{"short"};
        return a;
    });
    SAYS(d_get_auth("another"), D_E_PROTOCOL, "scheduler token length");
    fake.script(nullptr);
}

TEST_CASE("no pool to be found, and no connection to it") {
    {
        FakeScheduler fake;
        REQUIRE(d_get_auth("tester") == NO_ERROR);
    }
    ::setenv("DCS_DIR", "pool", 1);
    SAYS(d_open_ses(2), D_E_INVALID, "DCS_DIR \"pool\" absolute");
    client::Transport transport;
    CHECK(transport.send("x", Instant::never()).text == "not connected");
    CHECK(transport.receive(100, Instant::never()).status().text == "not connected");
    const Refusing none("socket", EMFILE);
    CHECK(transport.connect("/no/such/socket").why == "socket: Too many open files");
}

TEST_CASE("a second thread that asks for results of one session") {
    Bench bench;
    std::atomic<bool> asked = false;
    bench.fake.script([&](const wire::AnyMessage &m, int) {
        Act a;
        a.reply = plausible(m);
        if (std::holds_alternative<wire::Gwait>(m)) a.park = asked = true;
        return a;
    });
    const auto wait = [](int block) {
        return d_gwait(block, 1, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                       nullptr);
    };
    std::thread first([&] { (void)wait(1); });
    while (!asked) std::this_thread::yield();
    SAYS(wait(0), D_E_NOTHING_YET, "thread session 1");
    bench.fake.script(nullptr);
    bench.fake.stop();
    bench.fake.start();
    first.join();
}
