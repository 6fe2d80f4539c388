#pragma once
// The version of this tree; the build and the manual pages read it here. dcs.h has it for programs of users.
#define DCS_VERSION "0.2.0"
