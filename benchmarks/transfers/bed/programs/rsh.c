/* An unencrypted remote shell, for tools that communicate with their agents through one.
 *
 * rsh serve FOLDER: print "ready"; run the command of each connection in FOLDER, with the connection as its standard
 * input and output.
 *
 * rsh ADDRESS COMMAND...: run a command there, and connect it to standard input and output.
 *
 * Called as "ssh", it ignores the options of ssh before the address, for tools that support no other remote shell.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PORT = 7514, PIECE = 256 << 10, LONGEST = 1 << 20 };

static int fail(const char *action)
{
    perror(action);
    return 1;
}

static int all(ssize_t (*act)(int, void *, size_t), int file, void *data, size_t size)
{
    for (ssize_t done; size > 0; data = (char *)data + done, size -= done)
        if ((done = act(file, data, size)) <= 0)
            return 0;
    return 1;
}

static ssize_t put(int file, void *data, size_t size)
{
    return write(file, data, size);
}

static int run(int connection)
{
    static char command[LONGEST + 1];
    uint32_t length;
    if (!all(read, connection, &length, sizeof length) || length > LONGEST || !all(read, connection, command, length))
        return 1;
    dup2(connection, 0);
    dup2(connection, 1);
    close(connection);
    execl("/bin/sh", "sh", "-c", command, NULL);
    return fail("sh");
}

static int serve(const char *folder)
{
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    int yes = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), connection;
    signal(SIGCHLD, SIG_IGN);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (chdir(folder) || bind(listener, (struct sockaddr *)&here, sizeof here) || listen(listener, 16))
        return fail(folder);
    puts("ready");
    fflush(stdout);
    while ((connection = accept(listener, NULL, NULL)) >= 0) {
        setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
        if (fork() == 0) {
            signal(SIGCHLD, SIG_DFL);
            _exit(run(connection));
        }
        close(connection);
    }
    return fail("accept");
}

static int talk(int connection)
{
    static char buffer[PIECE];
    struct pollfd ends[] = {{.fd = 0, .events = POLLIN}, {.fd = connection, .events = POLLIN}};
    while (poll(ends, 2, -1) > 0)
        for (int from = 0; from < 2; from++) {
            if (!ends[from].revents)
                continue;
            ssize_t got = read(ends[from].fd, buffer, PIECE);
            if (got > 0 && !all(put, from ? 1 : connection, buffer, got))
                return 1;
            if (got <= 0 && from)
                return 0;
            if (got <= 0) {
                shutdown(connection, SHUT_WR);
                ends[0].fd = -1;
            }
        }
    return 1;
}

static int call(const char *address, char **words)
{
    static char command[LONGEST + 1];
    struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    int yes = 1, connection = socket(AF_INET, SOCK_STREAM, 0);
    size_t length = 0;
    for (; *words; words++)
        length += snprintf(command + length, sizeof command - length, "%s ", *words);
    uint32_t size = length;
    inet_pton(AF_INET, address, &there.sin_addr);
    setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    if (connect(connection, (struct sockaddr *)&there, sizeof there))
        return fail(address);
    if (!all(put, connection, &size, sizeof size) || !all(put, connection, command, length))
        return fail(address);
    return talk(connection);
}

/* The first word that is no option of ssh, nor the value of one. */
static char **behind_options(char **words)
{
    while (*words && **words == '-')
        words += strchr("lpo", (*words)[1]) && (*words)[1] && !(*words)[2] && words[1] ? 2 : 1;
    return words;
}

int main(int argc, char **argv)
{
    const char *slash = strrchr(argv[0], '/');
    if (!strcmp(slash ? slash + 1 : argv[0], "ssh")) {
        char **words = behind_options(argv + 1);
        if (words[0] && words[1])
            return call(words[0], words + 1);
    }
    if (argc == 3 && !strcmp(argv[1], "serve"))
        return serve(argv[2]);
    if (argc >= 3)
        return call(argv[1], argv + 2);
    fprintf(stderr, "rsh serve FOLDER, or rsh ADDRESS COMMAND..., or ssh [OPTIONS] ADDRESS COMMAND...\n");
    return 2;
}
