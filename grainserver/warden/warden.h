#pragma once
// The grain server's warden: a process beside it that keeps the privileges of the user who started it. The server
// process, which reads the scheduler's messages and the grains' files, has dropped them, and may request seven things:
//
//   the launcher             of this server's directory, started with the options of this server's command line
//   the name of a uid        from this host's user database
//   a login                  uid, gid and groups, if the owner's rules name it
//   a program                open for reading, if the account may read it, it is executable, and the rules permit
//                            the account
//   a room, given, taken     given to the account, if the rules permit it; taken back, the directory only
//   a home, given            as a room
//
// A request is one packet with one valid encoding.
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
    launcher = 1,
    name_of_uid,
    login,
    program,
    give_room,
    take_room,
    give_home,
    last = give_home
};

struct Request {
    Ask ask = Ask::launcher;
    std::uint32_t uid = 0, gid = 0;  // name_of_uid: uid; of an account: both
    bool change = false;             // of an account: another one than the server's own
    bool made_up = false;            // of an account
    std::string text;                // login: its name; program: its path; room, home: the directory's plain name
    bool operator==(const Request &) const = default;
};
std::string to_packet(const Request &request);
// Nothing unless it is exactly the packet of a request.
std::optional<Request> read_packet(std::string_view packet);

class Warden {
public:
    Warden(files::OwnerRules rules, LauncherOptions launcher, const files::Logins &logins)
        : rules_(std::move(rules)), giving_(launcher.directory), launcher_(std::move(launcher)), logins_(logins) {}
    // Answers a packet; `fd` receives a descriptor to send with it, or -1; the caller owns it.
    SideAnswer answer(std::string_view packet, int *fd);

private:
    SideAnswer for_account(const Request &request, int *fd) const;

    const files::OwnerRules rules_;
    const files::DirectGiving giving_;
    LauncherStarter launcher_;
    const files::Logins &logins_;
};

// The server's side. After the warden has ended, all calls fail with `unreachable`.
class WardenClient final : public files::Logins, public files::Giving {
public:
    // Forks the warden. Call it before any thread starts, and before any input is read.
    static Result<std::shared_ptr<WardenClient>> start(const files::OwnerRules &rules, const LauncherOptions &launcher);

    SideProcess &process() { return *process_; }
    Status start_launcher() const;  // also ok while an earlier launcher has not ended
    std::optional<std::string> name_of(std::uint32_t uid) const override;
    Result<files::Account> login(const files::OwnerRules &rules, const std::string &name) const override;
    // Code::refused: the account is not permitted, or the file is not a program.
    Result<Fd> open_program(const std::string &path, const files::Account &account) const;
    Status give_room(const std::string &grain, const files::Account &account) const override;
    Status take_room(const std::string &grain, const files::Account &account) const override;
    Status give_home(const std::string &user, const files::Account &account) const override;

private:
    explicit WardenClient(std::unique_ptr<SideProcess> process) : process_(std::move(process)) {}
    Result<std::string> call(const Request &request, Fd *fd = nullptr) const;

    const std::unique_ptr<SideProcess> process_;
};

}  // namespace dcs::warden
