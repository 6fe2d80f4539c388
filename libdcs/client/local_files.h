#pragma once
// The files of a submission as they lie here: digested when it is made, brought to the scheduler's library
// when it does not have them. None is ever whole in memory.
#include <string>
#include <vector>

#include "client/streams.h"
#include "dcs.h"

namespace dcs::client {

// Brings one content, from the file's beginning. `name`: for people.
Status upload_content(const wire::GrainFile &content, std::FILE *from, const std::string &name, With with);

class LocalFiles {
public:
    // Fills spec.files, and spec.input if input_path or input_fd hold no more than goes inline.
    Status take(const d_grain &grain, wire::GrainSpec &spec);
    bool any() const { return !sources_.empty(); }
    // Brings those of them that the scheduler does not have.
    Status upload();

private:
    struct Source {
        wire::GrainFile file;
        std::string path;  // to read it from, if there is no copy
        File copy;
    };
    Status add(wire::FileRole role, const d_file &file, wire::GrainSpec &spec);
    Status add_input(const d_grain &grain, wire::GrainSpec &spec);
    Status upload_one(Source &source);

    std::vector<Source> sources_;
};

}  // namespace dcs::client
