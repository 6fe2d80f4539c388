#pragma once
// The scheduler without sockets on a real disk, for benchmarks: whole frames go into a real Turn, its
// commits are made at once by the real store. Replies are counted, not kept.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "pki/digest.h"
#include "scheduler/record/rebuild.h"
#include "scheduler/record/paths.h"
#include "scheduler/turn/turn.h"
#include "store/disk_posix.h"

namespace dcs::perf {

inline void must(const Status &status, const char *what) {
    if (status) return;
    std::fprintf(stderr, "%s: %s\n", what, status.text.c_str());
    std::exit(1);
}

class CountingOutside final : public turn::Outside {
public:
    explicit CountingOutside(store::Store &store) : store_(store) {}
    Instant now() override { return clock; }
    std::int64_t wall_s() override { return 1'000'000'000; }
    Token fresh_token() override { return Token{}; }
    void send(ConnId, const wire::AnyMessage &message, core::RequestId) override {
        ++sent;
        if (const auto *error = std::get_if<wire::ErrorReply>(&message)) {
            std::fprintf(stderr, "the scheduler refused: %s\n", error->text.c_str());
            std::exit(1);
        }
        if (const auto *launch = std::get_if<wire::Launch>(&message)) launched.push_back(launch->key);
        if (const auto *reply = std::get_if<wire::QueryReply>(&message)) last_query = *reply;
    }
    void close(ConnId) override {}
    void log(turn::Level, const std::string &) override {}
    void start_commit(std::vector<store::TreeUpdate> updates, store::Room) override { job = std::move(updates); }
    void start_library_job(library::Job order) override { fatal("nothing here has contents: " + order.temporary); }
    void fatal(const std::string &why) override {
        std::fprintf(stderr, "fatal: %s\n", why.c_str());
        std::exit(1);
    }

    Instant clock = Instant{} + seconds(1000);
    std::uint64_t sent = 0;
    std::vector<wire::WireGrain> launched;
    wire::QueryReply last_query;
    std::optional<std::vector<store::TreeUpdate>> job;

private:
    store::Store &store_;
};

class Pool {
public:
    explicit Pool(const std::string &directory) {
        auto opened = store::open_posix_disk(directory);
        must(opened.status(), "opening the disk");
        disk = std::move(*opened);
        auto made = store::Store::open(*disk, record::forest(), store::StoreOptions(), nullptr);
        must(made.status(), "opening the store");
        store = std::move(*made);
        outside = std::make_unique<CountingOutside>(*store);
        auto rebuilt = record::rebuild(*store, outside->clock);
        must(rebuilt.status(), "rebuilding");
        turn::Turn::Setup setup;
        setup.state = std::move(rebuilt->state);
        setup.set_aside = std::move(rebuilt->set_aside);
        auto library = library::Library::open(*disk, outside->clock);
        must(library.status(), "opening the library");
        setup.library = std::move(*library);
        turn = std::make_unique<turn::Turn>(std::move(setup), *store, *outside);
    }

    ConnId open(turn::Door door, const std::string &user) {
        turn::Arrival a;
        a.kind = turn::Arrival::Kind::opened;
        a.conn = ConnId{next_conn_++};
        a.door = door;
        a.user = user;
        a.privileged = true;
        const ConnId conn = a.conn;
        turn->take(std::move(a));
        return conn;
    }
    void post(ConnId conn, const wire::AnyMessage &message) { turn->take(frame(conn, message)); }
    // As it arrives.
    turn::Arrival frame(ConnId conn, const wire::AnyMessage &message) {
        const std::string frame = wire::encode(message, next_request_++);
        auto header =
            wire::decode_header(std::string_view(frame).substr(0, wire::header_bytes), limits::server_frame_bytes);
        must(header.status(), "a frame of ours");
        turn::Arrival a;
        a.conn = conn;
        a.header = *header;
        a.payload = frame.substr(wire::header_bytes);
        return a;
    }
    // Turns until nothing is left to do.
    void pump() {
        turn->run();
        while (outside->job) {
            const auto updates = std::move(*outside->job);
            outside->job.reset();
            turn->committed(store->commit(updates));
            turn->run();
        }
    }
    // A control program with a session.
    ConnId control(const std::string &user, std::int32_t session) {
        const ConnId first = open(turn::Door::user, user);
        post(first, wire::Hello{});
        post(first, wire::GetAuth{"perf"});
        pump();
        const ConnId conn = open(turn::Door::user, user);
        wire::Hello hello;
        hello.token = std::string(std::tuple_size<Token>::value, '\0');
        post(conn, hello);
        post(conn, wire::OpenSession{session, wire::OpenMode::resume, false});
        pump();
        return conn;
    }

    std::unique_ptr<store::Disk> disk;
    std::unique_ptr<store::Store> store;
    std::unique_ptr<CountingOutside> outside;
    std::unique_ptr<turn::Turn> turn;

private:
    std::uint64_t next_conn_ = 1;
    std::uint64_t next_request_ = std::uint64_t{1} << 62;  // as long as the random ones of clients
};

// What the benchmarks submit: a small grain, as a parameter sweep has millions of them.
inline wire::GrainSpec small_grain(std::int32_t number) {
    wire::GrainSpec spec;
    spec.argv = {"bin/step", "--from", std::to_string(number)};
    return spec;
}

}  // namespace dcs::perf
