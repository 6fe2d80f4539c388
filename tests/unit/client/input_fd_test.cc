// The input of a grain from a descriptor: all of it, and again when the call failed.
#include <atomic>
#include <csignal>
#include <thread>

#include <pthread.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/files.h"
#include "base/limits.h"
#include "client/streams.h"
#include "c_calls.h"

using namespace dcs;
using namespace dcs::test;

namespace {

int submit_from(int fd) {
    d_grain grain;
    d_grain_init(&grain);
    grain.gargv = words;
    grain.input_fd = fd;
    return d_gexec_grain(1, 1, &grain);
}

std::atomic<int> signals{0};

}  // namespace

TEST_CASE("a call that failed reads a file again from where the descriptor stood") {
    FakeScheduler fake;
    get_auth();
    REQUIRE(d_open_ses(1) == NO_ERROR);
    auto file = client::temporary_file();
    REQUIRE(file);
    const int fd = ::fileno(file->get());
    const std::string head = "read by the program\n";
    // The second one does not go inline.
    for (const std::size_t size : {std::size_t{7}, limits::input_bytes + 5}) {
        INFO(size);
        const std::string input(size, 'i');
        REQUIRE(::ftruncate(fd, 0) == 0);
        REQUIRE(pwrite_all(fd, head + input, 0));
        REQUIRE(::lseek(fd, static_cast<off_t>(head.size()), SEEK_SET) > 0);
        std::vector<wire::GrainSpec> specs;
        fake.script([&](const wire::AnyMessage &m, int) {
            Act a = as_usual(m);
            if (const auto *one = std::get_if<wire::Gexec>(&m)) {
                specs.push_back(one->spec);
                if (specs.size() == 1) a.reply = wire::ErrorReply{D_E_NO_SPACE, "full"};
            }
            return a;
        });
        CHECK(submit_from(fd) == D_E_NO_SPACE);
        CHECK(::lseek(fd, 0, SEEK_CUR) == static_cast<off_t>(head.size()));
        CHECK(submit_from(fd) == D_OK);
        CHECK(::lseek(fd, 0, SEEK_CUR) == static_cast<off_t>(head.size() + size));
        fake.script(nullptr);
        REQUIRE(specs.size() == 2);
        CHECK(specs[0].input == specs[1].input);
        CHECK(specs[0].input == (size == 7 ? input : ""));
        REQUIRE(specs[0].files.size() == specs[1].files.size());
        REQUIRE(specs[0].files.size() == (size == 7 ? 0 : 1));
        if (size == 7) continue;
        CHECK(specs[0].files[0].size == size);
        CHECK(specs[0].files[0].digest == specs[1].files[0].digest);
    }
}

TEST_CASE("signals do not cut the input from a pipe") {
    FakeScheduler fake;
    get_auth();
    REQUIRE(d_open_ses(1) == NO_ERROR);
    struct sigaction with = {}, before = {};
    with.sa_handler = [](int) { ++signals; };  // without SA_RESTART
    REQUIRE(::sigaction(SIGUSR1, &with, &before) == 0);
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    const Fd from(ends[0]);
    std::thread writer([to = ends[1], reader = ::pthread_self()] {
        const auto say = [to](const char *text) { return write_all(to, text); };
        say("hello ");
        for (int left = 1; left > 0;) ::ioctl(to, FIONREAD, &left);
        for (signals = 0; signals < 20; ::usleep(1000)) ::pthread_kill(reader, SIGUSR1);
        say("world");
        ::close(to);
    });
    const int error = submit_from(from.get());
    writer.join();
    ::sigaction(SIGUSR1, &before, nullptr);
    CHECK(error == D_OK);
    const auto sent = fake.all<wire::Gexec>();
    REQUIRE(sent.size() == 1);
    CHECK(sent[0].second.spec.input == "hello world");
}
