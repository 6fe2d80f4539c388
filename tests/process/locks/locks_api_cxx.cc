// The same program as C++.
#include "locks_api.c"
