#include "wire/form.h"

#include <algorithm>
#include <string>

namespace dcs::wire {
namespace {

constexpr std::uint64_t offer_magic = 0x44435346;  // "DCSF"

std::string in_words(const Forms &forms) {
    const std::string oldest = std::to_string(forms.oldest);
    return forms.oldest == forms.newest ? oldest : oldest + " to " + std::to_string(forms.newest);
}

Status no_common_form(const Forms &peer) {
    return fail(Code::protocol, "the peer speaks protocol version " + in_words(peer) + ", but this program speaks " +
                                    in_words(our_forms) + ": upgrade " +
                                    (peer.newest < our_forms.oldest ? "the peer" : "this program"));
}

}  // namespace

std::uint64_t offer_of(const Forms &forms) {
    return offer_magic << 32 | std::uint64_t{forms.newest} << 16 | forms.oldest;
}

std::optional<Forms> offer_in(std::uint64_t request) {
    const Forms forms{static_cast<Form>(request), static_cast<Form>(request >> 16)};
    if (request >> 32 != offer_magic || forms.oldest < opening_form || forms.newest < forms.oldest) return std::nullopt;
    return forms;
}

Result<Form> common_form(const Forms &peer) {
    const Form common = std::min(peer.newest, our_forms.newest);
    if (common < std::max(peer.oldest, our_forms.oldest)) return no_common_form(peer);
    return common;
}

Status check_form(Form form) {
    if (form >= our_forms.oldest && form <= our_forms.newest) return Status::ok();
    return no_common_form({form, form});
}

}  // namespace dcs::wire
