// `dcs session export`: who may, and from which grain on. The turn fills the page.
#include "scheduler/core/decisions.h"

namespace dcs::core {

void export_session(Draft &d, const Caller &caller, const wire::ExportPage &call) {
    const SessionKey key{call.user.empty() ? caller.user : call.user, call.session};
    if (!d.state.session(key)) return d.refuse(caller, missing_session(d.state, key));
    d.effect(ReplyExport{caller.conn, caller.request, key, call.after, call.most});
}

}  // namespace dcs::core
