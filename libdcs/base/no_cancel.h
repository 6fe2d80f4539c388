#pragma once
// While one lives, pthread_cancel does not end this thread: it takes effect at a later cancellation point. For all of a
// call of a library, which would otherwise leave what other threads wait for.
#include <pthread.h>

namespace dcs {

class NoCancel {
public:
    NoCancel() { ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
    ~NoCancel() { ::pthread_setcancelstate(before_, nullptr); }
    NoCancel(const NoCancel &) = delete;
    NoCancel &operator=(const NoCancel &) = delete;

private:
    int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace dcs
