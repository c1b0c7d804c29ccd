/* The clock of the day, set forward by the seconds in a file. Other clocks, and so timeouts and pauses, stay as they are. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long ahead(void) {
    static volatile long *seconds;
    if (!seconds) {
        int file = open(getenv("DPCAUSAL_CLOCK"), O_RDONLY | O_CLOEXEC);
        void *page = mmap(NULL, sizeof(long), PROT_READ, MAP_SHARED, file, 0);
        close(file);
        if (page == MAP_FAILED)
            abort();
        seconds = page;
    }
    return *seconds;
}

int clock_gettime(clockid_t clock, struct timespec *found) {
    static int (*own)(clockid_t, struct timespec *);
    if (!own)
        own = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int failed = own(clock, found);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        found->tv_sec += ahead();
    return failed;
}

time_t time(time_t *found) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (found)
        *found = now.tv_sec;
    return now.tv_sec;
}

int gettimeofday(struct timeval *found, void *zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    found->tv_sec = now.tv_sec;
    found->tv_usec = now.tv_nsec / 1000;
    return 0;
}
