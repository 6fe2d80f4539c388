// What the commands about grains say when the scheduler refuses them something, or shows what cannot be; and `dcs top`.
#include <atomic>

#include "command_bench.h"
#include "support/catch.h"

using namespace dcs;
using namespace dcs::test;
using Reply = CommandBench::Reply;

namespace {

const wire::Query *query_of(const wire::AnyMessage &m, wire::QueryType type) {
    const auto *query = std::get_if<wire::Query>(&m);
    return query != nullptr && query->type == type ? query : nullptr;
}

}  // namespace

TEST_CASE("grains that cannot be shown") {
    CommandBench bench;
    bench.answer([](const wire::AnyMessage &m) {
        return query_of(m, wire::QueryType::grain) != nullptr ? Reply(disk_full) : Reply();
    });
    check(bench.dcs({"grain", "show", "2:1"}), 1, "dcs: grain 2:1: " + no_room);
    std::atomic<int> asked{0};
    bench.answer([&](const wire::AnyMessage &m) {
        if (query_of(m, wire::QueryType::grain) == nullptr || asked++ == 0) return Reply();
        return Reply(wire::QueryReply{});
    });
    check(bench.dcs({"grain", "show", "2:1"}), 3, "dcs: there is no grain 2:1\n");
}

TEST_CASE("outputs of grains that cannot be fetched") {
    CommandBench bench;
    bench.refuse<wire::Fetch>(disk_full);
    check(bench.dcs({"grain", "cat", "2:1"}), 1, "dcs: the stream out of grain 2:1: " + no_room);
    check(bench.dcs({"grain", "cat", "--file", "made", "2:1"}), 1, "dcs: the file made of grain 2:1: " + no_room);
}

TEST_CASE("the pool's hosts that cannot be shown") {
    CommandBench bench;
    bench.answer([](const wire::AnyMessage &m) {
        return query_of(m, wire::QueryType::hosts) != nullptr ? Reply(disk_full) : Reply();
    });
    check(bench.dcs({"top", "--once"}), 1, "dcs: the pool's hosts: " + no_room);
}
