// Contents that a submission names, brought when the scheduler lacks them (libdcs/client/local_files.cc).
#include "base/limits.h"
#include "pki/digest.h"
#include "sim/control_node.h"

namespace dcs::sim {

// True: that is what the reply was about, and the next was said.
bool ControlNode::brings(const wire::AnyMessage &reply) {
    const auto *error = std::get_if<wire::ErrorReply>(&reply);
    if (std::holds_alternative<wire::PutContent>(self_.call)) {
        if (error) self_.bring.clear();  // its connection is another one, or it was suspended: all again
        else self_.bring.pop_front();
        if (self_.bring.empty()) think();
        else say(self_.bring.front(), false);
        return true;
    }
    const std::vector<GrainNumber> grains = submitted_by(self_.call);
    if (grains.empty() || !error || static_cast<Code>(error->code) != Code::not_found) return false;
    self_.bring.clear();
    for (const GrainNumber grain : grains) {
        for (const std::string &bytes : job().script.contents_of(grain)) {
            wire::PutContent piece{pki::sha256_text(bytes), bytes.size(), 0, {}};
            do {
                piece.bytes = bytes.substr(piece.offset, limits::content_piece_bytes);
                self_.bring.push_back(piece);
                piece.offset += piece.bytes.size();
            } while (piece.offset < bytes.size());
        }
    }
    say(self_.bring.front(), false);
    return true;
}

}  // namespace dcs::sim
