/* Preloaded into a receiver: loses datagrams that have arrived, each by itself with probability LOSSY_SHARE.
 *
 * The kernel here has no netem, and what filters packets sees super-packets of 44 datagrams as one. So loss is made
 * where a socket hands over what it has: of a super-packet (UDP_GRO) the datagrams that are lost are cut out, and one
 * that is lost whole was never there. LOSSY_COUNT is a file of two 64-bit numbers: datagrams lost, datagrams seen.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef UDP_GRO
#define UDP_GRO 104
#endif

static ssize_t (*real_recvmsg)(int, struct msghdr *, int);
static ssize_t (*real_recvfrom)(int, void *, size_t, int, struct sockaddr *, socklen_t *);
static uint64_t state, threshold, *count;

__attribute__((constructor)) static void prepare(void)
{
    const char *share = getenv("LOSSY_SHARE"), *seed = getenv("LOSSY_SEED"), *path = getenv("LOSSY_COUNT");
    real_recvmsg = dlsym(RTLD_NEXT, "recvmsg");
    real_recvfrom = dlsym(RTLD_NEXT, "recvfrom");
    threshold = share ? (uint64_t)(atof(share) * 18446744073709551615.0) : 0;
    state = (seed ? strtoull(seed, NULL, 10) : 1) * 0x9E3779B97F4A7C15ull | 1;
    int file = path ? open(path, O_RDWR | O_CREAT, 0644) : -1;
    if (file >= 0 && ftruncate(file, 16) == 0)
        count = mmap(NULL, 16, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (!count || count == MAP_FAILED) {
        fprintf(stderr, "lossy: LOSSY_COUNT must name a file that can be written\n");
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

static size_t segment_size(struct msghdr *message, size_t got)
{
    for (struct cmsghdr *note = CMSG_FIRSTHDR(message); note; note = CMSG_NXTHDR(message, note))
        if (note->cmsg_level == IPPROTO_UDP && note->cmsg_type == UDP_GRO) {
            int size;
            memcpy(&size, CMSG_DATA(note), sizeof size);
            return size > 0 ? (size_t)size : got;
        }
    return got;
}

static size_t keep_some(char *data, size_t got, size_t segment)
{
    size_t kept = 0;
    for (size_t at = 0; at < got; at += segment) {
        size_t length = got - at < segment ? got - at : segment;
        if (is_lost())
            continue;
        if (kept != at)
            memmove(data + kept, data + at, length);
        kept += length;
    }
    return kept;
}

ssize_t recvmsg(int file, struct msghdr *message, int flags)
{
    if (flags & MSG_PEEK || !carries_datagrams(file))
        return real_recvmsg(file, message, flags);
    if (message->msg_iovlen != 1) {
        fprintf(stderr, "lossy: only one buffer for a datagram is understood\n");
        _exit(1);
    }
    /* The kernel shortens what it is told of the room for notes. */
    socklen_t name = message->msg_namelen;
    size_t notes = message->msg_controllen;
    for (;;) {
        ssize_t got = real_recvmsg(file, message, flags);
        if (got <= 0)
            return got;
        size_t kept = keep_some(message->msg_iov[0].iov_base, got, segment_size(message, got));
        if (kept)
            return kept;
        message->msg_namelen = name;
        message->msg_controllen = notes;
    }
}

ssize_t recvfrom(int file, void *data, size_t room, int flags, struct sockaddr *from, socklen_t *length)
{
    for (;;) {
        ssize_t got = real_recvfrom(file, data, room, flags, from, length);
        if (got <= 0 || flags & MSG_PEEK || !carries_datagrams(file) || !is_lost())
            return got;
    }
}

ssize_t recv(int file, void *data, size_t room, int flags)
{
    return recvfrom(file, data, room, flags, NULL, NULL);
}
