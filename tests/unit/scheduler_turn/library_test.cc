// The library's own files on a disk that loses what was not synced.
#include "pki/digest.h"
#include "scheduler/library/library.h"
#include "support/catch.h"
#include "support/sim_disk.h"

using namespace dcs;
using namespace dcs::test;

TEST_CASE("a crash anywhere in a put shows the content whole or not at all, and keeps what was answered") {
    const CrashModel model = GENERATE(CrashModel::weak, CrashModel::journal);
    const std::string bytes(1500, 'c'), digest = pki::sha256_text(bytes);
    SimDisk disk;
    bool answered = false;
    std::size_t states = 0, with = 0;
    const auto look = [&](SimDisk &left) {
        left.after_operation = nullptr;
        auto library = library::Library::open(left, Instant{});
        REQUIRE(library);
        ++states;
        const library::Content *found = (*library)->find(digest);
        if (answered) REQUIRE(found);
        CHECK(left.files("library/incoming").size() <= 1);  // the directory itself
        for (const auto &[name, content] : left.files("library/incoming")) CHECK(name.back() == '/');
        if (!found) return;
        ++with;
        CHECK(library::work(left, {library::Job::Kind::check, digest, found->size, {}}).status);
    };
    // The process is killed, the next one sees the content and relies on it; then the power fails.
    const auto look_twice = [&](SimDisk left) {
        auto library = library::Library::open(left, Instant{});
        REQUIRE(library);
        if (!(*library)->find(digest)) return;
        SimDisk later = left.crashed();
        auto again = library::Library::open(later, Instant{});
        REQUIRE(again);
        CHECK((*again)->find(digest));
    };
    disk.after_operation = [&] {
        disk.each_crash(
            model, 300, 1, [](std::uint64_t) { return true; }, look);
        look_twice(disk.killed());
    };
    auto library = library::Library::open(disk, Instant{});
    REQUIRE(library);
    auto temporary = (*library)->begin(bytes.size());
    REQUIRE(temporary);
    REQUIRE((*library)->append(*temporary, 0, bytes.substr(0, 700)));
    REQUIRE((*library)->append(*temporary, 700, bytes.substr(700)));
    REQUIRE(library::work(disk, {library::Job::Kind::seal, digest, bytes.size(), *temporary}).status);
    answered = true;
    disk.each_crash(
        model, 300, 1, [](std::uint64_t) { return true; }, look);
    CHECK(states > 20);
    CHECK(with > 2);
}

TEST_CASE("what there is of an upload is read once, while the rest comes") {
    using Kind = library::Job::Kind;
    const std::string bytes(1500, 'r'), digest = pki::sha256_text(bytes);
    SimDisk disk;
    auto library = library::Library::open(disk, Instant{});
    REQUIRE(library);
    auto temporary = (*library)->begin(bytes.size());
    REQUIRE(temporary);
    library::Worker worker(disk);
    const auto upload = [&](char first) {
        REQUIRE((*library)->append(*temporary, 0, first + bytes.substr(1, 699)));
        REQUIRE(worker.work({Kind::read, digest, 700, *temporary}).status);
        REQUIRE((*library)->append(*temporary, 700, bytes.substr(700, 300)));
        REQUIRE(worker.work({Kind::read, digest, 1000, *temporary}).status);
        REQUIRE((*library)->append(*temporary, 1000, bytes.substr(1000)));
    };
    SECTION("the seal has its digest") {
        upload('r');
        REQUIRE(disk.overwrite(*temporary, 0, "x"));  // which only the one who reads again notices
        CHECK(worker.work({Kind::seal, digest, bytes.size(), *temporary}).status);
        CHECK(worker.work({Kind::check, digest, bytes.size(), {}}).status.code == Code::invalid);
    }
    SECTION("another byte among those is found") {
        upload('x');
        CHECK(worker.work({Kind::seal, digest, bytes.size(), *temporary}).status.code == Code::invalid);
        CHECK(disk.files("library/incoming").size() <= 1);
    }
    SECTION("a worker that has read none of it reads all") {
        upload('r');
        CHECK(library::work(disk, {Kind::seal, digest, bytes.size(), *temporary}).status);
    }
    SECTION("an upload that was dropped meanwhile") {
        upload('r');
        (*library)->discard(*temporary);
        CHECK(worker.work({Kind::read, digest, bytes.size(), *temporary}).status.code == Code::not_found);
    }
}

TEST_CASE("a content that is brought again and cannot be made durable leaves the one that is there") {
    const std::string bytes(1500, 'a'), digest = pki::sha256_text(bytes);
    SimDisk disk;
    auto library = library::Library::open(disk, Instant{});
    REQUIRE(library);
    const auto bring = [&](std::uint64_t failing) {
        auto temporary = (*library)->begin(bytes.size());
        REQUIRE(temporary);
        REQUIRE((*library)->append(*temporary, 0, bytes));
        if (failing != 0) disk.fail_at(failing, Fault::io_error, false);
        const Status s = library::work(disk, {library::Job::Kind::seal, digest, bytes.size(), *temporary}).status;
        disk.clear_faults();
        return s;
    };
    REQUIRE(bring(0));
    int failed = 0;
    for (std::uint64_t n = 1; n < 30; ++n) {
        INFO("call " << n << " of the seal fails");
        failed += !bring(n);
        REQUIRE(library::work(disk, {library::Job::Kind::check, digest, bytes.size(), {}}).status);
    }
    CHECK(failed > 5);
}
