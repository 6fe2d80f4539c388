// What a decoder of imports may do, tried in processes that are fenced like one.
#include <csignal>
#include <functional>
#include <new>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scheduler/reader/reader.h"
#include "support/catch.h"
#include "wire/import_rows.h"
#include "wire/message.h"

using namespace dcs;
using namespace dcs::reader;

namespace {

constexpr std::uint64_t length = 1000;

// How a fenced process ends that does this: "killed by 31", "exit 0".
std::string end_of(const std::function<int(int)> &what) {
    int pair[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    const pid_t pid = ::fork();
    if (pid == 0) {
        int socket = pair[1];
        std::signal(SIGABRT, SIG_DFL);             // Catch listens to it
        ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);  // as the reader
        ::_exit(fence_decoder(socket, length) ? what(socket) : 99);
    }
    ::close(pair[0]), ::close(pair[1]);
    int status = 0;
    REQUIRE(::waitpid(pid, &status, 0) == pid);
    return WIFSIGNALED(status) ? "killed by " + std::to_string(WTERMSIG(status))
                               : "exit " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("a decoder may do nothing but decode") {
    const std::string ended = "killed by " + std::to_string(SIGSYS);
    const pid_t parent = ::getpid();
    CHECK(end_of([](int) { return 0; }) == "exit 0");
    CHECK(end_of([](int) { return ::open("/etc/passwd", O_RDONLY) >= 0 ? 1 : 2; }) == ended);
    CHECK(end_of([](int) { return ::socket(AF_INET, SOCK_STREAM, 0) >= 0 ? 1 : 2; }) == ended);
    CHECK(end_of([](int) { return ::fork() >= 0 ? 1 : 2; }) == ended);
    CHECK(end_of([&](int) { return ::kill(parent, 0) == 0 ? 1 : 2; }) == ended);
    CHECK(end_of([](int) { return ::execl("/bin/true", "true", nullptr); }) == ended);
    CHECK(end_of([](int) { return static_cast<int>(::alarm(0)); }) == ended);
    CHECK(end_of([](int) { return ::setuid(0); }) == ended);
    CHECK(end_of([](int) {
              void *code = ::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
              return code == MAP_FAILED ? 2 : 1;
          }) == ended);
    CHECK(end_of([](int) -> int { std::abort(); }) == "killed by " + std::to_string(SIGABRT));
    CHECK(end_of([](int) {
              try {
                  return std::string(200u << 20, 'x').empty() ? 1 : 2;
              } catch (const std::bad_alloc &) { return 7; }
          }) == "exit 7");
    CHECK(end_of([](int socket) {
              char byte = 0;
              return socket == 3 && ::read(socket, &byte, 1) == 0 ? 0 : 1;
          }) == "exit 0");
    CHECK(end_of([](int) { return ::close(0); }) == ended);
}
#endif

TEST_CASE("the reader decodes imports, and tells what became of a decoder") {
    auto reader = Reader::start();
    REQUIRE(reader);
    wire::ExportedSession head;
    head.ident = "prog";
    ByteWriter stream;
    stream.text(wire::pack(head));
    const auto nothing = [](int) {};
    const auto rows = (*reader)->decode(stream.bytes(), nothing);
    REQUIRE(rows);
    CHECK(*rows == *wire::rows_of_import(stream.bytes()));
    CHECK((*reader)->decode("", nothing).status().text == wire::rows_of_import("").status().text);
    // Cut off before it has the stream.
    const auto killed = (*reader)->decode(stream.bytes(), [](int socket) {
        if (socket < 0) return;
        REQUIRE(::shutdown(socket, SHUT_RDWR) == 0);
    });
    CHECK(killed.status().text.find("the process that decoded it ") != std::string::npos);
    CHECK((*reader)->decode(stream.bytes(), nothing));
}

TEST_CASE("only requests of the known form are read, and only whole answers") {
    const auto text = [](const Packet &packet) {
        return std::string(reinterpret_cast<const char *>(&packet), sizeof packet);
    };
    CHECK(read_packet(text({1, 0, 5})));
    CHECK(read_packet(text({2, 77, 0})));
    CHECK_FALSE(read_packet(text({1, 77, 5})));
    CHECK_FALSE(read_packet(text({2, 77, 1})));
    CHECK_FALSE(read_packet(text({3, 0, 0})));
    CHECK_FALSE(read_packet(text({1, 0, std::uint64_t{1} << 40})));
    CHECK_FALSE(read_packet(text({1, 0, 5}) + "x"));
    const std::string whole = envelope_head(Code::ok, 4) + "rows";
    CHECK(**open_envelope(whole) == "rows");
    CHECK_FALSE(open_envelope(whole.substr(0, whole.size() - 1)));
    CHECK_FALSE(open_envelope(whole + "x"));
    CHECK_FALSE(open_envelope(""));
    const auto refused = open_envelope(envelope_head(Code::limit, 100'000) + std::string(100'000, 'w'));
    REQUIRE(refused);
    CHECK(refused->status().code == Code::limit);
    CHECK(refused->status().text.size() == 4096);
}
