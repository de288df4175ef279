/* floor SIZE COPY: write SIZE bytes to COPY from one buffer that stays in the cache, 64,064 bytes at a time, which is
 * the payload of one UDP super-packet. Prints "ready" and waits for a line before it writes. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { PIECE = 44 * 1456 };

int main(int argc, char **argv)
{
    static char buffer[PIECE];
    char line[16];
    if (argc != 3)
        return 2;
    long long size = atoll(argv[1]), done = 0;
    int copy = open(argv[2], O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (copy < 0)
        return perror(argv[2]), 1;
    puts("ready");
    fflush(stdout);
    if (!fgets(line, sizeof line, stdin))
        return 1;
    while (done < size) {
        ssize_t wrote = pwrite(copy, buffer, size - done < PIECE ? size - done : PIECE, done);
        if (wrote <= 0)
            return perror(argv[2]), 1;
        done += wrote;
    }
    return close(copy) ? 1 : 0;
}
