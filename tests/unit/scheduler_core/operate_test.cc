// Orders of operators.
#include "pool.h"
#include "support/about.h"

using namespace dcs;
using namespace dcs::core;

namespace {
struct Operated {
    Pool pool{1};
    Program ann = pool.begin("ann", "find"), root = pool.stranger("root", true);
    Operated() {
        pool.add_host("h2");  // and no party calls
        pool.table();
        pool.changes.clear();
    }
};
}  // namespace

TEST_CASE("log levels are set by the operator, of the scheduler and of a connected server") {
    Operated o;
    CHECK(o.pool.call(o.ann, wire::SetLogLevel{"", "debug"}).at(0).find("error REFUSED: ann may not") !=
          std::string::npos);
    CHECK(o.pool.call(o.root, wire::SetLogLevel{"", "loud"}).at(0).find("error INVALID") != std::string::npos);
    CHECK(o.pool.call(o.root, wire::SetLogLevel{"h7", "info"}).at(0) == about("error NOT_FOUND no host h7"));
    CHECK(o.pool.call(o.root, wire::SetLogLevel{"h2", "info"}).at(0) == about("error REFUSED grain server h2"));
    CHECK(o.pool.call(o.root, wire::SetLogLevel{"h1", "info"}) == Lines{"h1: LogLevel", "root: done"});
    CHECK(o.pool.call(o.root, wire::SetLogLevel{"", "off"}) == Lines{"log level off", "root: done"});
    CHECK_FALSE(o.pool.touched_disk());
}

TEST_CASE("rereading settings for the operator only, the shell says whether they were good") {
    Operated o;
    CHECK(o.pool.call(o.ann, wire::Reload{}).at(0).find("error REFUSED") != std::string::npos);
    const Lines asked = o.pool.call(o.root, wire::Reload{});
    REQUIRE(asked.size() == 1);  // the reply is the turn's
    CHECK(asked[0].find("settings read again") != std::string::npos);
}
