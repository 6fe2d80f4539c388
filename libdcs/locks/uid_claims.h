#pragma once
// Claims of grain servers of this machine to the uids that they assign to users: kernel locks on one byte per uid, in
// one file. Servers of one directory share them, those of others do not. The kernel drops a claim with the last process
// that has its descriptor.
#include <cstdint>
#include <string>

#include "locks/files/lock_file.h"

namespace dcs::locks {

inline constexpr const char *uid_claims_path = "/run/dcs/uids.lock";

class UidClaims {
public:
    // `owner`: the directory whose servers share the uids. Makes the file, and its directory, if they are missing.
    // Code::invalid: other accounts can write them.
    Status open(const std::string &owner, const std::string &path = uid_claims_path);
    // Claims FIRST to LAST; again is fine. Code::refused names the overlapping range of others, a process that has it,
    // and as many free uids behind it.
    Status take(std::uint32_t first, std::uint32_t last) const;
    // False: the file was removed or replaced, and other servers do not see these claims.
    bool count() const;
    int fd() const { return file_.fd(); }  // each copy keeps the claim

private:
    struct Range {
        std::int64_t begin, end;
    };
    bool of_others(const Range &locked, const Range &wanted) const;
    Result<Range> first_of_others(const Range &wanted) const;
    Range uids_of(const Range &locked) const;
    // As many that are free, behind these uids; empty: none.
    std::string next_free(std::int64_t at, std::int64_t count) const;
    std::string words_of(const Range &others, std::int64_t count) const;

    LockFile file_;
    std::int64_t row_ = 0;  // the byte of uid 0 for this owner
};

}  // namespace dcs::locks
