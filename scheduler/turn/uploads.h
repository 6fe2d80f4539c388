#pragma once
// Import streams on their way in: in memory, one of each user, bound to the connection that brings
// them. Nothing of them is durable before the session that they become. Room is taken by the bytes that came, not by
// those that were announced; where it ends, the largest upload gives way to smaller ones.
#include <map>
#include <string>

#include "base/ids.h"
#include "base/instant.h"
#include "base/status.h"
#include "wire/session_calls.h"

namespace dcs::turn {

class Uploads {
public:
    // `being_read`: bytes of imports that are whole and take room too.
    Status add(ConnId conn, const std::string &user, Instant now, wire::ImportPiece piece,
               std::uint64_t being_read = 0);
    // The whole stream, which is forgotten here. not_found: there is none, or no longer; otherwise what
    // is here is not what was announced.
    Result<std::string> take(ConnId conn, const std::string &user, const wire::ImportSession &call);
    void drop(ConnId conn);
    std::size_t count() const { return uploads_.size(); }

private:
    struct Upload {
        ConnId conn{};
        std::uint64_t total = 0;
        std::string bytes;
        std::uint32_t sum = 0;  // of these
        Instant last_piece{};
    };
    Status begin(ConnId conn, const std::string &user, std::uint64_t total);
    Status make_room(const std::string &user, Instant now, std::uint64_t more, std::uint64_t being_read);
    std::uint64_t held() const;
    std::map<std::string, Upload> uploads_;  // by user
};

}  // namespace dcs::turn
