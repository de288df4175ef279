/* Preloaded into a receiver: limits writes to files to SLOW_BYTES_PER_SECOND, like a slow disk, by delaying the return
 * of write calls. An idle period allows a burst of at most 0.1 s. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static double rate, free_at;
static pthread_mutex_t one_disk = PTHREAD_MUTEX_INITIALIZER;
static const double saved_up = 0.1;

__attribute__((constructor)) static void prepare(void)
{
    const char *text = getenv("SLOW_BYTES_PER_SECOND");
    rate = text ? atof(text) : 0;
    if (rate <= 0) {
        fprintf(stderr, "slow_store: SLOW_BYTES_PER_SECOND must be above 0\n");
        _exit(1);
    }
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

static ssize_t slowly(int file, ssize_t wrote)
{
    struct stat about;
    if (wrote <= 0 || fstat(file, &about) || !S_ISREG(about.st_mode))
        return wrote;
    pthread_mutex_lock(&one_disk);
    double moment = now();
    if (free_at < moment - saved_up)
        free_at = moment - saved_up;
    free_at += wrote / rate;
    double pause = free_at - moment;
    pthread_mutex_unlock(&one_disk);
    if (pause > 0) {
        struct timespec time = {(time_t)pause, (long)((pause - (time_t)pause) * 1e9)};
        nanosleep(&time, NULL);
    }
    return wrote;
}

#define REAL(name) \
    static __typeof__(&name) real; \
    if (!real) \
        real = (__typeof__(&name))dlsym(RTLD_NEXT, #name);

ssize_t write(int file, const void *data, size_t size)
{
    REAL(write)
    return slowly(file, real(file, data, size));
}

ssize_t pwrite(int file, const void *data, size_t size, off_t at)
{
    REAL(pwrite)
    return slowly(file, real(file, data, size, at));
}

ssize_t pwrite64(int file, const void *data, size_t size, off64_t at)
{
    REAL(pwrite64)
    return slowly(file, real(file, data, size, at));
}

ssize_t writev(int file, const struct iovec *pieces, int count)
{
    REAL(writev)
    return slowly(file, real(file, pieces, count));
}

ssize_t pwritev(int file, const struct iovec *pieces, int count, off_t at)
{
    REAL(pwritev)
    return slowly(file, real(file, pieces, count, at));
}

ssize_t pwritev64(int file, const struct iovec *pieces, int count, off64_t at)
{
    REAL(pwritev64)
    return slowly(file, real(file, pieces, count, at));
}

ssize_t pwritev2(int file, const struct iovec *pieces, int count, off_t at, int flags)
{
    REAL(pwritev2)
    return slowly(file, real(file, pieces, count, at, flags));
}

ssize_t pwritev64v2(int file, const struct iovec *pieces, int count, off64_t at, int flags)
{
    REAL(pwritev64v2)
    return slowly(file, real(file, pieces, count, at, flags));
}

ssize_t splice(int from, off64_t *from_at, int to, off64_t *to_at, size_t size, unsigned flags)
{
    REAL(splice)
    return slowly(to, real(from, from_at, to, to_at, size, flags));
}
