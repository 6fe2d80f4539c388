#include "grainserver/warden/warden.h"

#include <climits>

#include "base/bytes.h"
#include "grainserver/files/program_file.h"

namespace dcs::warden {
namespace {

// Each field is used only by the requests that need it.
bool is_one(const Request &r) {
    if (r.ask < Ask::launcher || r.ask > Ask::last) return false;
    const bool account = r.ask >= Ask::program;
    if (!account && (r.gid != 0 || r.change || r.made_up)) return false;
    if (!account && r.ask != Ask::name_of_uid && r.uid != 0) return false;
    if (account && !r.change && (r.uid != 0 || r.gid != 0 || r.made_up)) return false;
    if ((account || r.ask == Ask::login) == r.text.empty()) return false;
    if (r.ask == Ask::program && r.text[0] != '/') return false;
    return r.text.size() < PATH_MAX && r.text.find('\0') == std::string::npos;
}

}  // namespace

std::string to_packet(const Request &r) {
    ByteWriter w;
    w.u8(static_cast<std::uint8_t>(r.ask));
    w.u32(r.uid);
    w.u32(r.gid);
    w.u8(r.change);
    w.u8(r.made_up);
    w.text(r.text);
    return std::move(w.bytes());
}

std::optional<Request> read_packet(std::string_view packet) {
    ByteReader r(packet);
    Request request;
    request.ask = static_cast<Ask>(r.u8());
    request.uid = r.u32();
    request.gid = r.u32();
    request.change = r.u8() == 1;
    request.made_up = r.u8() == 1;
    request.text = r.text();
    if (!r.at_end() || !is_one(request) || to_packet(request) != packet) return {};
    return request;
}

SideAnswer Warden::answer(std::string_view packet, int *fd) {
    const auto request = read_packet(packet);
    if (!request) return {fail(Code::invalid, "the warden does not accept this request"), ""};
    switch (request->ask) {
    case Ask::launcher: return {launcher_.start(), ""};
    case Ask::name_of_uid: {
        const auto name = logins_.name_of(request->uid);
        return {name ? Status::ok() : fail(Code::not_found, "no login has this uid"), name.value_or("")};
    }
    case Ask::login: {
        const Result<files::Account> login = logins_.login(rules_, request->text);
        if (!login) return {login.status(), ""};
        ByteWriter w;
        w.u32(login->uid);
        w.u32(login->gid);
        for (const std::uint32_t group : login->groups) w.u32(group);
        return {Status::ok(), std::move(w.bytes())};
    }
    case Ask::program:
    case Ask::give_room:
    case Ask::take_room:
    case Ask::give_home: break;
    }
    return for_account(*request, fd);
}

SideAnswer Warden::for_account(const Request &request, int *fd) const {
    files::Account account{
        .change = request.change, .uid = request.uid, .gid = request.gid, .made_up = request.made_up};
    if (const Status s = files::permits(rules_, account, logins_); !s) return {s, ""};
    if (request.ask == Ask::give_room) return {giving_.give_room(request.text, account), ""};
    if (request.ask == Ask::take_room) return {giving_.take_room(request.text, account), ""};
    if (request.ask == Ask::give_home) return {giving_.give_home(request.text, account), ""};
    Result<Fd> file = files::open_program(request.text, account);
    if (!file) return {file.status(), ""};
    *fd = file->release();
    return {};
}

}  // namespace dcs::warden
