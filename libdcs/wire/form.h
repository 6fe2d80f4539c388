#pragma once
// The forms in which payloads are written, and how two programs of different releases agree on one. A frame's header
// says its payload's form, and a program reads each form from `oldest` to `newest`, frame by frame. It writes in the
// opening form until it knows what its peer reads.
//
//   8   release 0.1: the fields of a struct in their order and nothing else
//   9   numbered fields (base/bytes.h): the number is a field's place in its list, from 1; a field that has its
//       default is left out, and a reader passes over numbers that it does not know. Later forms are written like
//       this one; they add fields, kinds of messages and values of enums.
//
// The first message of who opens a connection (opens() in message.h) is in the opening form for ever, so that each
// release reads it. Its request id is an offer of the forms that the sender reads; release 0.1 takes it for an id.
// The peer then writes in the newest form of both, and the form of its first frame tells the same to the other side.
#include <cstdint>
#include <optional>

#include "base/status.h"

namespace dcs::wire {

using Form = std::uint16_t;
inline constexpr Form positional_form = 8, opening_form = 8;

struct Forms {
    Form oldest = 8, newest = 9;
    bool operator==(const Forms &) const = default;
};
inline constexpr Forms our_forms;
inline constexpr Form newest_form = our_forms.newest;

// As a request id: a magic number in the high half, then `newest` and `oldest`.
std::uint64_t offer_of(const Forms &forms);
std::optional<Forms> offer_in(std::uint64_t request);

// The newest form of both. A failure names both ranges, and which side to upgrade.
Result<Form> common_form(const Forms &peer);
// Of a header: a form that this program does not read. The text is for the peer.
Status check_form(Form form);

}  // namespace dcs::wire
