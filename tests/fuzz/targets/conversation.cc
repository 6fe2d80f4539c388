// One call of a control program as a state machine, with a scheduler that answers anything, and a connection that
// breaks anywhere: it comes to an end, and the end is a reply or says why there is none.
#include "client/conversation.h"

#include "script.h"

namespace dcs::fuzz {

// who: 0 a reply to this request, 1 to another one, 2 to none; 3 the step fails; 4 bytes that are no frame; 5 time
// passes.
void run(std::string_view bytes) {
    std::vector<Item> items = items_of(bytes);
    if (items.empty()) return;
    client::Terms terms;
    terms.request = 7, terms.token = std::string(32, 't'), terms.for_ever = items[0].who % 2 == 1,
    terms.greeted = items[0].who % 4 >= 2;
    const auto request = decoded(items[0]);
    Instant now{seconds(1000).ns};
    client::Conversation call(request ? *request : wire::AnyMessage(wire::Done{}), terms, now);
    std::size_t at = 1;
    bool welcomed = terms.greeted;
    for (int steps = 0; call.step().what != client::Do::done; ++steps) {
        expect(steps < 1000, "a call comes to its end");
        const client::Step step = call.step();
        const bool more = at < items.size();
        const std::uint8_t how = more ? items[at].who % 6 : 4;
        if (how == 5) now = now + seconds(10);
        if (step.what == client::Do::connect) {
            if (how == 3) call.refused("nobody", items[at].kind % 2 == 0, now);
            else call.connected(now), welcomed = false;
        } else if (step.what == client::Do::send) {
            expect(step.bytes.size() >= wire::header_bytes, "what it sends is a frame");
            if (how == 3) call.broken("cut", now);
            else call.sent(now);
        } else if (step.what == client::Do::pause) {
            now = std::max(now, step.until);
            call.paused(now);
        } else if (how == 3) {
            call.broken("cut", now);
        } else if (how == 4) {
            call.nonsense(fail(Code::protocol, "noise"));
        } else {
            auto message = decoded(items[at]);
            wire::FrameHeader header;
            header.protocol = items[at].kind % 2 == 0 ? wire::newest_form : wire::positional_form;
            header.request = how == 1 ? 8 : how == 2 ? 0 : welcomed ? 7 : wire::offer_of(wire::our_forms);
            welcomed = true;
            if (message) call.received(header, std::move(*message), now);
            else call.nonsense(fail(Code::protocol, "no message"));
        }
        if (step.what != client::Do::pause) ++at;
    }
    expect(call.outcome() || !call.outcome().status().text.empty(), "who has no reply says why");
}

std::vector<Seed> seeds() {
    std::vector<Seed> list;
    for (const wire::AnyMessage &message : samples()) {
        const Item welcome = item(0, wire::Welcome{7, "ann"}), sends = action(0, 0);
        list.push_back({wire::kind_name(message),
                        bytes_of({item(0, wire::Gwait{3, 0, true}), sends, welcome, sends, item(0, message)})});
    }
    list.push_back(
        {"broken", bytes_of({item(3, wire::CleanSession{"ann", 3}), action(0, 0), action(3, 0), action(0, 0),
                             item(0, wire::Welcome{7, "ann"}), action(0, 0), item(0, wire::ErrorReply{8, "gone"})})});
    return list;
}

}  // namespace dcs::fuzz
