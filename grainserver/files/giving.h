#pragma once
// Rooms and homes change hands: a room is the server's while it is furnished, and the grain's from then on.
#include <string>

#include "base/status.h"
#include "grainserver/files/grain_record.h"
#include "base/files.h"

namespace dcs::files {

// Names are those of directories below DIR/grains and DIR/home. Nothing is done for an account that is the server's
// own.
struct Giving {
    virtual ~Giving() = default;
    // All that is in the room, which nobody else could enter so far, and the room at last.
    virtual Status give_room(const std::string &grain, const Account &account) const = 0;
    // The room alone: nobody else can enter it any more.
    virtual Status take_room(const std::string &grain, const Account &account) const = 0;
    virtual Status give_home(const std::string &user, const Account &account) const = 0;
};

// By who may do so.
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
