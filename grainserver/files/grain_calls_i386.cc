#include "grainserver/files/grain_calls.h"

#if defined(__x86_64__)
#include <asm/unistd_32.h>  // not together with the numbers of x86_64

namespace dcs::files {

#define NUMBER(name) __NR_##name,
std::vector<int> grain_calls_of_i386() {
    return {DCS_GRAIN_CALLS(NUMBER) DCS_GRAIN_CALLS_X86(NUMBER) DCS_GRAIN_CALLS_I386(NUMBER)};
}
#undef NUMBER

}  // namespace dcs::files
#endif
