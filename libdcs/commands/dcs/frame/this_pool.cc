#include "this_pool.h"

#include <memory>

#include "client/pool.h"

namespace dcs::commands {
namespace {

std::unique_ptr<client::Pool> &opened_pool() {
    static auto *pool = new std::unique_ptr<client::Pool>;  // threads may still be in a call when the command ends
    return *pool;
}

}  // namespace

d_pool &this_pool() { return client::pool_of(opened_pool().get()); }

void open_this_pool(const std::string &directory) {
    client::PoolOptions options;
    options.directory = directory;  // unless dcs_begin has begun this command for a scheduler elsewhere
    opened_pool() = std::make_unique<client::Pool>(std::move(options));
}

void describe_new_sessions(const std::string &label, std::int32_t nice) { this_pool().new_sessions = {label, nice}; }

}  // namespace dcs::commands
