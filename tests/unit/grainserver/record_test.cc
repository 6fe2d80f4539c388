// Records that are written in one call, and what the launcher reads again only when it has changed.
#include <sys/resource.h>

#include "grainserver/starter/prepared.h"
#include "launcher_bench.h"
#include "support/refuse.h"

using namespace bench;

TEST_CASE("a record is whole or not there") {
    ScratchDir dir;
    const Result<Fd> fd = open_directory(AT_FDCWD, dir.path);
    const std::string bytes(3000, 'x');
    REQUIRE_FALSE(files::has_record(fd->get(), "record"));
    put_file(dir.path + "/record", "");
    REQUIRE_FALSE(files::has_record(fd->get(), "record"));
    rlimit before{};
    ::getrlimit(RLIMIT_FSIZE, &before);
    const rlimit little{1000, before.rlim_max};
    const auto handler = ::signal(SIGXFSZ, SIG_IGN);
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &little) == 0);
    const Status refused = files::write_record(fd->get(), "record", bytes);
    ::setrlimit(RLIMIT_FSIZE, &before);
    ::signal(SIGXFSZ, handler);
    REQUIRE_FALSE(refused);
    REQUIRE_FALSE(files::has_record(fd->get(), "record"));
    REQUIRE(files::write_record(fd->get(), "record", bytes));
    REQUIRE(get_file(dir.path + "/record") == bytes);
    REQUIRE(files::has_record(fd->get(), "record"));
    REQUIRE(files::void_record(fd->get(), "record"));
    REQUIRE_FALSE(files::has_record(fd->get(), "record"));
    REQUIRE_FALSE(files::void_record(fd->get(), "none"));
#if DCS_CAN_REFUSE
    {  // as if the writer were killed before its last call
        const test::Refusing all(
            (test::order("pwrite", EIO, "record", 1) + " " + test::order("ftruncate", EIO, "record", 1)).c_str());
        REQUIRE_FALSE(files::write_record(fd->get(), "record", "shorter"));
        REQUIRE(dcs_refused() == 2);
    }
    REQUIRE_FALSE(files::has_record(fd->get(), "record"));
#endif
    REQUIRE(files::write_record(fd->get(), "record", "shorter"));
    REQUIRE(get_file(dir.path + "/record") == "shorter");
}

TEST_CASE("the owner's rules are those that the file has now") {
    ScratchDir dir;
    const Result<Fd> fd = open_directory(AT_FDCWD, dir.path);
    starter::Prepared prepared;
    REQUIRE_FALSE(prepared.rules(fd->get()));
    for (const std::int64_t most : {5, 6, 7}) {
        files::OwnerRules rules;
        rules.limits.processes = most;
        REQUIRE(replace_file(fd->get(), files::rules_name, files::pack(rules)));
        for (int i = 0; i < 2; ++i) REQUIRE((*prepared.rules(fd->get()))->limits.processes == most);
    }
    REQUIRE(replace_file(fd->get(), files::rules_name, "nonsense"));
    REQUIRE_FALSE(prepared.rules(fd->get()));
}
