// The stream of an import, as any user may send it: what the scheduler takes makes a state whose cross references
// hold, and is durable as any other.
#include "unit/scheduler_turn/import_stream.h"

#include "fuzz.h"
#include "unit/wire/samples.h"

namespace dcs::fuzz {
namespace {

test::SimDisk with_control() {
    test::Pool pool({test::host("h1", 2)});
    pool.control("ann", "prog");
    return pool.disk.killed();
}

}  // namespace

void run(std::string_view bytes) {
    static const test::SimDisk disk = with_control();
    test::Pool pool({test::host("h1", 2)}, disk.killed());
    const ConnId conn = pool.open(turn::Door::user, "ann");
    pool.outside->tokens = 1;
    pool.ask<wire::Welcome>(conn, wire::Hello{wire::opening_form, std::string(32, '\1')});
    const Code code = test::import_session(pool, conn, std::string(bytes), 1);
    expect(core::check(pool.turn->state()).empty(), core::check(pool.turn->state()));
    if (code != Code::ok) return;
    pool.verify();
    pool.ask<wire::OpenReply>(conn, wire::OpenSession{1, wire::OpenMode::reopen, false});
    test::ModelServer server(pool, "h1");
    server.strangers = true;
    server.connect();
    server.read();
    expect(core::check(pool.turn->state()).empty(), core::check(pool.turn->state()));
    pool.verify();
}

std::vector<Seed> seeds() {
    test::Worked worked;
    test::Exported session = test::export_session(worked.pool, worked.control, 1);
    for (wire::ExportedGrain &g : session.grains) {  // short, so that the fuzzer gets to the fields
        for (wire::ExportedStream *s : {&g.input, &g.out, &g.err, &g.checkpoint, &g.message}) {
            s->content.resize(std::min<std::size_t>(s->content.size(), 40));
            s->length = s->content.size(), s->whole = true;
        }
    }
    std::vector<Seed> list{{"all", test::stream_of(session)}};
    for (const wire::ExportedGrain &g : session.grains) {
        test::Exported one{session.head, {g}};
        one.head.grains = 1;
        list.push_back({"grain-" + std::to_string(g.grain), test::stream_of(one)});
    }
    return list;
}

}  // namespace dcs::fuzz
