/* Preloaded into a receiver: drops received datagrams, each independently with probability LOSSY_SHARE.
 *
 * The kernel here has no netem, and packet filters see super-packets of 44 datagrams as one packet. Therefore this
 * library drops datagrams when the receiver reads them from a socket: it cuts them out of a super-packet, and reads on
 * if all are lost. LOSSY_DATAGRAM is the length of a full datagram, by which super-packets are cut.
 * LOSSY_COUNT is a file of two 64-bit numbers: datagrams lost, datagrams seen.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LARGEST = 1 << 16, MAX_DATAGRAMS = 64 };

static ssize_t (*real_recvmsg)(int, struct msghdr *, int);
static ssize_t (*real_recvfrom)(int, void *, size_t, int, struct sockaddr *, socklen_t *);
static uint64_t state, threshold, *count;
static size_t datagram;

__attribute__((constructor)) static void prepare(void)
{
    const char *share = getenv("LOSSY_SHARE"), *seed = getenv("LOSSY_SEED"), *path = getenv("LOSSY_COUNT");
    const char *length = getenv("LOSSY_DATAGRAM");
    real_recvmsg = dlsym(RTLD_NEXT, "recvmsg");
    real_recvfrom = dlsym(RTLD_NEXT, "recvfrom");
    threshold = share ? (uint64_t)(atof(share) * 18446744073709551615.0) : 0;
    state = (seed ? strtoull(seed, NULL, 10) : 1) * 0x9E3779B97F4A7C15ull | 1;
    datagram = length ? strtoul(length, NULL, 10) : 0;
    int file = path ? open(path, O_RDWR | O_CREAT, 0644) : -1;
    if (file >= 0 && ftruncate(file, 16) == 0)
        count = mmap(NULL, 16, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (!count || count == MAP_FAILED || datagram == 0) {
        fprintf(stderr, "lossy: LOSSY_COUNT must name a file that can be written, LOSSY_DATAGRAM a length\n");
        _exit(1);
    }
    close(file);
}

/* xorshift64*, by Vigna (2016). */
static int is_lost(void)
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    int lost = state * 0x2545F4914F6CDD1Dull < threshold;
    count[0] += lost;
    count[1] += 1;
    return lost;
}

static int carries_datagrams(int file)
{
    int type = 0, domain = 0;
    socklen_t size = sizeof type;
    getsockopt(file, SOL_SOCKET, SO_TYPE, &type, &size);
    getsockopt(file, SOL_SOCKET, SO_DOMAIN, &domain, &size);
    return type == SOCK_DGRAM && domain == AF_INET;
}

/* Copies between the message's bytes from `begin` on and a row of `length` bytes. */
static void copy(struct msghdr *message, size_t begin, char *row, size_t length, int to_message)
{
    for (size_t n = 0, at = 0; n < message->msg_iovlen && at < begin + length; n++) {
        struct iovec *buffer = &message->msg_iov[n];
        size_t from = begin > at ? begin - at : 0, end = begin + length - at;
        size_t stop = buffer->iov_len < end ? buffer->iov_len : end;
        if (from < stop) {
            char *here = (char *)buffer->iov_base + from, *there = row + (at + from - begin);
            memcpy(to_message ? here : there, to_message ? there : here, stop - from);
        }
        at += buffer->iov_len;
    }
}

static size_t keep_some(struct msghdr *message, size_t got)
{
    static _Thread_local char row[LARGEST];
    uint64_t lost = 0;
    size_t kept = 0, datagrams = (got + datagram - 1) / datagram;
    if (got > LARGEST || datagrams > MAX_DATAGRAMS)
        return got;
    for (size_t n = 0; n < datagrams; n++)
        lost |= (uint64_t)is_lost() << n;
    if (!lost)
        return got;
    /* Do not move datagrams before the first lost one: dropping must not cost more time than a real loss. */
    size_t first = __builtin_ctzll(lost);
    kept = first * datagram;
    copy(message, kept, row, got - kept, 0);
    for (size_t n = first, stop; n < datagrams; n = stop) {
        stop = n + 1;
        if (lost >> n & 1)
            continue;
        stop = lost >> n ? n + __builtin_ctzll(lost >> n) : datagrams;
        size_t length = (stop < datagrams ? stop * datagram : got) - n * datagram;
        copy(message, kept, row + (n - first) * datagram, length, 1);
        kept += length;
    }
    return kept;
}

ssize_t recvmsg(int file, struct msghdr *message, int flags)
{
    if (flags & MSG_PEEK || !carries_datagrams(file))
        return real_recvmsg(file, message, flags);
    /* The kernel overwrites the lengths of the buffers for the name and the control data. */
    socklen_t name = message->msg_namelen;
    size_t notes = message->msg_controllen;
    for (;;) {
        ssize_t got = real_recvmsg(file, message, flags);
        if (got <= 0)
            return got;
        size_t kept = keep_some(message, got);
        if (kept)
            return kept;
        message->msg_namelen = name;
        message->msg_controllen = notes;
    }
}

/* Receive messages one by one, so that each loses datagrams independently. Waits for the first message only, and not at
 * all on a non-blocking socket. */
int recvmmsg(int file, struct mmsghdr *messages, unsigned int number, int flags, struct timespec *limit)
{
    (void)limit;
    for (unsigned int n = 0; n < number; n++) {
        ssize_t got = recvmsg(file, &messages[n].msg_hdr, n ? flags | MSG_DONTWAIT : flags & ~MSG_WAITFORONE);
        if (got < 0)
            return n ? (int)n : -1;
        messages[n].msg_len = got;
    }
    return number;
}

ssize_t recvfrom(int file, void *data, size_t room, int flags, struct sockaddr *from, socklen_t *length)
{
    for (;;) {
        ssize_t got = real_recvfrom(file, data, room, flags, from, length);
        if (got <= 0 || flags & MSG_PEEK || !carries_datagrams(file))
            return got;
        struct iovec buffer = {data, got};
        struct msghdr message = {.msg_iov = &buffer, .msg_iovlen = 1};
        size_t kept = keep_some(&message, got);
        if (kept)
            return kept;
    }
}

ssize_t recv(int file, void *data, size_t room, int flags)
{
    return recvfrom(file, data, room, flags, NULL, NULL);
}
