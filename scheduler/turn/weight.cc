#include "scheduler/turn/weight.h"

#include <algorithm>

#include "base/limits.h"

namespace dcs::turn {
namespace {

// What looks through lists of sessions, grains or hosts, or may have a file read from end to end.
constexpr std::size_t long_look = 64;
// One piece of a file.
constexpr std::size_t one_piece = 8;
// A session has folders and files of its own; a token is looked for among all of them.
constexpr std::size_t new_session = 16, new_token = 4;

std::size_t at_most(std::int32_t asked, std::size_t most) {
    return asked > 0 ? std::min(static_cast<std::size_t>(asked), most) : most;
}

struct WeightOf {
    std::size_t operator()(const core::SubmitGrains &r) const { return std::max<std::size_t>(1, r.grains->size()); }
    std::size_t operator()(const core::ImportSession &r) const {
        return r.content ? std::max<std::size_t>(1, r.content->grains->size()) : 1;
    }
    std::size_t operator()(const wire::GwaitMany &r) const { return at_most(r.most, limits::batch_grains); }
    std::size_t operator()(const wire::ExportPage &r) const { return at_most(r.most, limits::batch_grains); }
    std::size_t operator()(const wire::Fetch &r) const { return r.offset == 0 ? long_look : one_piece; }
    std::size_t operator()(const wire::OpenSession &) const { return new_session; }
    std::size_t operator()(const core::BeginControl &) const { return new_token; }
    std::size_t operator()(const wire::Query &) const { return long_look; }
    std::size_t operator()(const wire::Doctor &) const { return long_look; }
    std::size_t operator()(const wire::Explain &) const { return long_look; }
    std::size_t operator()(const wire::CloseSession &) const { return long_look; }
    std::size_t operator()(const wire::CleanSession &) const { return long_look; }
    template <class Request> std::size_t operator()(const Request &) const { return 1; }
};

}  // namespace

std::size_t weight_of(const core::Input &input) {
    const auto *call = std::get_if<core::UserCall>(&input);
    return call ? std::visit(WeightOf{}, call->request) : 1;
}

}  // namespace dcs::turn
