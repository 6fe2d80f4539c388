#pragma once
// An import, decoded (wire/import_rows.h) -> what the core makes a session of. It comes from a user: everything that
// core::check or a launch relies on is checked here, whatever the client or the decoder checked before.
//
// It is read in steps, so that others are served between them: the steps of an import together take a constant number
// of steps for each of its bytes (sorting aside), and hold at most eight times its bytes and 512 for each grain.
#include <memory>
#include <string>

#include "base/status.h"
#include "scheduler/state/input.h"
#include "scheduler/turn/contents.h"

namespace dcs::turn {

class ImportReader {
public:
    // `user`: whose session it becomes.
    ImportReader(std::string rows, std::string user);
    ~ImportReader();
    ImportReader(ImportReader &&) noexcept;
    ImportReader &operator=(ImportReader &&) noexcept;
    // `holder`: that user. Reads about so many bytes on. A record is read at once. True: there is more to be read.
    bool step(std::size_t bytes, const Holder &holder, Contents &contents);
    // After the last step. Hosts that `state` does not know are forgotten.
    Result<std::shared_ptr<const core::ImportContent>> take(const core::State &state);
    std::size_t held() const;  // bytes of the rows

private:
    class Import;
    std::unique_ptr<Import> import_;
};

}  // namespace dcs::turn
