// SPEC B6 over all files: whichever block of whichever file is zeroed, or bit flipped, the scheduler
// starts, what it serves is right, and what it cannot serve is named.
#include <set>

#include "pool.h"
#include "scheduler/record/paths.h"
#include "scheduler/record/read_blob.h"
#include "support/catch.h"

using namespace dcs;
using namespace dcs::test;

namespace {

constexpr std::size_t block = 4096;

using Contents = std::map<std::string, std::string>;  // "ann/1:0 out" -> bytes

// Everything that is served of every grain; `unreadable` gets the grains of which something is not.
Contents contents_of(Pool &pool, std::set<GrainKey> &unreadable) {
    Contents all;
    for (const auto &[key, session] : pool.turn->state().sessions) {
        for (const auto &[number, grain] : session.grains) {
            const GrainKey of{key, number};
            const auto keep = [&](const char *what, Result<std::string> bytes) {
                if (!bytes) {
                    CHECK(bytes.status().code == Code::io_error);
                    unreadable.insert(of);
                } else {
                    all[to_text(of) + " " + what] = *bytes;
                }
            };
            keep("params", record::read_params(*pool.store, of, grain));
            keep("checkpoint", record::read_checkpoint(*pool.store, of, grain));
            keep("message", record::read_message(*pool.store, of, grain));
            keep("out", record::read_piece(*pool.store, of, grain, wire::Stream::out, 0, ~0ull));
            keep("err", record::read_piece(*pool.store, of, grain, wire::Stream::err, 0, ~0ull));
            std::string &status = all[to_text(of) + " status"] = core::name_of(grain.status());
            if (const auto *end = std::get_if<core::Finished>(&grain.phase))
                status += " " + std::to_string(end->result_index) + " " + std::to_string(end->exit_code);
        }
    }
    return all;
}

// Sessions with small and big grains in all states, some turns of it not synced yet.
struct Populated {
    Pool pool{{host("h1", 3), host("h2", 3)}};
    ModelServer server{pool, "h1"};

    Populated() {
        server.connect();
        for (const char *user : {"ann", "bob"}) work(user, 1);
        REQUIRE(pool.store->flush().answer == store::Answer::done);
        work("ann", 2);
        const ConnId control = pool.control("cid", "prog");
        pool.ask<wire::OpenReply>(control, wire::OpenSession{1, wire::OpenMode::open, false});
        pool.ask<wire::Done>(control, wire::Gexec{1, 0, copying_grain("never started")});
    }
    void work(const std::string &user, std::int32_t number) {
        const ConnId control = pool.control(user, "prog");
        pool.ask<wire::OpenReply>(control, wire::OpenSession{number, wire::OpenMode::resume, false});
        const SessionKey session{user, number};
        for (int g = 0; g < 6; ++g) {
            const std::size_t length = g == 3 ? 40'000 : g * 900;
            pool.ask<wire::Done>(control, wire::Gexec{number, g, copying_grain(std::string(length, 'a' + g) + "end")});
            server.read();
            const GrainKey key{session, g};
            if (server.held.count(key) == 0) continue;
            if (g % 3 == 1) server.checkpoint(key, 4);
            server.read();
            if (g < 4) server.finish(key);
            server.read();
        }
        pool.ask<wire::Done>(control, wire::Gkill{"", number, 5});
        server.read();
        for (const auto &[key, held] : std::map(server.held))
            if (key.session == session) server.finish(key, 0, true);
        server.read();
    }
};

// What `dcs doctor` and the log would tell, as one text.
std::string told_by(Pool &pool) {
    std::string told;
    for (const std::string &report : pool.reports) told += report + "\n";
    for (int i = 0; i < 40; ++i) {
        pool.outside->clock = pool.outside->clock + milliseconds(30);
        pool.turn->tidy();
        pool.pump();
    }
    for (const std::string &line : pool.outside->lines) told += line + "\n";
    return told;
}

struct Trial {
    const SimDisk &disk;
    const std::vector<core::HostConfig> &hosts;
    const Contents &right;
    int repaired = 0, named = 0;

    void run(const std::string &file, std::size_t at, bool zero) {
        INFO(file << " block " << at / block << (zero ? " zeroed" : " flipped"));
        SimDisk damaged = disk.killed();
        const std::string before = damaged.files().at(file);
        const std::size_t end = zero ? std::min(before.size(), at + block) : at + 1;
        bool changed = false;
        for (std::size_t i = at; i < end; ++i) {
            const auto mask = static_cast<char>(zero ? before[i] : 0x04);
            if (mask != 0) damaged.flip(file, i, mask);
            changed = changed || mask != 0;
        }
        if (!changed) return;
        Pool pool(hosts, std::move(damaged));
        const std::string told = told_by(pool);
        std::set<GrainKey> unreadable;
        const Contents served = contents_of(pool, unreadable);
        std::size_t missing = 0;
        for (const auto &[what, bytes] : served) {
            INFO(what);
            CHECK(right.at(what) == bytes);  // nothing wrong is served
        }
        for (const auto &[what, bytes] : right) {
            if (served.count(what) != 0) continue;
            ++missing;
            const std::string grain = what.substr(0, what.find(' '));
            const std::string session = grain.substr(0, grain.find(':'));
            INFO(what << " is missing, told was: " << told);
            const bool said = told.find("grain " + grain + " ") != std::string::npos ||
                              told.find("session " + session + " ") != std::string::npos;
            CHECK(said);
        }
        // The rest is served: damage costs no more than the session that it is in.
        CHECK(served.size() + 2 * right.size() / 5 >= right.size());
        (missing > 0 ? named : repaired) += 1;
    }
};

}  // namespace

TEST_CASE("a damaged block or bit in any file costs what it hits, by name, and nothing else") {
    Populated p;
    std::set<GrainKey> unreadable;
    const Contents right = contents_of(p.pool, unreadable);
    REQUIRE(unreadable.empty());
    REQUIRE(right.size() > 80);
    Trial trial{p.pool.disk, p.pool.hosts, right};
    std::set<std::string> kinds;
    int blocks = 0;
    for (const auto &[file, bytes] : p.pool.disk.files()) {
        if (file.back() == '/' || file == "reserve" || file == "lock") continue;
        kinds.insert(file.substr(file.rfind('/') + 1, 4));
        for (std::size_t at = 0; at < bytes.size(); at += block, ++blocks) {
            trial.run(file, at, true);
            trial.run(file, at + (bytes.size() - at) / 2 % block, false);
        }
    }
    std::printf("damage everywhere: %d blocks of files of %zu kinds; %d damages did no harm, %d named\n", blocks,
                kinds.size(), trial.repaired, trial.named);
    CHECK(kinds.size() >= 10);
    CHECK(blocks > 80);
    CHECK(trial.named > 60);
    CHECK(trial.repaired > 10);
}
