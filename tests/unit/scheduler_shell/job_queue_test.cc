// The order in which contents are checked.
#include <catch2/catch.hpp>

#include "scheduler/shell/library_thread.h"

using namespace dcs;

TEST_CASE("a small content overtakes large ones, which are overtaken a limited number of times") {
    constexpr std::uint64_t mib = 1 << 20;
    shell::JobQueue queue;
    const auto put = [&](const std::string &name, std::uint64_t size) {
        queue.put({library::Job::Kind::check, name, size, ""});
    };
    for (const char *name : {"large 1", "large 2"}) put(name, 100 * mib);
    put("small", 1000);
    CHECK(queue.take().digest == "small");
    for (int i = 0; i < 97; ++i) {
        put("later", 1000);
        CHECK(queue.take().digest == "later");
    }
    for (const char *name : {"one more", "much later"}) put(name, 1000);
    for (const char *name : {"large 1", "one more", "large 2", "much later"}) CHECK(queue.take().digest == name);
    CHECK(queue.empty());
}

TEST_CASE("owners of contents take turns, however many one has") {
    shell::JobQueue queue;
    const auto put = [&](const std::string &owner, std::uint64_t size) {
        queue.put({library::Job::Kind::seal, owner, size, "", owner});
    };
    for (int i = 0; i < 1000; ++i) put("eve", 8);
    for (int i = 0; i < 10; ++i) CHECK(queue.take().owner == "eve");
    put("ann", 1000);
    put("ann", 1000);
    put("bob", 1000);
    int others = 0;
    for (int i = 0; i < 6; ++i) others += queue.take().owner != "eve";
    CHECK(others == 3);
    for (int i = 0; i < 987; ++i) CHECK(queue.take().owner == "eve");
    CHECK(queue.empty());
}
