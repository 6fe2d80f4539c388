#pragma once
// A session as one HTML file that can be mailed: what became of it in figures and pictures.
#include <string>

#include "commands/dcs/frame/call.h"
#include "commands/dcs/query/scheduler.h"
#include "wire/history.h"

namespace dcs::commands {

// Everything is inside the file; it has no scripts and refers to nothing.
std::string report_of(const Session &session, const wire::History &history);

// dcs session export --html FILE.
int export_report(const Session &session, const std::string &path, const Call &call);

}  // namespace dcs::commands
