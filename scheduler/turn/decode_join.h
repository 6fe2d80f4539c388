#pragma once
// The part of decode.h that is about hosts that join, and their certificates.
#include "scheduler/turn/decoded.h"

namespace dcs::turn {

core::CreateCode create_code(Outside &outside, wire::CreateToken call);
core::ListCodes list_codes(Outside &outside);

// Of a host without a certificate: it may ask for one, and nothing else.
Decoded join_frame(Outside &outside, const Arrival &arrival, const Connection &who, wire::AnyMessage message);

// Of dcs_begin on another host: the wish to begin a control program, and nothing else.
Decoded begin_frame(Outside &outside, const Arrival &arrival, const Connection &who, wire::AnyMessage message);

// Of a control program of another host, for its own key.
Result<core::RenewProgram> program_renewal(Outside &outside, const wire::RenewCertificate &call);

// Of a grain server over its link, for the key that it has shown.
Decoded renewal(Outside &outside, const Connection &who, const wire::RenewCertificate &call);

}  // namespace dcs::turn
