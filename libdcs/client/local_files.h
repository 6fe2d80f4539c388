#pragma once
// The files of a submission, of one grain or many, as they lie here: digested when it is made, brought to the
// scheduler's library when it does not have them. None is ever whole in memory.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "client/streams.h"
#include "dcs.h"
#include "base/status.h"
#include "wire/user_calls.h"

namespace dcs::client {

// What a caller says about a grain, checked and copied.

// What the program describes, in a struct of this library's; and one of which nothing is said.
Result<d_grain> known_grain(const d_grain *grain);
d_grain plain_grain();

// Everything but its files (LocalFiles).
Status fill_spec(const d_grain &grain, wire::GrainSpec &spec);
// About as many as it has in a frame.
std::uint64_t bytes_of(const wire::GrainSpec &spec);

// Brings one content, from the file's beginning. `name`: for people.
Status upload_content(Pool &pool, const wire::GrainFile &content, std::FILE *from, const std::string &name, With with);

class LocalFiles {
public:
    // Fills spec.files, and spec.input if input_path or input_fd hold no more than goes inline; for each grain.
    Status take(const d_grain &grain, wire::GrainSpec &spec);
    void add(LocalFiles other) {
        sources_.merge(other.sources_);
        copied_bytes_ += other.copied_bytes_;
        read_to_.insert(read_to_.end(), other.read_to_.begin(), other.read_to_.end());
    }
    // Descriptors of files are at their end from here on; before, a call that failed reads them again.
    void submitted() const;
    bool any() const { return !sources_.empty(); }
    // Inputs that were copied: how many bytes.
    std::uint64_t copied_bytes() const { return copied_bytes_; }
    // Asks for a submission with these files. What the scheduler lacks of them is brought, and it is asked again.
    Status submit(Pool &pool, const wire::AnyMessage &submission, const How &how = {});

private:
    Status upload(Pool &pool);
    struct Source {
        wire::GrainFile file;
        std::string path;  // to read it from, if there is no copy
        File copy;
    };
    Status add(wire::FileRole role, const d_file &file, wire::GrainSpec &spec);
    Status add_input(const d_grain &grain, wire::GrainSpec &spec);
    Status upload_one(Pool &pool, Source &source);

    std::map<std::string, Source> sources_;  // by digest
    std::uint64_t copied_bytes_ = 0;
    std::vector<std::pair<int, off_t>> read_to_;  // input_fd, and where it ended
};

}  // namespace dcs::client
