#pragma once
// The pool that this command works with, as a handle of the library.
#include <cstdint>
#include <string>

struct d_pool;

namespace dcs::commands {

// Before open_this_pool: the library's default pool, which the environment names.
d_pool &this_pool();
void open_this_pool(const std::string &directory);
// Of sessions that this process opens from here on.
void describe_new_sessions(const std::string &label, std::int32_t nice);

}  // namespace dcs::commands
