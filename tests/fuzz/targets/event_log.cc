// An event log, as any import may bring one: reading it costs by its bytes, whatever it says; and the import knows of
// its grains what the whole history would have told.
#include "wire/event_log.h"

#include "base/bytes.h"
#include "meter.h"
#include "wire/history.h"
#include "wire/import_rows.h"

namespace dcs::fuzz {
namespace {

constexpr Cost as_read{.memory = 48, .memory_beside = 64 * 1024, .steps = 1000, .ns = 5'000};
constexpr Cost as_history{.memory = 1024, .memory_beside = 64 * 1024, .steps = 1000, .ns = 50'000};

std::string framed(std::string_view events) {
    ByteWriter body;
    body.u8(1);
    body.var(1'700'000'000'000);
    body.raw(events);
    ByteWriter log;
    log.var(body.size());
    log.u32(crc32c(body.bytes()));
    log.raw(body.bytes());
    return log.bytes();
}

// The same events repeatedly: what costs more the more stands before it shows at once.
std::string many_times(std::string_view events) {
    std::string all;
    while (!events.empty() && all.size() < 64 * 1024) all += events;
    return all;
}

void read(std::string_view log) {
    const std::vector<std::int32_t> grains = {0, 1, 2, 3, 7, 100};
    {
        const Meter meter;
        wire::EventCursor cursor(log);
        wire::ResultsKnown known(grains);
        wire::Event event;
        std::size_t events = 0;
        for (; cursor.next(event); ++events) known.take(event);
        expect(events <= log.size(), "an event has a byte");
        // Of its own it holds the names of hosts; texts are copied out of the log.
        meter.expect(log.size(), as_read, "an event log as an import reads it");
    }
    const Meter meter;
    wire::History history;
    wire::ResultsKnown known(grains);
    std::string_view left = log;
    const Status s = wire::take_events(left, [&](const wire::Event &event) {
        known.take(event);
        (void)history.take(event);
    });
    expect(s || s.text.starts_with("the event log: "), "a refusal says why");
    meter.expect(log.size(), as_history, "an event log as a history");
    for (std::size_t i = 0; i < grains.size(); ++i) {
        const auto found = history.grains.find(grains[i]);
        expect(known.at(i).told == (found != history.grains.end()), "an import knows which grains the log tells of");
        if (found == history.grains.end()) continue;
        expect(known.at(i).known == found->second.known, "an import knows what a grain knew");
        expect(known.at(i).killed_after == found->second.killed_after, "an import knows after what a grain was killed");
    }
}

}  // namespace

void run(std::string_view bytes) {
    Choices input(bytes);
    const std::uint8_t how = input.byte();
    if (how % 4 == 0) return read(input.rest());
    read(framed(how % 4 == 1 ? std::string(input.rest()) : many_times(input.rest())));
}

std::vector<Seed> seeds() {
    std::vector<Seed> list;
    std::string all;
    for (int k = 1; k <= static_cast<int>(wire::last_event_kind); ++k) {
        wire::EventFrame frame;
        wire::Event event;
        event.kind = static_cast<wire::EventKind>(k);
        event.grain = k;
        event.number = 100'000'000;
        event.host = "h1";
        event.text = "usurped";
        frame.add(event);
        const std::string one = frame.framed(1'700'000'000'000);
        ByteReader body(one);
        (void)body.var(), (void)body.u32(), (void)body.u8(), (void)body.var();
        const std::string events(body.raw(body.left()));
        all += events;
        for (const char how : {'\1', '\2'})
            list.push_back({wire::name_of(event.kind) + std::to_string(how), how + events});
        list.push_back({std::string(wire::name_of(event.kind)) + "-framed", '\0' + one});
    }
    list.push_back({"all", "\1" + all});
    list.push_back({"all-many-times", "\2" + all});
    return list;
}

}  // namespace dcs::fuzz
