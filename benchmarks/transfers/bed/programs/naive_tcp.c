/* naive_tcp receive PORT COPY: print "ready", accept one connection, write its data to COPY.part, rename that to COPY,
 * and answer with one byte.
 *
 * naive_tcp send FILE PORT ADDRESS...: connect to every receiver, which may still be starting; then one process for each
 * sends the whole file to it by sendfile. It ends with status 0 when all have answered.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PIECE = 256 << 10, AGAIN_US = 20000 };

static int fail(const char *action)
{
    perror(action);
    return 1;
}

static struct sockaddr_in endpoint(const char *address, const char *port)
{
    struct sockaddr_in result = {.sin_family = AF_INET, .sin_port = htons(atoi(port))};
    inet_pton(AF_INET, address, &result.sin_addr);
    return result;
}

static int take(int connection, const char *path)
{
    static char buffer[PIECE], part[4096];
    ssize_t got;
    snprintf(part, sizeof part, "%s.part", path);
    int copy = open(part, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (copy < 0)
        return fail(part);
    while ((got = read(connection, buffer, PIECE)) > 0)
        for (ssize_t done = 0, wrote; done < got; done += wrote)
            if ((wrote = write(copy, buffer + done, got - done)) <= 0)
                return fail(part);
    if (got < 0 || close(copy) || rename(part, path))
        return fail(path);
    return write(connection, "", 1) == 1 ? 0 : fail("answer");
}

static int receive(const char *port, const char *path)
{
    struct sockaddr_in here = endpoint("0.0.0.0", port);
    int yes = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(listener, (struct sockaddr *)&here, sizeof here) || listen(listener, 1))
        return fail("listen");
    puts("ready");
    fflush(stdout);
    int connection = accept(listener, NULL, NULL);
    return connection < 0 ? fail("accept") : take(connection, path);
}

static int connected(const char *address, const char *port)
{
    struct sockaddr_in there = endpoint(address, port);
    for (;; usleep(AGAIN_US)) {
        int connection = socket(AF_INET, SOCK_STREAM, 0);
        if (!connect(connection, (struct sockaddr *)&there, sizeof there))
            return connection;
        if (errno != ECONNREFUSED)
            return -1;
        close(connection);
    }
}

static int give(int file, off_t size, int connection)
{
    char answer;
    for (off_t at = 0; at < size;)
        if (sendfile(connection, file, &at, size - at) <= 0)
            return fail("sendfile");
    shutdown(connection, SHUT_WR);
    return read(connection, &answer, 1) == 1 ? 0 : fail("no answer");
}

static int send_all(const char *path, const char *port, char **addresses, int count)
{
    struct stat about;
    int file = open(path, O_RDONLY), status, worst = 0, connections[count];
    if (file < 0 || fstat(file, &about))
        return fail(path);
    for (int one = 0; one < count; one++)
        if ((connections[one] = connected(addresses[one], port)) < 0)
            return fail(addresses[one]);
    for (int one = 0; one < count; one++)
        if (fork() == 0)
            _exit(give(file, about.st_size, connections[one]));
    while (wait(&status) > 0)
        worst |= status;
    return worst ? 1 : 0;
}

int main(int argc, char **argv)
{
    if (argc == 4 && !strcmp(argv[1], "receive"))
        return receive(argv[2], argv[3]);
    if (argc >= 5 && !strcmp(argv[1], "send"))
        return send_all(argv[2], argv[3], argv + 4, argc - 4);
    fprintf(stderr, "naive_tcp receive PORT COPY, or naive_tcp send FILE PORT ADDRESS...\n");
    return 2;
}
