// The grain server's core, told anything by its scheduler, while its files and its launcher do what it asks, or fail:
// it does not abort, its cross references hold, and its next deadline moves on.
#include "grainserver/core/step.h"

#include <algorithm>
#include <deque>

#include "script.h"
#include "support/server_check.h"

namespace dcs::fuzz {
namespace {

using namespace server;

struct Play {
    State state;
    Instant now{seconds(1000).ns};
    std::deque<Input> due;  // answers of files and launcher
    std::set<GrainId> running;
    bool troubled = false;  // they fail

    Play() {
        state.host = "h1", state.boot_id = "boot", state.instance = 7, state.courtesy.on = true;
        in(Began{});
        in(LauncherUp{});
        in(LinkOpened{});
    }
    void in(Input input) {
        for (Effect &effect : step(state, now, 0.5, std::move(input))) std::visit([&](auto &e) { answer(e); }, effect);
        expect(check(state).empty(), check(state));
    }
    void settle() {
        for (int n = 0; !due.empty(); ++n) {
            expect(n < 10'000, "its questions come to an end");
            Input next = std::move(due.front());
            due.pop_front();
            in(std::move(next));
        }
    }
    template <class E> void answer(E &) {}
    void answer(Connect &) { due.push_back(LinkOpened{}); }
    void answer(Send &e) { expect(!wire::encode(e.message, 0).empty(), "what it says can be said"); }
    void answer(WriteLaunch &e) {
        if (troubled) due.push_back(LaunchUnwritten{e.id, Code::no_space, "full"});
        else due.push_back(LaunchWritten{e.id});
    }
    void answer(ProveGrain &e) { due.push_back(GrainProved{e.id}); }
    void answer(StartGrain &e) {
        if (troubled) return due.push_back(StartFailed{e.id, Code::not_found, false, "no program"});
        running.insert(e.id);
        due.push_back(GrainStarted{e.id});
    }
    void answer(RecallGrain &e) {
        if (running.count(e.id) == 0) due.push_back(GrainRecalled{e.id});
    }
    void answer(TerminateGrain &e) { end(e.id); }
    void answer(KillGrain &e) { end(e.id); }
    void end(GrainId id) {
        running.erase(id);
        due.push_back(GrainExited{id, ExitFacts{true, 0, 9, false, "", {}, 0}});
    }
    void answer(Look &e) {
        DirFacts facts;
        facts.announced = !troubled;
        facts.increments = {{1, 6}, {2, 6}};
        facts.checkpoints = {{1, 60}};
        due.push_back(Looked{e.id, facts});
    }
    void answer(SendReport &e) {
        using Why = ReportUnsendable::Why;
        if (troubled)
            due.push_back(
                ReportUnsendable{e.id, e.checkpoint != 0 ? Why::bad_checkpoint : Why::unreadable, e.checkpoint, "bad"});
    }
    void answer(PlaceFiles &e) {
        if (troubled) due.push_back(FilesMissing{e.id, {{wire::FileRole::data, "f", std::string(32, 'd'), 5, ""}}});
        else due.push_back(FilesPlaced{e.id});
    }
    void answer(KeepPiece &e) { due.push_back(PieceKept{e.digest, e.offset + e.bytes.size()}); }
    void answer(KeepOutputs &e) {
        due.push_back(OutputsKept{e.id, {{wire::FileRole::output, "o", std::string(32, 'o'), 5, ""}}, ""});
    }
    void answer(SendPiece &e) {
        if (troubled) due.push_back(PieceUnreadable{e.digest, "gone"});
    }
    void answer(WatchHost &e) {
        Watched seen;
        seen.host = {2,          1'000'000, 2'000'000, 0, troubled ? 900'000 : 0, 0, 1 << 20, troubled ? 1000 : 1 << 19,
                     "this host"};
        for (const GrainId &id : e.grains) seen.grains[id] = {5, 7, true, 1000};
        due.push_back(std::move(seen));
    }
    void answer(Gauge &e) { due.push_back(Gauged{0.5, 1 << 20, e.boundary}); }

    void happen(std::uint8_t kind) {
        if (kind % 6 == 1) troubled = !troubled;
        if (kind % 6 == 2) in(LinkClosed{"by the test"});
        if (kind % 6 == 3) in(LauncherDown{});
        if (kind % 6 == 4) in(LauncherUp{kind % 12 == 4});
        if (kind % 6 == 5 && !running.empty()) end(*running.begin());
        if (kind % 6 == 0) pass(milliseconds(500 * (kind + 1)));
    }
    void pass(Duration time) {
        const Instant end = now + time;
        for (int n = 0; next_deadline(state) <= end && n < 100; ++n) {
            now = std::max(now, next_deadline(state));
            in(Tick{});
            settle();
        }
        now = end;
    }
};

}  // namespace

void run(std::string_view bytes) {
    Play play;
    play.settle();
    for (Item &item : items_of(bytes)) {
        if (item.who % 4 == 3) play.happen(item.kind);
        else if (auto message = decoded(item)) play.in(FromScheduler{std::move(*message)});
        play.settle();
    }
    play.pass(seconds(12));  // longer than a grain has between TERM and KILL
}

std::vector<Seed> seeds() {
    const wire::WireGrain key{"ann", 3, 17};
    wire::Launch launch;
    launch.key = key, launch.incarnation = 2, launch.argv = {"/bin/x"}, launch.input = "input";
    wire::Launch staged = launch;
    staged.key.grain = 18, staged.tentative = true, staged.demands.wall_s = 5;
    staged.files = {{wire::FileRole::data, "f", std::string(32, 'd'), 5, ""}};
    const std::vector<Item> life = {item(0, wire::Configure{2, 2, 1}),
                                    item(0, launch),
                                    item(0, staged),
                                    action(3, 0),
                                    item(0, wire::ContentPiece{std::string(32, 'd'), 5, 0, "bytes", 0, ""}),
                                    action(3, 6),
                                    item(0, wire::ReportAck{key, 2, 1, false, wire::Verdict::taken}),
                                    item(0, wire::Withdraw{key, 2, false, "usurped"}),
                                    action(3, 5),
                                    action(3, 12),
                                    item(0, wire::ReportAck{key, 2, 2, true, wire::Verdict::later})};
    std::vector<Seed> list{{"life", bytes_of(life)}};
    std::vector<Item> trouble = life;
    trouble.insert(trouble.begin() + 2, {action(3, 1), action(3, 2), action(3, 3), action(3, 0)});
    list.push_back({"trouble", bytes_of(trouble)});
    for (const wire::AnyMessage &message : samples()) {
        std::vector<Item> play = life;
        play.insert(play.begin() + 3, item(0, message));
        list.push_back({wire::kind_name(message), bytes_of(play)});
    }
    return list;
}

}  // namespace dcs::fuzz
