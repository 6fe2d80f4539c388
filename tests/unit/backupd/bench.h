#pragma once
// A backup on a simulated disk, with servers and a scheduler of a few lines.
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "backupd/turn/turn.h"
#include "support/sim_disk.h"

namespace dcs::backup {

class Bench final : public Outside {
public:
    struct Sent {
        ConnId conn{};
        std::uint64_t request = 0;
        wire::AnyMessage message;
    };
    static constexpr ConnId scheduler_conn{1000};

    explicit Bench(std::uint64_t most_bytes = 1u << 20, std::size_t reserve = 1u << 20)
        : most_bytes_(most_bytes), reserve_(reserve) {
        start();
    }

    // Recovers from what lies on the disk. Empty: all went well.
    std::string start() {
        turn_.reset();
        store_.reset();
        job_.reset();
        sent.clear();
        store::StoreOptions options;
        options.behind_turns = 0;        // tests look at the files
        options.journal_bytes = 65'536;  // every crash state copies it
        options.reserve_bytes = reserve_;
        auto opened = store::Store::open(disk, record::forest(), options, nullptr);
        if (!opened) return opened.status().text;
        store_ = std::move(*opened);
        auto rebuilt = record::rebuild(*store_);
        if (!rebuilt) return rebuilt.status().text;
        reports = rebuilt->reports;
        State state = std::move(rebuilt->state);
        state.most_bytes = most_bytes_;
        if (state.store == 0) {
            state.store = ++names_;
            rebuilt->first.push_back(record::name_store(state.store));
            const auto named = store_->commit(rebuilt->first);
            if (named.answer != store::Answer::done) return named.status.text;
        }
        turn_ = std::make_unique<Turn>(std::move(state), *store_, *this);
        return {};
    }

    void post(ConnId conn, const wire::AnyMessage &message, std::uint64_t request = 0, Guest guest = {}) {
        const std::string frame = wire::encode(message, request);
        const std::string_view all = frame;
        Arrival a;
        a.conn = conn;
        a.header = *wire::decode_header(all.substr(0, wire::header_bytes), limits::server_frame_bytes);
        a.payload = frame.substr(wire::header_bytes);
        a.guest = std::move(guest);
        arrive(std::move(a));
    }
    void arrive(Arrival arrival) { turn_->take(std::move(arrival)); }
    void server(ConnId conn, const std::string &host) {
        wire::FirstCall call;
        call.host = host;
        post(conn, call);
    }
    // Until nothing is left to do; every commit is done on the spot.
    void run() {
        turn_->run();
        while (job_) {
            const std::vector<store::TreeUpdate> updates = std::move(*job_);
            job_.reset();
            turn_->committed(store_->commit(updates, room_));
            turn_->run();
        }
    }
    // What lies in the trees is all there is: nothing is done again at the next start.
    void flush() { (void)store_->flush(); }
    // The backup decides, and its commit is under way.
    void begin() { turn_->run(); }
    bool committing() const { return job_.has_value(); }
    // The scheduler is there and takes what comes, or is not.
    void scheduler_comes() {
        scheduler_there = true;
        clock = std::max(clock, turn_->next_wakeup());
        run();
        turn_->take({Arrival::Kind::opened, scheduler_conn, {}, {}, {}, {}});
        run();
        post(scheduler_conn, wire::BackupKnown{1});
        run();
    }
    void scheduler_goes() {
        scheduler_there = false;
        turn_->take({Arrival::Kind::closed, scheduler_conn, {}, {}, "it died", {}});
        run();
    }
    template <class M> std::vector<M> all(ConnId conn) const {
        std::vector<M> found;
        for (const Sent &s : sent)
            if (const M *m = s.conn == conn ? std::get_if<M>(&s.message) : nullptr) found.push_back(*m);
        return found;
    }
    const State &state() const { return turn_->state(); }

    test::SimDisk disk;
    std::vector<Sent> sent;
    std::vector<ConnId> closed;
    std::vector<std::string> reports;  // of the last start
    std::vector<Members> saved;
    std::vector<std::string> certificates;
    std::vector<std::string> lines;  // of the log
    Instant clock{seconds(1000).ns};
    bool scheduler_there = false;
    std::string fatal_words;

private:
    Instant now() override { return clock; }
    double jitter() override { return 0.5; }
    void send(ConnId conn, const wire::AnyMessage &message, std::uint64_t request) override {
        sent.push_back({conn, request, message});
    }
    void close(ConnId conn) override { closed.push_back(conn); }
    Result<ConnId> connect() override {
        if (!scheduler_there) return fail(Code::unreachable, "no scheduler is there");
        return ConnId{scheduler_conn};
    }
    void save(const Members &members) override { saved.push_back(members); }
    void renewed(const wire::Renewed &answer) override { certificates.push_back(answer.certificate); }
    void log(Level, const std::string &line) override { lines.push_back(line); }
    void start_commit(std::vector<store::TreeUpdate> updates, store::Room room) override {
        job_ = std::move(updates);
        room_ = room;
    }
    void fatal(const std::string &why) override { fatal_words = why; }

    std::uint64_t most_bytes_, names_ = 70;
    std::size_t reserve_;
    std::unique_ptr<store::Store> store_;
    std::unique_ptr<Turn> turn_;
    std::optional<std::vector<store::TreeUpdate>> job_;
    store::Room room_ = store::Room::ordinary;
};

// Increment `seq` of grain ann/1:`grain`, with as many bytes.
inline wire::GrainReport report_of(int grain, std::uint32_t seq, bool ended = false, std::size_t bytes = 10) {
    wire::GrainReport r;
    r.key = {"ann", 1, grain};
    r.incarnation = 1;
    r.first_seq = r.last_seq = seq;
    r.has_checkpoint = !ended;
    r.checkpoint = "at " + std::to_string(seq);
    r.out = std::string(bytes, static_cast<char>('a' + seq % 26));
    r.ended = ended;
    return r;
}

}  // namespace dcs::backup
