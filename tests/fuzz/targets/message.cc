// Every message: what is decoded has one encoding, the bytes that it came from; and what is made of messages for
// people and programs holds for it too.
#include "base/bytes.h"
#include "base/limits.h"
#include "crowd.h"
#include "meter.h"
#include "script.h"
#include "wire/checks.h"
#include "wire/json.h"

namespace dcs::fuzz {
namespace {

void read_rows(const wire::AnyMessage &message) {
    const auto json = [](const auto &rows) {
        for (const auto &row : rows) expect(valid_utf8(wire::to_json(row)), "JSON is valid UTF-8");
    };
    if (const auto *m = std::get_if<wire::QueryReply>(&message)) {
        json(m->hosts), json(m->sessions), json(m->grains);
    } else if (const auto *e = std::get_if<wire::Explanation>(&message)) {
        json(std::vector{*e});
    } else if (const auto *d = std::get_if<wire::DoctorReply>(&message)) {
        json(d->problems);
    } else if (const auto *g = std::get_if<wire::Gexec>(&message)) {
        (void)wire::check_files(g->spec);
        (void)wire::input_length(g->spec);
        expect(wire::difference(g->spec, g->spec).empty(), "a spec does not differ from itself");
        expect(wire::difference(g->spec, wire::GrainSpec{}).size() < 64 * 1024, "a difference is told briefly");
    }
}

}  // namespace

void run(std::string_view bytes) {
    std::vector<Item> items = items_of(bytes);
    items.resize(std::min<std::size_t>(items.size(), 3));  // each stands for itself
    for (const Item &item : items) {
        wire::FrameHeader header = header_of(item.kind, item.payload);
        if (item.who % 2 == 1) header.protocol = wire::positional_form;
        const char *const kind = wire::kind_name(samples()[item.kind]);
        const Meter meter;
        auto message = wire::decode_payload(header, item.payload);
        // Elements take at most 32 times their bytes (archives.h), strings their bytes and what malloc rounds up.
        meter.expect(item.payload.size(), {.memory = 36, .memory_beside = 16 * 1024, .steps = 1000, .ns = 2'000}, kind);
        if (!message) {
            expect(!message.status().text.empty(), "a refusal says why");
            continue;
        }
        expect(message->index() == item.kind, "a message has the kind that its header says");
        const auto frame = wire::encode(*message, header.request, header.protocol);
        expect(bool(frame), "a message came in a form that cannot say it");
        const std::string payload = frame->substr(wire::header_bytes);
        const auto again = wire::decode_header(frame->substr(0, wire::header_bytes), limits::server_frame_bytes);
        const auto same = again ? wire::decode_payload(*again, payload) : Result<wire::AnyMessage>(again.status());
        expect(same && *wire::encode(*same, header.request, header.protocol) == *frame,
               "what is encoded again is encoded to the same bytes");
        // LaunchResult: one of its codes means another there.
        const bool one_encoding =
            header.protocol == wire::positional_form && !std::holds_alternative<wire::LaunchResult>(*message);
        expect(!one_encoding || payload == item.payload, "without numbers there is one encoding");
        read_rows(*message);
    }
}

std::vector<Seed> seeds() {
    std::vector<Seed> list;
    for (const wire::AnyMessage &message : samples()) {
        list.push_back({wire::kind_name(message), bytes_of({item(0, message)})});
        Item old = item(1, message);
        const auto frame = wire::encode(message, 1, wire::positional_form);
        if (!frame) continue;
        old.payload = frame->substr(wire::header_bytes);
        list.push_back({wire::kind_name(message) + std::string("-of-0.1"), bytes_of({old})});
    }
    // And each with as many of the smallest elements as an item has room for.
    for (const wire::AnyMessage &message : samples())
        for (const wire::Form form : {wire::newest_form, wire::positional_form})
            for (const std::size_t inner : {0, 2})
                for (std::size_t outer = 16'000; outer > 8; outer /= 2) {
                    wire::AnyMessage crowded = message;
                    crowd(crowded, outer, inner);
                    Item all = item(form == wire::positional_form ? 1 : 0, crowded);
                    const auto frame = wire::encode(crowded, 1, form);
                    if (!frame || frame->size() > 0xffff) continue;
                    all.payload = frame->substr(wire::header_bytes);
                    const std::string name = wire::kind_name(message) + std::string("-crowded-") + std::to_string(form);
                    list.push_back({name + "-" + std::to_string(inner), bytes_of({all})});
                    break;
                }
    return list;
}

}  // namespace dcs::fuzz
