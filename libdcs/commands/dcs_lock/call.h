#pragma once
// The verbs of dcs_lock. Each returns the exit code of the process.
#include <string>
#include <vector>

#include "locks/files/world.h"
#include "options.h"

namespace dcs::lock_command {

int run_lock_command(const locks::World &world, const std::vector<std::string> &line);
// flock(1) of util-linux with its exit codes, for scripts; dcs_lock invoked under that name.
int run_flock(const locks::World &world, const std::vector<std::string> &line);

int run_command(const locks::World &world, const Options &options);
int lock_descriptor(const Options &options);
int get_lock(const locks::World &world, const Options &options);
int put_lock(const locks::World &world, const Options &options);
int list_locks(const locks::World &world, const Options &options);
int check_lock(const locks::World &world, const Options &options);
int wait_for_lock(const locks::World &world, const Options &options);
int break_lock(const locks::World &world, const Options &options);
int print_log(const Options &options);
int advise(const locks::World &world, const Options &options);
int examine_locks(const locks::World &world, const Options &options);
int begin_pass(const locks::World &world, const Options &options);

}  // namespace dcs::lock_command
