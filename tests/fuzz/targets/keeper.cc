// What the scheduler asks of its keeper, and the answers: a peer that took over the scheduler writes the one, and a
// request is either exactly what some request makes, or none.
#include "scheduler/keeper/keeper.h"

#include "fuzz.h"
#include "grainserver/warden/warden.h"

namespace dcs::fuzz {

using namespace keeper;

void run(std::string_view bytes) {
    if (const auto request = read_packet(bytes)) {
        expect(to_packet(*request) == bytes, "nothing hides in a request");
        const bool for_host = request->role == pki::Role::grain_server || request->role == pki::Role::client ||
                              request->role == pki::Role::program || request->role == pki::Role::backup;
        expect((request->ask == Ask::certificate) == for_host, "certificates are for hosts and programs only");
        expect(request->name.size() < name_max, "names end");
    }
    if (const auto request = warden::read_packet(bytes)) {
        expect(warden::to_packet(*request) == bytes, "nothing hides in a request to the warden");
        expect(request->text.find('\0') == std::string::npos, "a path is what it seems");
    }
    if (const auto reply = read_side_answer(bytes)) {
        expect(reply->status ? reply->status.text.empty() : reply->bytes.empty(), "bytes, or a reason");
        expect(side_answer(*reply) == bytes, "a reply keeps what it says");
    }
    if (const auto point = point_of(bytes)) expect(public_key_of(*point) == bytes, "a key has one form");
}

std::vector<Seed> seeds() {
    std::vector<Seed> all;
    for (auto ask = static_cast<std::uint8_t>(Ask::authority); ask <= static_cast<std::uint8_t>(Ask::last); ++ask) {
        Request request;
        request.ask = static_cast<Ask>(ask);
        request.number = request.ask == Ask::echo_socket ? 4 : request.ask == Ask::user_name ? 1000 : 0;
        const bool certificate = request.ask == Ask::certificate;
        if (certificate) request.role = pki::Role::program;
        if (certificate || request.ask == Ask::own_certificate) request.point.fill(7);
        if (certificate || request.ask == Ask::remove_host || request.ask == Ask::check_login ||
            request.ask == Ask::knows_login)
            request.name = certificate ? "ann/desk1/dcs" : "h1";
        all.push_back({"ask-" + std::to_string(ask), to_packet(request)});
    }
    for (auto ask = static_cast<std::uint8_t>(warden::Ask::launcher);
         ask <= static_cast<std::uint8_t>(warden::Ask::last); ++ask) {
        warden::Request request;
        request.ask = static_cast<warden::Ask>(ask);
        if (request.ask == warden::Ask::name_of_uid) request.uid = 1000;
        if (request.ask >= warden::Ask::login) request.text = "/bin/true";
        all.push_back({"warden-" + std::to_string(ask), warden::to_packet(request)});
    }
    all.push_back({"bytes", side_answer({Status::ok(), "bytes"})});
    all.push_back({"refused", side_answer({fail(Code::refused, "why"), ""})});
    all.push_back({"key", public_key_of(Point{})});
    return all;
}

}  // namespace dcs::fuzz
