// What is said of records on disk that are damaged in ways that checksums do not show, word for word.
#include <functional>

#include "base/bytes.h"
#include "pool.h"
#include "scheduler/record/codec.h"
#include "scheduler/record/paths.h"
#include "support/about.h"
#include "support/catch.h"

using namespace dcs;
using namespace dcs::test;

namespace {

template <class T> std::string wrong(const Result<T> &result) { return result ? "" : result.status().text; }

// The body of a file that is one record, with something done to it, and its checksum made right again.
std::string with_body(const std::string &file, const std::function<void(std::string &)> &change) {
    std::string_view rest = file;
    std::string body(*record::next_body(rest));
    change(body);
    return record::framed(body);
}
const record::HostIds by_order = [](const std::string &) { return core::HostId{0}; };
void longer(std::string &body) { body += 'x'; }
void shorter(std::string &body) { body.pop_back(); }

// Session ann/1 of three grains, all of it on the disk, whose files are then written by hand.
struct OnDisk {
    Pool pool{{host("h1", 2)}};
    ModelServer server{pool, "h1"};
    core::SessionInfo info;

    OnDisk() {
        three_grains(pool, server, 1);
        REQUIRE(pool.store->flush().answer == store::Answer::done);
        info = pool.turn->state().session({"ann", 1})->info;
    }
    void replace(const std::string &path, const std::string &bytes, std::uint64_t from = 0) {
        REQUIRE(pool.disk.truncate_append(path, from, bytes));
        REQUIRE(pool.disk.sync_file(path));
    }
    void session(const std::function<void(core::SessionInfo &)> &change) {
        change(info);
        replace("sessions/ann/1/status", record::encode_session(info));
    }
    // One more record at the end of the log of grains.
    void grain(GrainNumber number, const std::function<void(core::Grain &)> &change) {
        core::Grain grain = *pool.turn->state().grain({{"ann", 1}, number});
        change(grain);
        const std::string bytes = record::encode_grain(pool.turn->state(), number, grain);
        replace("sessions/ann/1/grains", bytes, info.grains_length);
        session([&](core::SessionInfo &i) { i.grains_length += bytes.size(); });
    }
    // What a scheduler says that starts with it.
    std::string told() {
        pool.restart();
        std::string all;
        for (const std::string &line : pool.reports) all += line + "\n";
        INFO(all);
        CHECK(pool.turn->state().session({"ann", 1}) == nullptr);
        return all;
    }
};

bool has(const std::string &text, const std::string &words) { return text == about(words); }

}  // namespace

TEST_CASE("a record whose checksum is right and whose fields are not does not decode") {
    OnDisk d;
    const core::State &state = d.pool.turn->state();
    const std::string does_not = "the record cannot be decoded";
    const std::string grain = record::encode_grain(state, 0, *state.grain({{"ann", 1}, 0}));
    CHECK(wrong(record::decode_grain(with_body(grain, longer), by_order)) == does_not);
    const std::string version_only = with_body(grain, [](std::string &body) { body.resize(1); });
    CHECK(wrong(record::decode_grain(version_only, by_order)) == does_not);
    const std::string session = record::encode_session(d.info);
    CHECK(wrong(record::decode_session(with_body(session, longer))) == does_not);
    CHECK(wrong(record::decode_session(with_body(session, shorter))) == does_not);
    CHECK(wrong(record::decode_auth(with_body(record::encode_auth({state.auth, {}}), longer))) == does_not);
    CHECK(wrong(record::decode_hosts(with_body(record::encode_hosts(state), shorter))) == does_not);
    const std::string follow = "it continues after its record";
    CHECK(wrong(record::decode_session(session + "x")) == follow);
    CHECK(wrong(record::decode_auth(record::encode_auth({state.auth, {}}) + "x")) == follow);
    CHECK(wrong(record::decode_hosts(record::encode_hosts(state) + "x")) == follow);
    const std::string handed = record::encode_handed_over({{"h1", {7, 3}}});
    CHECK(wrong(record::decode_handed_over(handed)).empty());
    CHECK(wrong(record::decode_handed_over(handed + "x")) == follow);
    CHECK(wrong(record::decode_handed_over(with_body(handed, shorter))) == does_not);
    core::Trust trust;
    trust.keys["h1"] = TokenHash{1};
    CHECK(wrong(record::decode_trust(with_body(record::encode_trust(trust), shorter))) == does_not);
    trust = {};
    trust.codes[TokenHash{1}].role = static_cast<core::HostRole>(9);
    CHECK(wrong(record::decode_trust(record::encode_trust(trust))) == does_not);
}

TEST_CASE("a session that contradicts itself is set aside with the contradiction") {
    OnDisk d;
    SECTION("a log without end") {
        d.session([](core::SessionInfo &i) { i.grains_length = std::uint64_t{1} << 60; });
        CHECK(has(d.told(), "sessions/ann/1/grains recorded impossible"));
    }
    SECTION("a log that is longer than it is") {
        d.session([](core::SessionInfo &i) { i.grains_length += 1; });
        CHECK(has(d.told(), "sessions/ann/1/grains shorter recorded"));
    }
    SECTION("a result without a place") {
        d.grain(0, [](core::Grain &g) { g.as<core::Finished>().result_index = 99; });
        CHECK(has(d.told(), "grain ann/1:0 no place"));
    }
    SECTION("parameters that its session does not have") {
        d.grain(0, [](core::Grain &g) { g.params_length = 1u << 30; });
        CHECK(has(d.told(), "grain ann/1:0 parameters beyond inputs"));
    }
    SECTION("a grain that runs nowhere") {
        d.grain(2, [](core::Grain &g) { g.lessee = core::no_host; });
        CHECK(has(d.told(), "grain ann/1:2 no host"));
    }
    SECTION("two grains at one place of the queue") {
        for (const GrainNumber number : {0, 2})
            d.grain(number, [](core::Grain &g) {
                g.phase = core::Ready{5};
                g.lessee = core::no_host;
            });
        CHECK(has(d.told(), "same place queue"));
    }
}

TEST_CASE("the status of another grain is not taken for a grain's own") {
    OnDisk d;
    const core::State &state = d.pool.turn->state();
    d.replace("sessions/ann/1/g/1/status", record::encode_grain(state, 7, *state.grain({{"ann", 1}, 1})));
    d.pool.restart();
    REQUIRE(d.pool.reports.size() == 1);
    CHECK(has(d.pool.reports[0], "sessions/ann/1/g/1/status status grain"));
}

TEST_CASE("two sessions of one seniority cannot both be right") {
    OnDisk d;
    const ConnId other = d.pool.control("ann", "prog");
    d.pool.ask<wire::OpenReply>(other, wire::OpenSession{2, wire::OpenMode::open, false});
    REQUIRE(d.pool.store->flush().answer == store::Answer::done);
    core::SessionInfo second = d.pool.turn->state().session({"ann", 2})->info;
    second.seniority = d.info.seniority;
    d.replace("sessions/ann/2/status", record::encode_session(second));
    d.pool.restart();
    REQUIRE(d.pool.reports.size() == 1);
    CHECK(has(d.pool.reports[0], "sessions/ann/2 session seniority"));
}

TEST_CASE("the record of which of the backup's reports are recorded is lost: it is said, and nothing else happens") {
    OnDisk d;
    const std::string directory = record::handed_over_directory;
    REQUIRE(d.pool.disk.make_dir(directory));
    REQUIRE(d.pool.disk.sync_dir(""));
    d.replace(directory + "/" + record::handed_over_file, "nonsense");
    REQUIRE(d.pool.disk.sync_dir(directory));
    d.pool.restart();
    REQUIRE(d.pool.reports.size() == 1);
    CHECK(has(d.pool.reports[0], directory + "/" + record::handed_over_file + ": "));
    CHECK(d.pool.turn->state().session({"ann", 1}) != nullptr);
}

TEST_CASE("what a grain was given is damaged: a party that wants to see it is told what") {
    OnDisk d;
    const GrainKey key{{"ann", 1}, 2};
    const std::string inputs = "sessions/ann/1/inputs";
    std::string why, place;
    SECTION("cut") {
        d.pool.disk.cut(inputs, 3);
        why = inputs + ": it is shorter than recorded";
    }
    SECTION("changed") {
        d.pool.disk.flip(inputs, d.pool.turn->state().grain(key)->params_offset + 3, 1);
        why = inputs + ": its checksum is wrong";
    }
    SECTION("of no form") {
        const core::Grain &g = *d.pool.turn->state().grain(key);
        const std::string bytes(g.params_length, 'x');
        std::string all = *d.pool.disk.read(inputs, 0, 1u << 20);
        all.replace(g.params_offset, bytes.size(), bytes);
        d.replace(inputs, all);
        d.grain(2, [&](core::Grain &grain) { grain.params_sum = crc32c(bytes); });
        d.pool.restart();
        why = "its recorded parameters cannot be decoded";
    }
    const ConnId reader = d.pool.control("ann", "prog");
    const auto page = d.pool.call(reader, wire::ExportPage{"", 1, 1, 3});
    REQUIRE(std::holds_alternative<wire::ErrorReply>(page));
    CHECK(std::get<wire::ErrorReply>(page).text == "grain ann/1:2: " + why);
    wire::Query query;
    query.type = wire::QueryType::grain;
    query.session = 1;
    query.grain = 2;
    const auto detail = d.pool.call(reader, query);
    if (!why.starts_with("its")) return;
    REQUIRE(std::holds_alternative<wire::ErrorReply>(detail));
    CHECK(std::get<wire::ErrorReply>(detail).text == "grain ann/1:2: " + why);
}

TEST_CASE("a grain that has read more than it was given is not started") {
    OnDisk d;
    d.grain(2, [](core::Grain &g) {
        g.phase = core::Ready{5};
        g.lessee = core::no_host;
        g.input_length = 1000;
        g.course.edit().input_position = 900;
    });
    d.session([](core::SessionInfo &i) { i.queue_back = 10; });
    d.pool.restart();
    d.pool.outside->lines.clear();
    ModelServer next(d.pool, "h1");
    next.connect();
    next.read();
    CHECK(next.held.count({{"ann", 1}, 2}) == 0);
    bool told = false;
    for (const std::string &line : d.pool.outside->lines) told = told || has(line, "recorded input shorter");
    CHECK(told);
}
