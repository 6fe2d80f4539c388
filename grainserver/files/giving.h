#pragma once
// Changes the owner of rooms and homes: a room belongs to the server while it is filled, and then to the grain.
#include <string>

#include "base/status.h"
#include "grainserver/files/grain_record.h"
#include "base/files.h"

namespace dcs::files {

// Names are those of directories below DIR/grains and DIR/home. Has no effect for an account that is the server's
// own.
struct Giving {
    virtual ~Giving() = default;
    // Gives the content of the room, which no other account could enter so far, and then the room.
    virtual Status give_room(const std::string &grain, const Account &account) const = 0;
    // Takes the room alone back: the account cannot enter it any more.
    virtual Status take_room(const std::string &grain, const Account &account) const = 0;
    virtual Status give_home(const std::string &user, const Account &account) const = 0;
};

// For a process that has the privilege.
class DirectGiving final : public Giving {
public:
    explicit DirectGiving(std::string directory) : directory_(std::move(directory)) {}  // the server's; absolute
    Status give_room(const std::string &grain, const Account &account) const override;
    Status take_room(const std::string &grain, const Account &account) const override;
    Status give_home(const std::string &user, const Account &account) const override;

private:
    Result<Fd> room_of(const std::string &grain) const;
    const std::string directory_;
};

}  // namespace dcs::files
