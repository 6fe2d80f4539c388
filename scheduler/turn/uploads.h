#pragma once
// Import streams on their way in: in memory, one of each user, bound to the connection that brings
// them. Nothing of them is durable before the session that they become.
#include <map>
#include <string>

#include "base/ids.h"
#include "base/instant.h"
#include "base/status.h"
#include "wire/session_calls.h"

namespace dcs::turn {

class Uploads {
public:
    Status add(ConnId conn, const std::string &user, Instant now, wire::ImportPiece piece);
    // The whole stream, which is forgotten here. not_found: none is here (any more); otherwise what
    // is here is not what was announced.
    Result<std::string> take(ConnId conn, const std::string &user, const wire::ImportSession &call);
    void drop(ConnId conn);
    std::size_t count() const { return uploads_.size(); }

private:
    struct Upload {
        ConnId conn = 0;
        std::uint64_t total = 0;
        std::string bytes;
        Instant last_piece{};
    };
    Status begin(ConnId conn, const std::string &user, Instant now, std::uint64_t total);
    std::uint64_t announced() const;
    std::map<std::string, Upload> uploads_;  // by user
};

}  // namespace dcs::turn
