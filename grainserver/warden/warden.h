#pragma once
// The grain server's warden: a process beside it that keeps the power of who started it. The server's own process,
// which reads what the scheduler sends and what grains write, has given that up, and may ask for seven things:
//
//   the launcher             of this server's directory, started with the options of this server's command line
//   the name of a uid        as this host's tables have it
//   a login                  uid, gid and groups, if the owner's rules name it
//   a program                open for reading, if the account may read it, it can be executed, and the rules allow
//                            the account
//   a room, given, taken     to the account, if the rules allow it; back, alone
//   a home, given            as a room
//
// A request is one packet of one form, and this is all of it.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "daemon/side_process.h"
#include "grainserver/files/giving.h"
#include "grainserver/files/owner_rules.h"
#include "base/files.h"
#include "grainserver/warden/start_launcher.h"

namespace dcs::warden {

enum class Ask : std::uint8_t {
    launcher = 1, name_of_uid, login, program, give_room, take_room, give_home, last = give_home
};

struct Request {
    Ask ask = Ask::launcher;
    std::uint32_t uid = 0, gid = 0;  // name_of_uid: uid; of an account: both
    bool change = false;             // of an account: not the server's own
    bool made_up = false;            // of an account
    std::string text;                // login: its name; program: its path; room, home: the directory's plain name
    bool operator==(const Request &) const = default;
};
std::string to_packet(const Request &request);
// Nothing unless it is exactly what some request makes.
std::optional<Request> read_packet(std::string_view packet);

class Warden {
public:
    Warden(files::OwnerRules rules, LauncherOptions launcher, const files::Logins &logins)
        : rules_(std::move(rules)), giving_(launcher.directory), launcher_(std::move(launcher)), logins_(logins) {}
    // What it answers to a packet; `fd` is a descriptor to go with it, or -1, and the caller's.
    SideAnswer answer(std::string_view packet, int *fd);

private:
    SideAnswer for_account(const Request &request, int *fd) const;

    const files::OwnerRules rules_;
    const files::DirectGiving giving_;
    LauncherStarter launcher_;
    const files::Logins &logins_;
};

// The server's side. When the warden is gone its calls fail with `unreachable`, now and ever after.
class WardenClient final : public files::Logins, public files::Giving {
public:
    // Forks it. Before any thread starts, and before a byte of anybody is read.
    static Result<std::shared_ptr<WardenClient>> start(const files::OwnerRules &rules, const LauncherOptions &launcher);

    SideProcess &process() { return *process_; }
    Status start_launcher() const;  // ok also while the one that was started has not ended
    std::optional<std::string> name_of(std::uint32_t uid) const override;
    Result<files::Account> login(const files::OwnerRules &rules, const std::string &name) const override;
    // Code::refused: not for this account, or it is no program.
    Result<Fd> open_program(const std::string &path, const files::Account &account) const;
    Status give_room(const std::string &grain, const files::Account &account) const override;
    Status take_room(const std::string &grain, const files::Account &account) const override;
    Status give_home(const std::string &user, const files::Account &account) const override;

private:
    explicit WardenClient(std::unique_ptr<SideProcess> process) : process_(std::move(process)) {}
    Result<std::string> call(const Request &request, int *fd) const;

    const std::unique_ptr<SideProcess> process_;
};

}  // namespace dcs::warden
